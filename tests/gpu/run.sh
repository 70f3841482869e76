#!/usr/bin/env bash
# Runs the gates on this machine: run.sh [--dry-run] [--only g1,g4]
#
# Compiles the kernels for the GPU that is here, runs every gate, and leaves results.jsonl,
# gates.log and table.md in $OUT (default ./out). Under ten minutes. With --dry-run a stand-in takes
# the place of the driver, which shows that the harness works and says nothing about a GPU; give
# CUBIN=file to use kernels compiled elsewhere.
set -euo pipefail
package=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$PWD/out}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An ordinary user must be able to read it, wherever the package lies.
chmod 755 "$work"
cp -r "$package" "$work/package"
package=$work/package
for folder in /usr/local/cuda/bin /usr/local/cuda/nsight-compute; do
    if [ -d "$folder" ]; then PATH=$PATH:$folder; fi
done

case " $* " in
*" --dry-run "*) architecture=${ARCHITECTURE:-sm_90} ;;
*) architecture=sm_$(nvidia-smi -i 0 --query-gpu=compute_cap --format=csv,noheader | tr -d .) ;;
esac
if [ -n "${CUBIN:-}" ]; then
    cp "$CUBIN" "$work/kernels.cubin"
else
    nvcc -O3 -cubin -arch="$architecture" -o "$work/kernels.cubin" "$package/kernels/kernels.cu"
fi
c++ -std=c++17 -O2 -pthread -o "$work/launcher" "$package/programs/launcher.cpp" -ldl
python3 "$package/standin_device.py" "$work/kernels.cubin" >"$work/device"
python3 "$package/gates.py" --package "$package" --work "$work" --out "$out" "$@"
