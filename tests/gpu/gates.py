#!/usr/bin/env python3
"""Runs the gates, each in a process and with a time limit of its own, and writes what they found.

    python3 gates.py --package DIR --work DIR --out DIR [--dry-run] [--only g4,g6]

DIR of --out gets results.jsonl (one JSON object a line, one line a gate, written as soon as the
gate ends), gates.log and table.md. The exit code is 1 if a gate fails.
"""

import argparse
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "gates")]

from injected import Tools, cupti_elsewhere  # noqa: E402
from table import table  # noqa: E402
from verdict import Verdict, judge, partial  # noqa: E402

GATES = [
    "g1_windows", "g2_late", "g3_user", "g4_numbers", "g5_training", "g6_cost", "g7_neighbours",
    "g8_estimate",
]
# All gates together: with the compiler, the whole run ends within nine minutes. What is left when
# it is over is not run.
SECONDS = 500
LOG_BYTES = 8 << 20


def first_line(command: list[str], pattern: str = ".+") -> str | None:
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(pattern, output.stdout) if output.returncode == 0 else None
    return found[0].strip() if found else None


def machine(dry_run: bool) -> dict:
    """What the results hold for."""
    query = ["nvidia-smi", "--format=csv,noheader", "-i", "0"]
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "gpu": None if dry_run else first_line([*query, "--query-gpu=name"]),
        "driver": None if dry_run else first_line([*query, "--query-gpu=driver_version"]),
        "cuda": None if dry_run else first_line(["nvcc", "--version"], r"V\d+\.\d+\.\d+")
        or first_line(["nvidia-smi"], r"CUDA Version: [\d.]+"),
        "cupti": None if dry_run else cupti_elsewhere() or "where it usually is",
        "user_id": os.geteuid(),
        "dry_run": dry_run,
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry-run", action="store_true", help="on the stand-in driver")
    parser.add_argument("--only", help="such as g1,g4")
    parser.add_argument("--judge", help=argparse.SUPPRESS)
    return parser.parse_args()


def run_one(name: str, tools: Tools) -> None:
    """The process of one gate: its verdict is the last thing it says."""
    module = importlib.import_module(name)
    verdict = Verdict(name.split("_")[0].upper(), module.QUESTION)
    print(judge(module.gate, verdict, tools), flush=True)


def kept(tools: Tools, verdict: Verdict) -> Verdict:
    """What a gate without a verdict left of its measurements, as a failure."""
    try:
        known = json.loads(partial(tools, verdict.gate).read_text())
        verdict = Verdict(**known | {"notes": [*verdict.notes, *known["notes"]]})
    except (OSError, ValueError):
        verdict.notes.append("no measurement was left")
    verdict.passes = False
    return verdict


def run_apart(name: str, words: list[str], seconds: float, tools: Tools, log) -> Verdict:
    """Runs a gate in a session of its own and ends all of that when the time is over."""
    question = importlib.import_module(name).QUESTION
    verdict = Verdict(name.split("_")[0].upper(), question)
    command = [sys.executable, str(HERE / "gates.py"), *words, "--judge", name]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    ended = True
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        ended, output = False, ""
    finally:
        try:
            # The session's processes are all this gate's.
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if not ended:
        verdict.notes.append(f"did not end within {seconds:.0f} s")
        try:
            output, _ = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            verdict.notes.append("something that it started still holds its output")
    log.write(f"== {name}\n{output}\n")
    log.flush()
    start = output.find("{\n")
    if ended and start >= 0:
        return Verdict(**json.loads(output[start:]))
    if ended:
        verdict.notes.append(f"ended without a verdict, exit code {process.returncode}")
        verdict.notes.extend(output.splitlines()[-6:])
    return kept(tools, verdict)


def main() -> int:
    options = arguments()
    tools = Tools(options.package.resolve(), options.work.resolve(), options.dry_run)
    if options.judge:
        run_one(options.judge, tools)
        return 0
    chosen = [name for name in GATES if not options.only or name[:2] in options.only.split(",")]
    words = sys.argv[1:]
    options.out.mkdir(parents=True, exist_ok=True)
    here = machine(options.dry_run)
    started = time.monotonic()
    results = []
    log_path = options.out / "gates.log"
    with open(options.out / "results.jsonl", "w") as lines, open(log_path, "w") as log:
        for name in chosen:
            left = SECONDS - (time.monotonic() - started)
            limit = min(importlib.import_module(name).SECONDS, left)
            if limit < 5:
                question = importlib.import_module(name).QUESTION
                verdict = Verdict(name[:2].upper(), question, notes=["not run: no time left"])
            else:
                began = time.monotonic()
                verdict = run_apart(name, words, limit, tools, log)
                verdict.measured["gate_seconds"] = round(time.monotonic() - began, 1)
            result = vars(verdict) | here
            lines.write(json.dumps(result) + "\n")
            lines.flush()
            results.append(result)
            # As it stands after every gate: whoever ends the run early has a table.
            (options.out / "table.md").write_text(table(results))
            print(f"{verdict.gate}: {verdict.passes} {verdict.notes[:1]}", flush=True)
    log_path.write_bytes(log_path.read_bytes()[-LOG_BYTES:])
    return 1 if any(result["passes"] is False for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
