#!/usr/bin/env bash
# Packs what a machine with a GPU needs for the gates: pack.sh [FOLDER]
#
# Builds the library and the programs and puts them, with this folder, into FOLDER (default
# target/gpu) and FOLDER.tar.gz. That machine needs CUDA 13 (nvcc, cuobjdump) and Python 3.10,
# and neither Rust nor a network; ncu, nsys and PyTorch are used where they are.
set -euo pipefail
cd "$(dirname "$0")/../.."
package=${1:-target/gpu}
most_mib=64

# The same libraries as a release; the stand-ins are for a dry run there and here.
cargo build --release --locked -p warpgauge -p warpgauge-instrument -p warpgauge-test-programs \
    -p standin-cuda -p standin-cupti
built=${CARGO_TARGET_DIR:-target}/release

rm -rf "$package" && mkdir -p "$package/standins"
cp tests/gpu/*.py tests/gpu/run.sh "$package/"
cp -r tests/gpu/gates tests/gpu/kernels tests/gpu/programs "$package/"
rm -rf "$package/__pycache__" "$package/gates/__pycache__"
cp "$built/libwarpgauge_instrument.so" "$built/warpgauge" "$built/warpgauge-host" "$package/"
# Copies under the names that programs look for.
cp "$built/libstandin_cuda.so" "$package/standins/libcuda.so.1"
cp "$built/libstandin_cupti.so" "$package/standins/libcupti.so.13"
tar -C "$(dirname "$package")" -czf "$package.tar.gz" "$(basename "$package")"

kib=$(du -sk "$package" | cut -f1)
echo "$package: $kib KiB"
if [ "$kib" -gt $((most_mib * 1024)) ]; then
    echo "$package is larger than $most_mib MiB" >&2
    exit 1
fi
