"""Writes the script of the stand-in driver for a dry run: standin_device.py KERNELS.json

A stand-in kernel does the same whatever its parameter is: what its machine code says for a
parameter of one (injected.py, `as_on_the_standin`). That is enough to exercise the gates.
"""

import json
import sys
from pathlib import Path

from analytic import DIVERGENT_ITERATIONS

# Accesses of one warp to global memory; with a parameter of one each touches one cache line.
ACCESSES = {
    "tiny": 0, "coalesced": 2, "strided": 2, "scattered": 2, "divergent": 1, "shared": 1,
    "compute": 1, "gemm": 1,
}


def main() -> None:
    counts = json.loads(Path(sys.argv[1]).read_text())
    print("device name=Stand-in compute_capability=9.0")
    for kernel, accesses in ACCESSES.items():
        instructions = sum(counts.get(kernel, (1, 0)))
        words = f"registers=32 instructions={instructions} global={accesses} lines={accesses}"
        if kernel == "divergent":
            words += f" branches={3 * DIVERGENT_ITERATIONS} divergent={2 * DIVERGENT_ITERATIONS}"
        print(f"kernel {kernel} {words}")


if __name__ == "__main__":
    main()
