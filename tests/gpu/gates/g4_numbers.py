"""G4: ids 0 to 3 of kernels with known counts, against arithmetic, ncu and the calculator."""

import csv
import io
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from analytic import coalescence_percent, divergence_percent, instructions
from injected import COALESCENCE, DIVERGENCE, OCCUPANCY, Tools, run_listed
from verdict import Verdict, within

QUESTION = "Are the numbers right?"
SECONDS = 90
LIMIT_PERCENT = 1
# The shape has its window while the launcher warms up.
LOAD = ["--seconds", "3", "--rate", "200"]
WARM_UP_SECONDS = 3
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


def measured_by_ncu(tools: Tools, shape: str) -> tuple[dict[str, float], list[str]]:
    """Metrics of one launch, none of those that this ncu does not know; what it said without any."""
    if shutil.which("ncu") is None or tools.dry_run:
        return {}, []
    command = [
        "ncu", "--csv", "--clock-control", "none", "--launch-count", "1",
        "--metrics", ",".join(METRICS), str(tools.launcher), str(tools.module), shape,
    ]
    try:
        done = subprocess.run(
            command, env=tools.environment(), capture_output=True, text=True, timeout=30
        )
    except subprocess.TimeoutExpired:
        return {}, [f"ncu did not end with {shape}"]
    output = done.stdout
    table = output[output.find('"ID"') :] if '"ID"' in output else ""
    found = {}
    for row in csv.DictReader(io.StringIO(table)):
        try:
            found[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        except (KeyError, ValueError):
            continue
    return found, [] if found else [f"ncu: {(output + done.stderr)[-300:]}"]


def ratio(found: dict[str, float], above: str, below: str) -> float | None:
    if not found.get(below) or above not in found:
        return None
    return 100 * found[above] / found[below]


def measure(tools: Tools, text: str, counts: dict) -> tuple[dict, list[str]]:
    """One shape: each quantity as [published, analytic or the calculator's, by ncu]."""
    settings = {"WARPGAUGE_WINDOW_BUDGET_PERCENT": "100", "WARPGAUGE_WINDOW_INTERVAL": "0.01"}
    report, published, run = run_listed(
        tools, [*LOAD, text], "0,1,2,3", warm_up=WARM_UP_SECONDS, **settings
    )
    shape = report["shapes"][0]
    kernel = shape["kernel"]
    ncu, complaints = measured_by_ncu(tools, text)
    analytic, found = None, None
    if kernel in counts:
        analytic = instructions(counts[kernel], shape) / shape["launches"]
    if published.instructions is not None and published.launches:
        found = published.instructions / published.launches
    row = {
        "launches": [published.launches, shape["launches"], None],
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
    return row, [*run.said(4), *complaints]


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {"percent": LIMIT_PERCENT}
    counts = tools.counts()
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        rows = list(pool.map(lambda text: measure(tools, text, counts), SHAPES))
    findings: list[bool | None] = []
    for text, (row, said) in zip(SHAPES, rows):
        verdict.measured[text] = row
        held = [
            # A number that is known and was not published is a failure.
            within(value, reference, LIMIT_PERCENT) or False
            for value, *references in row.values()
            for reference in references
            if reference is not None
        ]
        findings += held
        if False in held or any(line.startswith("ncu") for line in said):
            verdict.notes.extend([text, *said])
    verdict.notes = ["each list: published, analytic (or the calculator's), by ncu", *verdict.notes[:20]]
    verdict.decide(*findings)
