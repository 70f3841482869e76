"""What the test kernels must count: from their machine code and from their index arithmetic.

    python3 analytic.py KERNELS.cubin      prints the instructions of each kernel as JSON

kernels/kernels.cu says which numbers follow from what.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

WARP = 32
ELEMENTS_PER_LINE = 128 // 4
DIVERGENT_ITERATIONS = 256

INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")


class NotPredictable(Exception):
    """A kernel whose count does not follow from its code alone."""


def disassemble(cubin: Path, cuobjdump: str = "cuobjdump") -> str:
    return subprocess.run(
        [cuobjdump, "-sass", str(cubin)], check=True, capture_output=True, text=True, timeout=60
    ).stdout


def functions(sass: str) -> dict[str, list[tuple[int, str, str, str]]]:
    """Instructions of each function: address, predicate or "", operation, operands."""
    found: dict[str, list[tuple[int, str, str, str]]] = {}
    for part in re.split(r"Function : ", sass)[1:]:
        name = part.split(None, 1)[0]
        found[name] = [
            (int(address, 16), predicate or "", operation, operands.strip())
            for address, predicate, operation, operands in INSTRUCTION.findall(part)
        ]
    return found


def instructions_of_warp(code: list[tuple[int, str, str, str]]) -> tuple[int, int]:
    """Instructions of one warp as (constant, per iteration): constant + per_iteration x parameter.

    Understands straight code and one loop that runs at least once; a branch forward is the one
    that skips the loop, which is not taken.
    """
    total, loop = 0, 0
    for place, (address, predicate, operation, operands) in enumerate(code):
        total += 1
        if operation == "EXIT":
            if predicate:
                raise NotPredictable("a thread may leave early")
            return total - loop, loop
        if operation.split(".")[0] in {"BRA", "BRX", "CALL", "JMP", "BSSY", "RET"}:
            target = re.search(r"(0x[0-9a-f]+)\s*$", operands)
            if operation.split(".")[0] != "BRA" or target is None:
                raise NotPredictable(f"{operation} {operands}")
            start = int(target[1], 16)
            if start > address:
                continue
            if loop:
                raise NotPredictable("more than one loop")
            loop = sum(1 for instruction in code[: place + 1] if instruction[0] >= start)
    raise NotPredictable("no EXIT")


def model(cubin: Path, cuobjdump: str = "cuobjdump") -> dict[str, tuple[int, int]]:
    """(constant, per iteration) of every kernel that can be predicted."""
    found = {}
    for name, code in functions(disassemble(cubin, cuobjdump)).items():
        if name == "gemm":
            continue  # Its parameter is not the number of its iterations.
        try:
            found[name] = instructions_of_warp(code)
        except NotPredictable:
            continue
    return found


def instructions(model_of_kernel: tuple[int, int], shape: dict) -> int:
    """Warp-level instructions of all launches of a shape, as the launcher reports it."""
    constant, per_iteration = model_of_kernel
    warps = -(-shape["block"] // WARP)
    return warps * (constant * shape["blocks"] + per_iteration * shape["block_parameters"])


def lines_touched(indices: list[int]) -> int:
    return len({index // ELEMENTS_PER_LINE for index in indices})


def coalescence_percent(kernel: str, shape: dict) -> float | None:
    """100 x accesses / cache lines of one launch; None for a kernel without global accesses."""
    if kernel in {"tiny", "gemm"}:
        return None
    threads = range(shape["grid"] * shape["block"])
    parameter = shape["parameter"]
    if kernel == "strided":
        index = [thread * parameter for thread in threads]
    elif kernel == "scattered":
        index = [(thread * 2654435761 % 2**32) & (parameter - 1) for thread in threads]
    else:
        index = list(threads)
    warps = [index[start : start + WARP] for start in range(0, len(index), WARP)]
    return 100 * len(warps) / sum(lines_touched(warp) for warp in warps)


def divergence_percent(kernel: str, shape: dict) -> float | None:
    """Targets of branches that part a warp, of all targets; None where it is not stated."""
    if kernel != "divergent":
        return None
    parting = DIVERGENT_ITERATIONS / shape["parameter"]
    return 100 * 2 * parting / (2 * DIVERGENT_ITERATIONS + parting)


if __name__ == "__main__":
    tool = sys.argv[2] if len(sys.argv) > 2 else "cuobjdump"
    print(json.dumps(model(Path(sys.argv[1]), tool)))
