"""G6: wall time of two loops with and without the library, interleaved, medians."""

import statistics

from injected import ALL_FUNCTIONS, Tools, run_listed
from verdict import Verdict

QUESTION = "What does it cost?"
SECONDS = 120
ROUNDS = 3
LIMITS = {"unlisted": 0.5, "occupancy": 1.0, "all": 2.0}
# Launches are scaled to some two seconds on the GPU that is here.
LOOP_SECONDS = 2
LOOPS = {
    "gemm": (4000, ["--drain", "16", "gemm=4096:256:0:1024"]),
    "small_kernels": (500_000, ["coalesced=32:128", "compute=32:128:0:4"]),
}


def scaled(tools: Tools, launches: int, arguments: list[str]) -> list[str]:
    """The launcher's arguments for a loop of `LOOP_SECONDS`, after a tenth of it as a trial."""
    trial = ["--launches", str(launches // 10), *arguments]
    report, _, _ = run_listed(tools, trial, "", inject=False)
    factor = LOOP_SECONDS / max(10 * report["seconds"], 0.1)
    return ["--launches", str(int(launches * min(max(factor, 0.02), 10))), *arguments]


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {f"{mode}_percent": limit for mode, limit in LIMITS.items()}
    verdict.notes.append("unlisted passes within the noise of the measurement, at least 0.5 %")
    verdict.notes.append("all includes the first windows of every shape, not the steady state alone")
    modes = {"bare": "", "unlisted": "", "occupancy": "1", "all": ALL_FUNCTIONS}
    rounds = 1 if tools.dry_run else ROUNDS
    findings: list[bool | None] = []
    for loop, (launches, rest) in LOOPS.items():
        arguments = scaled(tools, launches, rest)
        seconds: dict[str, list[float]] = {mode: [] for mode in modes}
        memory: dict[str, int] = {}
        for _ in range(rounds):
            for mode, functions in modes.items():
                report, _, _ = run_listed(tools, arguments, functions, inject=mode != "bare")
                seconds[mode].append(report["seconds"])
                memory[mode] = report["peak_memory_kib"]
        medians = {mode: statistics.median(values) for mode, values in seconds.items()}
        costs = {mode: 100 * (medians[mode] / medians["bare"] - 1) for mode in LIMITS}
        noise = 100 * (max(seconds["bare"]) - min(seconds["bare"])) / medians["bare"]
        verdict.measured[loop] = {
            "arguments": " ".join(arguments),
            "seconds": seconds,
            "median_seconds": medians,
            "cost_percent": costs,
            "noise_percent": noise,
            "peak_memory_kib": memory,
        }
        verdict.keep(tools)
        findings += [
            costs["unlisted"] <= max(LIMITS["unlisted"], noise),
            costs["occupancy"] <= LIMITS["occupancy"],
            costs["all"] <= LIMITS["all"],
        ]
    if tools.dry_run:
        verdict.notes.append("a stand-in's kernels take no time: what they cost says nothing")
        findings = [None]
    verdict.decide(*findings)
