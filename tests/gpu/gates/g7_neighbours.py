"""G7: other profilers in the same process: both sides work, or ours says why it does not."""

import shutil
import subprocess
import time
from pathlib import Path

from g5_training import train, training
from injected import ALL_FUNCTIONS, TWO_INTERVALS, Run, Tools
from verdict import NotHere, Verdict

QUESTION = "Who else may be there?"
SECONDS = 110
SECONDS_OF_A_RUN = 35

LAUNCHES = ["--seconds", "6", "--rate", "2000", "coalesced=64:256", "compute=32:128:0:50"]
TOOLS = {
    # The command, and what shows that it did its work: words of its output, or a file.
    "ncu": (["ncu", "--launch-count", "3", "--clock-control", "none"], "Duration", None),
    "nsys": (["nsys", "profile", "-t", "cuda", "-o", "report"], None, "report.nsys-rep"),
}


def children(pid: int) -> list[int]:
    """All processes that come from this one."""
    try:
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        direct = [int(word) for task in tasks for word in task.read_text().split()]
    except OSError:
        return []
    return [one for child in direct for one in [child, *children(child)]]


def loaded_by(pids: list[int]) -> bool:
    """Whether the library is in one of these processes."""
    for pid in pids:
        try:
            if "libwarpgauge" in Path(f"/proc/{pid}/maps").read_text():
                return True
        except OSError:
            continue
    return False


def works(name: str, folder: Path, output: str) -> bool:
    _, word, file = TOOLS[name]
    return word in output if word else (folder / file).exists()


def works_alone(tools: Tools, name: str) -> bool:
    """Whether the tool does its work without us: its counters may be for administrators alone."""
    command = [*TOOLS[name][0], str(tools.launcher), str(tools.module), *LAUNCHES]
    with Run(tools, command, inject=False) as run:
        try:
            output, _ = run.process.communicate(timeout=SECONDS_OF_A_RUN)
        except subprocess.TimeoutExpired:
            return False
        return works(name, run.folder, output)


def under(tools: Tools, name: str) -> dict:
    """Runs the launcher under a tool, and lists it while it runs."""
    command, *_ = TOOLS[name]
    if tools.dry_run or shutil.which(command[0]) is None:
        return {"not_here": True}
    with Run(tools, [*command, str(tools.launcher), str(tools.module), *LAUNCHES]) as run:
        # The tool starts the program: the pid that we have is the tool's own.
        started = run.wait_until(lambda: bool(children(run.process.pid)), 15)
        time.sleep(1)
        pids = children(run.process.pid)
        run.list_for(ALL_FUNCTIONS, pids)
        run.wait_until(lambda: loaded_by(pids), 3)
        loaded = loaded_by(pids)
        try:
            output, _ = run.process.communicate(timeout=SECONDS_OF_A_RUN)
        except subprocess.TimeoutExpired:
            for pid in children(run.process.pid):
                subprocess.run(["kill", "-KILL", str(pid)], check=False)
            return {"program_ended": False, "library_loaded": loaded, "said": run.said(6)}
        worked = works(name, run.folder, output)
        if not worked and not works_alone(tools, name):
            return {"not_here": True, "why": f"does not work here alone either: {output[-300:]}"}
        return {
            "program_ended": run.process.returncode == 0 and started is not None,
            "other_side_worked": worked,
            "library_loaded": loaded,
            "published_launches": run.published().launches,
            "said": run.said(6),
            "its_last_words": [] if run.process.returncode == 0 else output.splitlines()[-4:],
        }


def profiled(tools: Tools, command: list[str], when: str) -> dict:
    """A training run with PyTorch's profiler after the library has begun to measure, or before."""
    if when == "after":
        report, published, said = train(tools, command, inject=True, TRAINING_PROFILE="after")
    else:
        with Run(tools, command, TRAINING_PROFILE="before") as run:
            run.wait_until_ready()
            run.list_for(ALL_FUNCTIONS)
            time.sleep(TWO_INTERVALS)
            run.go_on()
            report = run.finish(SECONDS_OF_A_RUN)
            published, said = run.published(), run.said(8)
    return {
        "program_ended": True,
        # A step launches several kernels; a profiler that lost its slot half way saw fewer.
        "other_side_worked": report["kernels_seen"] >= report["steps_profiled"],
        "kernels_seen_by_it": report["kernels_seen"],
        "library_loaded": True,
        "published_launches": published.launches,
        "said": said,
    }


def both_sides_are_well(found: dict) -> bool:
    """The tool worked; ours published, or said why not, or was not loaded: nsys and ncu may take
    the place of the injected library for themselves."""
    ours = found.get("published_launches") or found.get("said") or not found["library_loaded"]
    return bool(found["program_ended"] and found.get("other_side_worked") and ours)


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {
        "program": "ends well", "other tool": "works", "library": "publishes, or says why not"
    }
    measured = verdict.measured
    for name in TOOLS:
        measured[name] = under(tools, name)
        verdict.keep(tools)
    for when in ("after", "before"):
        try:
            measured[f"torch_profiler_{when}_us"] = profiled(tools, training(tools), when)
        except NotHere as missing:
            measured[f"torch_profiler_{when}_us"] = {"not_here": True, "why": str(missing)}
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            measured[f"torch_profiler_{when}_us"] = {
                "program_ended": False, "library_loaded": True, "why": str(error)[-400:]
            }
        verdict.keep(tools)
    tried = {name: found for name, found in measured.items() if not found.get("not_here")}
    verdict.notes += [f"{name} is not here" for name in measured if name not in tried]
    if not tried:
        raise NotHere("neither ncu, nsys nor PyTorch can run here")
    well = {name: both_sides_are_well(found) for name, found in tried.items()}
    verdict.notes += [f"{name}: see its measurements" for name, fine in well.items() if not fine]
    # Where a tool is missing, its question stays open.
    verdict.decide(*well.values(), *([None] if len(tried) < len(measured) else []))
