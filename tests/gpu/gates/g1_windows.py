"""G1: a thousand windows over alternating kernels, with lazy and with eager module loading."""

from analytic import instructions, model
from injected import Run, Tools
from verdict import Verdict, within

QUESTION = "Do windows work again and again in one process?"
SECONDS = 80
WINDOWS_OF_A_MODE = 500
# Two kernels, each in so many grid sizes. A shape is measured again at growing intervals, some ten times in the run.
GRIDS = 30


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {"windows_per_mode": WINDOWS_OF_A_MODE, "instructions_percent": 0.5}
    counts = model(tools.module, tools.cuobjdump)
    findings: list[bool | None] = []
    for loading in ("LAZY", "EAGER"):
        command = [
            str(tools.launcher), str(tools.module), "--pause", "--grids", str(GRIDS),
            "--seconds", "30", "--rate", "1000", "coalesced=1:256", "compute=1:128:0:20",
        ]
        settings = {
            "CUDA_MODULE_LOADING": loading,
            "WARPGAUGE_WINDOW_BUDGET_PERCENT": "100",
            "WARPGAUGE_WINDOW_INTERVAL": "0.01",
        }
        with Run(tools, command, **settings) as run:
            run.wait_until_ready()
            run.list_for("0")
            run.go_on()
            run.wait_until(lambda: run.health().get("windows", 0) >= WINDOWS_OF_A_MODE, 29)
            health, complete = run.health(), len(run.files())
            report = run.finish(20)
            # Files from when every shape had been measured: what they say is exact.
            late = run.published(skip_files=complete)
        expected = [instructions(counts[shape["kernel"]], shape) for shape in report["shapes"]]
        launches = sum(shape["launches"] for shape in report["shapes"])
        per_launch = sum(expected) / launches
        found = late.instructions / late.launches if late.instructions and late.launches else None
        verdict.measured[loading.lower()] = {
            "windows": health.get("windows"),
            "windows_discarded": health.get("windows_discarded"),
            "window_time_ns": health.get("window_time_ns"),
            "state": health.get("state"),
            "reason": health.get("reason"),
            "instructions_per_launch": found,
            "instructions_per_launch_analytic": per_launch,
        }
        verdict.notes.extend(run.said(4))
        windows = health.get("windows")
        findings += [
            windows is not None and windows >= WINDOWS_OF_A_MODE,
            within(found, per_launch, 0.5) or False,
        ]
    verdict.decide(*findings)
