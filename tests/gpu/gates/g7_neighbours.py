"""G7: other profilers in the same process: both sides work, or ours says why it does not."""

import shutil

from g5_training import train, training
from injected import ALL_FUNCTIONS, Run, Tools
from verdict import NotHere, Verdict

QUESTION = "Who else may be there?"
SECONDS = 130

LAUNCHES = ["--launches", "20000", "--rate", "4000", "coalesced=64:256", "compute=32:128:0:50"]


def under(tools: Tools, tool: list[str], name: str) -> dict:
    """Runs the launcher, listed, under a tool."""
    if tools.dry_run or shutil.which(tool[0]) is None:
        return {"not_here": True}
    command = [*tool, str(tools.launcher), str(tools.module), *LAUNCHES]
    with Run(tools, command) as run:
        # The tool starts the program, whose pid is not its own: list every child of it.
        found = run.wait_until(lambda: bool(children(run.process.pid)), 10)
        pids = children(run.process.pid)
        run.runtime_config.write_text("".join(f"{pid}:{ALL_FUNCTIONS}\n" for pid in pids))
        try:
            run.process.communicate(timeout=40)
        except Exception as error:
            return {"program_ended": False, "error": str(error)[:200], "said": run.said(6)}
        return {
            "program_ended": run.process.returncode == 0,
            "found_child": found is not None,
            "published_launches": run.published().launches,
            "said": run.said(6),
            "tool": name,
        }


def children(pid: int) -> list[int]:
    """The process and all that come from it."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            direct = [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []
    return [one for child in direct for one in [child, *children(child)]]


def gate(tools: Tools, verdict: Verdict) -> None:
    verdict.limits = {"program": "ends well", "library": "publishes, or says why not"}
    measured = verdict.measured
    measured["ncu"] = under(tools, ["ncu", "--launch-count", "3", "--clock-control", "none"], "ncu")
    measured["nsys"] = under(tools, ["nsys", "profile", "-t", "cuda", "-o", "report"], "nsys")
    try:
        command = training(tools)
        report, published, said = train(tools, command, inject=True, TRAINING_PROFILE="1")
        measured["torch_profiler_after_us"] = {
            "program_ended": True,
            "kernels_seen_by_it": report["profiled_kernels"],
            "published_launches": published.launches,
            "said": said,
        }
    except NotHere as missing:
        measured["torch_profiler_after_us"] = {"not_here": True, "why": str(missing)}
    tried = [found for found in measured.values() if not found.get("not_here")]
    if not tried:
        raise NotHere("neither ncu, nsys nor PyTorch can run here")
    for found in tried:
        found["both_sides_heard"] = bool(found.get("published_launches") or found.get("said"))
    verdict.decide(*(found["program_ended"] and found["both_sides_heard"] for found in tried))
