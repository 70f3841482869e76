#!/usr/bin/env python3
"""Writes the table of docs/gpu/README.md from results.jsonl beside it.

    python3 table.py ../../docs/gpu

Without results each gate is "not run". A dry run is no result and is refused.
"""

import json
import sys
from pathlib import Path

GATES = {
    "G1": "Do windows work again and again in one process?",
    "G2": "Can we attach late, when the context exists and kernels run?",
    "G3": "Does it work as an ordinary user?",
    "G4": "Are the numbers right?",
    "G5": "Does a real program survive?",
    "G6": "What does it cost?",
    "G7": "Who else may be there?",
    "G8": "Are estimated instructions within 2 % of the full count?",
}
HEAD = """# What a GPU says

The gates are questions that only a machine with a GPU can answer. `tests/gpu/README.md` says how to run them; `results.jsonl`, where there is one, is what they measured. This file is written by `tests/gpu/table.py`.

"""
WORDS = {True: "passes", False: "**fails**", None: "open"}


def cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "; ".join(f"{key} {cell(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return " / ".join(cell(inner) for inner in value)
    return "none" if value is None else str(value).replace("|", "\\|").replace("\n", " ")


def overview(results: list[dict]) -> list[str]:
    known = {result["gate"]: result for result in results}
    lines = [
        "| gate | question | result | date | GPU | driver | CUDA |", "|---|---|---|---|---|---|---|"
    ]
    for gate, question in GATES.items():
        result = known.get(gate)
        if result is None:
            lines.append(f"| {gate} | {question} | not run | | | | |")
            continue
        word = WORDS[result["passes"]] + (" (dry run)" if result["dry_run"] else "")
        about = [cell(result[key] or "") for key in ("date", "gpu", "driver", "cuda")]
        lines.append(f"| {gate} | {question} | {word} | {' | '.join(about)} |")
    return lines


def details(result: dict) -> list[str]:
    lines = ["", f"## {result['gate']}: {result['question']}", "", "| measured | value |", "|---|---|"]
    lines += [f"| {cell(key)} | {cell(value)} |" for key, value in result["measured"].items()]
    lines += ["", f"Limits: {cell(result['limits']) or 'none'}.", ""]
    lines += [f"- {cell(note)}" for note in result["notes"]]
    return lines


def table(results: list[dict]) -> str:
    """The table and, below it, what each gate measured."""
    lines = overview(results)
    for result in results:
        lines += details(result)
    return "\n".join(lines) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    path = folder / "results.jsonl"
    text = path.read_text() if path.exists() else ""
    results = [json.loads(line) for line in text.splitlines()]
    if any(result["dry_run"] for result in results):
        sys.exit(f"{path}: a dry run says nothing about a GPU")
    (folder / "README.md").write_text(HEAD + table(results))


if __name__ == "__main__":
    main()
