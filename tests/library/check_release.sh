#!/usr/bin/env bash
# Builds the library as it is released and checks what it asks of a system: check_release.sh
#
# Linked against GLIBC 2.28's symbols by zig, whatever this machine has, so that it loads on systems
# from 2018 on. Fails if it needs a newer symbol, exports more than its entry points, can be
# unmapped, still has its symbol table, or is larger than 1.5 MB. What it costs to load is measured
# and not judged: on a busy machine that says more about the machine. Needs cc, binutils and python3
# with venv; fetches zig (100 MB) where target/ has none.
set -euo pipefail
cd "$(dirname "$0")/../.."
glibc=2.28
most_bytes=1500000
target=x86_64-unknown-linux-gnu
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

"$(dirname "$0")/install_zigbuild.sh" "$target_dir/zigbuild"
PATH=$target_dir/zigbuild/bin:$PATH
cargo zigbuild --release --locked --quiet --target "$target.$glibc" -p warpgauge-instrument
library=$target_dir/$target/release/libwarpgauge_instrument.so
printf '%s\n' "$library"

bytes=$(stat --format=%s "$library")
[ "$bytes" -lt "$most_bytes" ] || fail "has $bytes bytes, more than $most_bytes"
[ -z "$(nm "$library" 2>/dev/null)" ] || fail "is not stripped"
printf 'size: %s bytes, stripped\n' "$bytes"

versions=$(readelf --version-info --wide "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV)
[ -n "$versions" ] || fail "names no version of GLIBC: was it linked at all?"
newest=$(tail -n 1 <<<"$versions")
highest=$(printf 'GLIBC_%s\n%s\n' "$glibc" "$newest" | sort -V | tail -n 1)
[ "$highest" = "GLIBC_$glibc" ] || fail "needs $newest, newer than $glibc"
printf 'symbol versions: %s\n' "$(tr '\n' ' ' <<<"$versions")"

needed=$(readelf --dynamic --wide "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort)
unknown=$(grep -vxE 'lib(c|dl|pthread|m|rt)\.so\.[0-9]|ld-linux-x86-64\.so\.2' <<<"$needed" || true)
[ -z "$unknown" ] || fail "needs $unknown beside the C library"
printf 'libraries: %s\n' "$(tr '\n' ' ' <<<"$needed")"

exported=$(nm -D --defined-only "$library" | awk '{ print $NF }' | LC_ALL=C sort | tr '\n' ' ')
entries="InitializeInjection InitializeInjectionNvtx2 warpgauge_attach warpgauge_mark \
warpgauge_range_begin warpgauge_range_end warpgauge_scope_begin warpgauge_scope_end "
[ "$exported" = "$entries" ] || fail "exports $exported"
printf 'exported: %s\n' "$exported"

readelf --dynamic --wide "$library" | grep -q NODELETE || fail "can be unmapped"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -std=gnu11 -O2 -Wall -Wextra -o "$work/load" tests/library/load.c -ldl
printf 'int InitializeInjection(void) { return 1; }\n' |
    cc -shared -fPIC -O2 -x c -o "$work/libempty.so" -
# A process that is not listed, which most are.
touch "$work/runtime.conf"
env -i WARPGAUGE_RUNTIME_CONFIG_PATH="$work/runtime.conf" \
    WARPGAUGE_MEASUREMENTS_OUTPUT_DIR="$work" WARPGAUGE_LOGFILE="$work/log" \
    "$work/load" "$library" "$work/libempty.so"
