"""G8: a minute of many shapes, data-dependent counts and two threads, at the default budget."""

from analytic import instructions, model
from injected import Tools, run_listed
from verdict import Verdict, within

QUESTION = "Are estimated instructions within 2 % of the full count?"
SECONDS = 100
LIMIT_PERCENT = 2
LOAD_SECONDS = 60

SHAPES = [
    "compute=64:256:0:50", "compute=16:128:0:10-200", "compute=128:64:0:5", "coalesced=256:256",
    "strided=64:256:0:8", "shared=64:512:0:20-60", "scattered=32:256:0:65536", "tiny=1:32",
]


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {"percent": LIMIT_PERCENT, "seconds": LOAD_SECONDS}
    seconds = 6 if tools.dry_run else LOAD_SECONDS
    report, published, run = run_listed(
        tools, ["--seconds", str(seconds), "--threads", "2", "--rate", "2000", *SHAPES], "0", 90
    )
    counts = model(tools.module, tools.cuobjdump)
    exact = sum(instructions(counts[shape["kernel"]], shape) for shape in report["shapes"])
    found = published.instructions
    verdict.measured = {
        "instructions": found,
        "instructions_counted": exact,
        "error_percent": 100 * (found / exact - 1) if found is not None else None,
        "launches": published.launches,
        "launches_counted": sum(shape["launches"] for shape in report["shapes"]),
    }
    verdict.notes.extend(run.said(8))
    verdict.decide(within(found, exact, LIMIT_PERCENT) or False)
