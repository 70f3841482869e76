"""G4: ids 0 to 3 of kernels with known counts, against arithmetic, ncu and the calculator."""

import csv
import io
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from analytic import coalescence_percent, divergence_percent, instructions, model
from injected import COALESCENCE, DIVERGENCE, OCCUPANCY, Tools, run_listed
from verdict import Verdict, within

QUESTION = "Are the numbers right?"
SECONDS = 130
LIMIT_PERCENT = 1
# Launches over six seconds, of which the last three count: by then the shape has had its window.
LOAD = ["--seconds", "6", "--rate", "200"]
SETTLE_SECONDS = 3
# Processes at a time: the counts of one do not depend on another.
AT_A_TIME = 4

SHAPES = [
    "coalesced=64:256", "coalesced=2000:1024", "strided=64:256:0:2", "strided=64:256:0:4",
    "strided=64:256:0:8", "strided=64:256:0:16", "strided=64:256:0:32", "scattered=64:256:0:256",
    "scattered=64:256:0:1048576", "divergent=64:256:0:2", "divergent=64:256:0:8",
    "shared=64:512:0:40", "compute=64:96:40000:100", "tiny=1:32",
]

METRICS = [
    "smsp__sass_inst_executed.sum",
    "smsp__inst_executed.sum",
    "smsp__sass_inst_executed_op_global.sum",
    "smsp__sass_l1tex_tags_mem_global.sum",
    "smsp__sass_branch_targets.sum",
    "smsp__sass_branch_targets_threads_divergent.sum",
]


def measured_by_ncu(tools: Tools, shape: str) -> dict[str, float]:
    """Metrics of one launch; none of those that this ncu does not know."""
    if shutil.which("ncu") is None or tools.dry_run:
        return {}
    command = [
        "ncu", "--csv", "--clock-control", "none", "--launch-count", "1",
        "--metrics", ",".join(METRICS), str(tools.launcher), str(tools.module), shape,
    ]
    output = subprocess.run(
        command, env=tools.environment(), capture_output=True, text=True, timeout=30
    ).stdout
    table = output[output.find('"ID"') :] if '"ID"' in output else ""
    found = {}
    for row in csv.DictReader(io.StringIO(table)):
        try:
            found[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        except (KeyError, ValueError):
            continue
    return found


def ratio(found: dict[str, float], above: str, below: str) -> float | None:
    if not found.get(below) or above not in found:
        return None
    return 100 * found[above] / found[below]


def measure(tools: Tools, text: str, counts: dict) -> tuple[dict, list[str]]:
    """One shape: each quantity as [published, analytic or the calculator's, by ncu]."""
    settings = {"WARPGAUGE_WINDOW_BUDGET_PERCENT": "100", "WARPGAUGE_WINDOW_INTERVAL": "0.01"}
    report, published, run = run_listed(
        tools, [*LOAD, text], "0,1,2,3", settle=SETTLE_SECONDS, **settings
    )
    shape = report["shapes"][0]
    kernel = shape["kernel"]
    ncu = measured_by_ncu(tools, text)
    analytic, found = None, None
    if kernel in counts:
        analytic = instructions(counts[kernel], shape) / shape["launches"]
    if published.instructions is not None and published.launches:
        found = published.instructions / published.launches
    row = {
        "launches": [run.published().launches, shape["launches"], None],
        "instructions": [found, analytic, ncu.get(METRICS[0], ncu.get(METRICS[1]))],
        "occupancy": [published.mean(OCCUPANCY), shape["occupancy_percent"], None],
        "coalescence": [
            published.mean(COALESCENCE), coalescence_percent(kernel, shape),
            ratio(ncu, METRICS[2], METRICS[3]),
        ],
        "divergence": [
            published.mean(DIVERGENCE), divergence_percent(kernel, shape),
            ratio(ncu, METRICS[5], METRICS[4]),
        ],
    }
    return row, run.said(4)


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {"percent": LIMIT_PERCENT}
    counts = model(tools.module, tools.cuobjdump)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        rows = list(pool.map(lambda text: measure(tools, text, counts), SHAPES))
    findings: list[bool | None] = []
    for text, (row, said) in zip(SHAPES, rows):
        verdict.measured[text] = row
        for value, *references in row.values():
            known = [reference for reference in references if reference is not None]
            # A number that is known and was not published is a failure.
            findings += [within(value, reference, LIMIT_PERCENT) or False for reference in known]
        if False in findings:
            verdict.notes.extend(said)
    verdict.notes = ["each list: published, analytic (or the calculator's), by ncu", *verdict.notes[:20]]
    verdict.decide(*findings)
