#!/usr/bin/env bash
# Runs the gates on this machine: run.sh [--dry-run] [--only g1,g4]
#
# Compiles the kernels for the GPU that is here, runs every gate, and leaves results.jsonl,
# gates.log and table.md in $OUT (default ./out), all of them as the gates go by. Under nine minutes.
# Without nvcc and cuobjdump it uses the kernels that were compiled along with the package. With
# --dry-run a stand-in takes the place of the driver, which shows that the harness works and says
# nothing about a GPU. An exit code of 1 means that a gate fails, 2 that nothing can be run.
set -euo pipefail
package=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$PWD/out}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An ordinary user must be able to read it, wherever the package lies.
chmod 755 "$work"
cp -r "$package" "$work/package"
chmod -R a+rX "$work/package"
package=$work/package
for folder in /usr/local/cuda/bin /usr/local/cuda/nsight-compute /opt/nvidia/nsight-compute/* \
    /opt/nvidia/nsight-systems/*/bin; do
    if [ -d "$folder" ]; then PATH=$PATH:$folder; fi
done

case " $* " in
*" --dry-run "*) architecture=90 ;;
*)
    architecture=$(nvidia-smi -i 0 --query-gpu=compute_cap --format=csv,noheader | tr -d ' .') ||
        { echo "nvidia-smi finds no GPU here" >&2; exit 2; }
    ;;
esac
cubin=$work/kernels.cubin
if command -v nvcc >/dev/null && command -v cuobjdump >/dev/null &&
    nvcc -O3 -cubin "-arch=sm_$architecture" -o "$cubin" "$package/kernels/kernels.cu"; then
    python3 "$package/analytic.py" "$cubin" >"$work/kernels.json"
else
    carried=$package/kernels/sm_$architecture
    [ -e "$carried.cubin" ] ||
        { echo "neither nvcc and cuobjdump nor kernels for sm_$architecture are here" >&2; exit 2; }
    echo "the kernels are those that came with the package"
    cp "$carried.cubin" "$cubin"
    cp "$carried.json" "$work/kernels.json"
fi
cp "$package/launcher" "$work/launcher"
python3 "$package/standin_device.py" "$work/kernels.json" >"$work/device"
python3 "$package/gates.py" --package "$package" --work "$work" --out "$out" "$@"
