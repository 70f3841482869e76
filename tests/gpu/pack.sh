#!/usr/bin/env bash
# Packs what a machine with a GPU needs for the gates: pack.sh [FOLDER]
#
# Builds the library, the stand-ins for a dry run, the launcher and the test kernels, and puts them,
# with this folder, into FOLDER (default target/gpu) and FOLDER.tar.gz. That machine needs an NVIDIA
# driver, CUPTI 13 and Python 3.10, and neither Rust, a compiler nor a network; nvcc, ncu, nsys and
# PyTorch are used where they are. Everything is linked against GLIBC 2.28.
set -euo pipefail
cd "$(dirname "$0")/../.."
package=$(realpath -m "${1:-target/gpu}")
glibc=2.28
target=x86_64-unknown-linux-gnu
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
most_mib=64

tests/library/install_zigbuild.sh "$target_dir/zigbuild"
PATH=$target_dir/zigbuild/bin:$PATH
cargo zigbuild --release --locked --quiet --target "$target.$glibc" \
    -p warpgauge-instrument -p standin-cuda -p standin-cupti
built=$target_dir/$target/release
tests/gpu/compile.sh "$target_dir/cuda"

rm -rf "$package" && mkdir -p "$package/standins"
cp tests/gpu/*.py tests/gpu/run.sh "$package/"
cp -r tests/gpu/gates tests/gpu/kernels tests/gpu/programs "$package/"
rm -rf "$package/__pycache__" "$package/gates/__pycache__"
cp "$target_dir"/cuda/sm_*.cubin "$target_dir"/cuda/sm_*.json "$package/kernels/"
cp "$built/libwarpgauge_instrument.so" "$package/"
# Copies under the names that programs look for.
cp "$built/libstandin_cuda.so" "$package/standins/libcuda.so.1"
cp "$built/libstandin_cupti.so" "$package/standins/libcupti.so.13"
"$target_dir/zigbuild/bin/python" -m ziglang c++ -target "x86_64-linux-gnu.$glibc" -std=c++17 -O2 \
    -s -pthread -o "$package/launcher" tests/gpu/programs/launcher.cpp -ldl

for file in "$package"/*.so "$package"/standins/* "$package/launcher"; do
    newest=$(readelf --version-info --wide "$file" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    highest=$(printf 'GLIBC_%s\n%s\n' "$glibc" "$newest" | sort -V | tail -n 1)
    if [ "$highest" != "GLIBC_$glibc" ]; then
        echo "$file needs $newest, newer than $glibc" >&2
        exit 1
    fi
done
tar -C "$(dirname "$package")" -czf "$package.tar.gz" "$(basename "$package")"
kib=$(du -sk "$package" | cut -f1)
echo "$package: $kib KiB, $(du -sk "$package.tar.gz" | cut -f1) KiB packed"
if [ "$kib" -gt $((most_mib * 1024)) ]; then
    echo "$package is larger than $most_mib MiB" >&2
    exit 1
fi
