#!/usr/bin/env bash
# Compiles the test kernels for every architecture without a GPU: compile.sh [FOLDER]
#
# Takes nvcc and cuobjdump from the path, or fetches NVIDIA's compiler packages from PyPI into
# FOLDER (default target/cuda, some 300 MB), and leaves there and prints, for each architecture, the
# instructions that the machine code of each kernel counts. Too heavy for every change; run it when
# kernels/ or analytic.py changes.
set -euo pipefail
cd "$(dirname "$0")/../.."
prefix=$(realpath -m "${1:-target/cuda}")
if ! command -v nvcc >/dev/null || ! command -v cuobjdump >/dev/null; then
    if [ ! -x "$prefix/bin/nvcc" ]; then
        wheels=$prefix/wheels
        mkdir -p "$wheels"
        python3 -m pip download --quiet --no-deps --dest "$wheels" 'nvidia-cuda-nvcc==13.0.*' \
            'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-runtime==13.0.*' \
            'nvidia-cuda-cccl==13.0.*' nvidia-cuda-cuobjdump 'nvidia-cuda-nvdisasm==13.2.*'
        for wheel in "$wheels"/*.whl; do
            python3 -m zipfile -e "$wheel" "$prefix/unpacked"
        done
        # All packages share one layout: bin, include, lib, nvvm.
        cp -r "$prefix"/unpacked/nvidia/*/. "$prefix/"
        rm -rf "$prefix/unpacked" "$wheels"
        chmod +x "$prefix"/bin/* "$prefix"/nvvm/bin/*
    fi
    PATH=$prefix/bin:$PATH
fi
mkdir -p "$prefix"
for architecture in 75 80 86 89 90 100 120; do
    kernels=$prefix/sm_$architecture
    nvcc -O3 -cubin -arch=sm_$architecture -o "$kernels.cubin" tests/gpu/kernels/kernels.cu
    python3 tests/gpu/analytic.py "$kernels.cubin" >"$kernels.json"
    echo "sm_$architecture $(cat "$kernels.json")"
done
