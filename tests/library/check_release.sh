#!/usr/bin/env bash
# Builds the library as it is released and checks what it asks of a system: check_release.sh
#
# Linked against GLIBC 2.28's symbols by zig, whatever this machine has, so that it loads on systems
# from 2018 on. Fails if it needs a newer symbol, exports more than its entry points, can be
# unmapped, or is larger than 1.5 MB. Prints the path of the library.
set -euo pipefail
cd "$(dirname "$0")/../.."
glibc=2.28
most_bytes=1500000
target=x86_64-unknown-linux-gnu
target_dir=${CARGO_TARGET_DIR:-target}

# The wheel brings zig along.
tools=$target_dir/zigbuild
if [ ! -x "$tools/bin/cargo-zigbuild" ]; then
    python3 -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet 'cargo-zigbuild==0.20.*'
fi
PATH=$(realpath "$tools")/bin:$PATH
cargo zigbuild --release --locked --quiet --target "$target.$glibc" -p warpgauge-instrument
library=$target_dir/$target/release/libwarpgauge_instrument.so

fail() {
    printf '%s: %s\n' "$library" "$1" >&2
    exit 1
}

newest=$(readelf --version-info --wide "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
highest=$(printf 'GLIBC_%s\n%s\n' "$glibc" "$newest" | sort -V | tail -n 1)
[ "$highest" = "GLIBC_$glibc" ] || fail "needs $newest, newer than $glibc"

exported=$(nm -D --defined-only "$library" | awk '{ print $NF }' | sort | tr '\n' ' ')
[ "$exported" = "InitializeInjection " ] || fail "exports $exported"

readelf --dynamic --wide "$library" | grep -q NODELETE || fail "can be unmapped"

bytes=$(stat --format=%s "$library")
[ "$bytes" -lt "$most_bytes" ] || fail "has $bytes bytes, more than $most_bytes"

printf '%s: %s bytes, %s\n' "$library" "$bytes" "$newest"
