"""Writes the script of the stand-in driver for a dry run: standin_device.py KERNELS.cubin

Each kernel executes what its machine code says for a parameter of one; that is enough to exercise
the gates.
"""

import shutil
import sys
from pathlib import Path

from analytic import model

KERNELS = ["tiny", "coalesced", "strided", "scattered", "divergent", "shared", "compute", "gemm"]


def main() -> None:
    counts = model(Path(sys.argv[1]), shutil.which("cuobjdump") or "cuobjdump")
    print("device name=Stand-in compute_capability=9.0")
    for kernel in KERNELS:
        constant, per_iteration = counts.get(kernel, (1, 0))
        print(f"kernel {kernel} registers=32 instructions={constant + per_iteration}")


if __name__ == "__main__":
    main()
