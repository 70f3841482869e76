"""G1: a thousand windows over alternating kernels, with lazy and with eager module loading.

Both kernels execute the same number of instructions a launch, by the choice of their grids. Once
every launch shape has had its window, a file therefore says exactly launches x that number; one
window that counted anything else would show in every file until the shape is measured again.
"""

import time

from injected import INSTRUCTIONS, LAUNCHES, TWO_INTERVALS, Run, Tools
from verdict import Verdict

QUESTION = "Do windows work again and again in one process?"
SECONDS = 70
SECONDS_OF_A_MODE = 30
WINDOWS_OF_A_MODE = 500
# Launch shapes of each kernel. A shape is measured again after 0.04 s, 0.08 s and so on, some eight
# times in the run; all of them come by between two windows.
VARIANTS = 100
RATE = 10_000
WINDOW_INTERVAL = 0.02
BLOCK = 256


def shapes(tools: Tools) -> tuple[list[str], int]:
    """Two kernels of the same work, and the instructions of one launch."""
    counts, iterations = tools.counts(), tools.parameter(20)
    straight = counts["coalesced"][0]
    loop = counts["compute"][0] + counts["compute"][1] * iterations
    texts = [f"coalesced={loop}:{BLOCK}", f"compute={straight}:{BLOCK}:0:{iterations}"]
    return texts, straight * loop * BLOCK // 32


def differing_files(run: Run, skip: int, per_launch: int) -> tuple[int, list[str]]:
    """Files after the first so many, and those of them that say another number."""
    files, differing = run.files()[skip:], []
    for path in files:
        lines = dict(line.split(":") for line in path.read_text().splitlines())
        expected = int(lines.get(str(LAUNCHES), 0)) * per_launch
        if int(lines.get(str(INSTRUCTIONS), -1)) != expected:
            differing.append(f"{path.name}: {lines}, expected {expected}")
    return len(files), differing


def measure(tools: Tools, verdict: Verdict, loading: str) -> bool | None:
    """Whether every window was right and they were enough; open where they were right and slow."""
    texts, per_launch = shapes(tools)
    command = [
        str(tools.launcher), str(tools.module), "--pause", "--variants", str(VARIANTS),
        "--seconds", "600", "--rate", str(RATE), *texts,
    ]
    settings = {
        "CUDA_MODULE_LOADING": loading,
        "WARPGAUGE_WINDOW_BUDGET_PERCENT": "100",
        "WARPGAUGE_WINDOW_INTERVAL": str(WINDOW_INTERVAL),
    }

    def windows(enough: int) -> bool:
        return run.health().get("windows", 0) >= enough

    with Run(tools, command, **settings) as run:
        run.wait_until_ready()
        run.list_for("0")
        run.go_on()
        # Each shape once, and a flush more, for what was launched before the last one.
        # Each shape once. What waited for that is published with the next file.
        run.wait_until(lambda: windows(2 * VARIANTS), 10)
        time.sleep(TWO_INTERVALS)
        first = len(run.files())
        run.wait_until(lambda: windows(WINDOWS_OF_A_MODE), SECONDS_OF_A_MODE - 15)
        run.wait_until(lambda: len(run.files()) > first + 1, 3)
        health = run.health()
        files, differing = differing_files(run, first, per_launch)
        verdict.notes += [*run.said(4), *differing[:3]]
    verdict.measured[loading.lower()] = {
        "windows": health.get("windows"),
        "windows_discarded": health.get("windows_discarded"),
        "window_time_ns": health.get("window_time_ns"),
        "state": health.get("state"),
        "reason": health.get("reason"),
        "launches_measured_share": health.get("launches_measured_share"),
        "instructions_per_launch_analytic": per_launch,
        "files": files,
        "files_with_another_count": len(differing),
    }
    if not health.get("windows") or files == 0 or differing or health.get("reason"):
        return False
    return True if windows_were_enough(health, verdict) else None


def windows_were_enough(health: dict, verdict: Verdict) -> bool:
    enough = health["windows"] >= WINDOWS_OF_A_MODE
    if not enough:
        verdict.notes.append(f"{health['windows']} windows, all right, in the time that there was")
    return enough


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {"windows_per_mode": WINDOWS_OF_A_MODE, "files_with_another_count": 0}
    findings: list[bool | None] = []
    for loading in ("LAZY", "EAGER"):
        findings.append(measure(tools, verdict, loading))
        verdict.keep(tools)
    verdict.decide(*findings)
