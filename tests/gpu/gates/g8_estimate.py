"""G8: a minute of many shapes, data-dependent counts and two threads, at the default budget."""

from analytic import instructions, model
from injected import Tools, run_listed
from verdict import Verdict, within

QUESTION = "Are estimated instructions within 2 % of the full count?"
SECONDS = 100
LIMIT_PERCENT = 2
LOAD_SECONDS = 60
# With one window a second every shape has had one by then.
SETTLE_SECONDS = 14

SHAPES = [
    "compute=64:256:0:50", "compute=16:128:0:10-200", "compute=128:64:0:5", "coalesced=256:256",
    "strided=64:256:0:8", "shared=64:512:0:20-60", "scattered=32:256:0:65536", "tiny=1:32",
]


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {"percent": LIMIT_PERCENT, "seconds": LOAD_SECONDS}
    seconds = SETTLE_SECONDS + (5 if tools.dry_run else LOAD_SECONDS)
    arguments = ["--seconds", str(seconds), "--threads", "2", "--rate", "2000", *SHAPES]
    report, published, run = run_listed(tools, arguments, "0", 90, settle=SETTLE_SECONDS)
    counts = model(tools.module, tools.cuobjdump)
    exact = sum(instructions(counts[shape["kernel"]], shape) for shape in report["shapes"])
    launches = sum(shape["launches"] for shape in report["shapes"])
    total = run.published()
    found = None
    if published.instructions is not None and published.launches:
        found = published.instructions / published.launches
    verdict.measured = {
        "instructions_per_launch": found,
        "instructions_per_launch_counted": exact / launches,
        "error_percent": 100 * (found * launches / exact - 1) if found is not None else None,
        "error_percent_from_the_first_launch": (
            100 * (total.instructions / exact - 1) if total.instructions is not None else None
        ),
        "launches": total.launches,
        "launches_counted": launches,
    }
    verdict.notes.extend(run.said(8))
    verdict.decide(
        within(found, exact / launches, LIMIT_PERCENT) or False, total.launches == launches
    )
