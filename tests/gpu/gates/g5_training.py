"""G5: a PyTorch training run with and without the library."""

import subprocess
import sys

from injected import ALL_FUNCTIONS, Run, Tools
from verdict import NotHere, Verdict

QUESTION = "Does a real program survive?"
SECONDS = 90
SECONDS_OF_A_RUN = 40


def training(tools: Tools) -> list[str]:
    """The command; NotHere without PyTorch and a GPU."""
    if tools.dry_run:
        raise NotHere("a stand-in trains nothing")
    question = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    try:
        found = subprocess.run([sys.executable, "-c", question], capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise NotHere("PyTorch is installed and does not start within a minute") from None
    if found.returncode != 0:
        raise NotHere("PyTorch with CUDA is not installed")
    return [sys.executable, str(tools.package / "programs/training.py")]


def train(tools: Tools, command: list[str], inject: bool, **environment: str):
    """One run; what it printed and what the library published."""
    with Run(tools, command, inject=inject, **environment) as run:
        run.list_for(ALL_FUNCTIONS if inject else "")
        report = run.finish(SECONDS_OF_A_RUN)
        return report, run.published(), run.said(8)


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {"seconds_of_a_run": SECONDS_OF_A_RUN, "weights": "bit for bit the same"}
    command = training(tools)
    without, _, _ = train(tools, command, inject=False)
    verdict.measured = {"without": without}
    verdict.keep(tools)
    with_library, published, said = train(tools, command, inject=True)
    verdict.notes.extend(said)
    verdict.measured = {
        "without": without,
        "with": with_library,
        "launches": published.launches,
        "instructions": published.instructions,
        "percents": {str(key): published.mean(key) for key in published.percents},
    }
    verdict.decide(without["weights"] == with_library["weights"], published.launches > 0)
