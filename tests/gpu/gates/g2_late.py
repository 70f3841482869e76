"""G2: a process that is listed when its context is old and its kernels run."""

import time

from analytic import instructions
from injected import Run, Tools
from verdict import Verdict, within

QUESTION = "Can we attach late, when the context exists and kernels run?"
SECONDS = 30
# A polling interval until the library sees that it is listed, a window's interval, and a flush
# until the health file says so, each a second; and half of one of grace.
LATEST_SECONDS = 3.5


def attach_late(tools: Tools, verdict: Verdict, user: int | None = None) -> None:
    """Starts a program, lists it after three seconds, and compares instructions per launch."""
    verdict.limits = {"first_window_seconds": LATEST_SECONDS, "instructions_percent": 1}
    command = [
        str(tools.launcher), str(tools.module), "--seconds", "14", "--rate", "1000",
        "coalesced=64:256", "compute=32:128:0:50",
    ]
    with Run(tools, command, user=user) as run:
        time.sleep(3)
        mapped = "libcupti" in open(f"/proc/{run.process.pid}/maps").read()
        run.list_for("0,1")
        first_window = run.wait_until(lambda: run.health().get("windows", 0) > 0, 8)
        # The second shape has its window a second later; what follows is complete.
        time.sleep(3)
        complete = len(run.files())
        report = run.finish(25)
        published = run.published(skip_files=complete)
        verdict.notes.extend(run.said())
    counts = tools.counts()
    launches = sum(shape["launches"] for shape in report["shapes"])
    expected = sum(instructions(counts[shape["kernel"]], shape) for shape in report["shapes"])
    found = published.instructions
    per_launch = found / published.launches if found and published.launches else None
    verdict.measured = {
        "first_window_seconds": first_window,
        "cupti_mapped_before_listing": mapped,
        "instructions_per_launch": per_launch,
        "instructions_per_launch_analytic": expected / launches,
        "launches_published_after_attaching": published.launches,
        "occupancy_percent": published.mean(1),
    }
    verdict.decide(
        first_window is not None and first_window <= LATEST_SECONDS,
        not mapped,
        within(per_launch, expected / launches, 1) or False,
    )


def gate(tools: Tools, verdict: Verdict) -> None:
    attach_late(tools, verdict)
