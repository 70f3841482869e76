"""The result of one gate."""

import json
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable

from injected import Tools


class NotHere(Exception):
    """Something that the gate needs is not on this machine."""


@dataclass
class Verdict:
    """What a gate found. `passes` is None where the question stays open."""

    gate: str
    question: str
    passes: bool | None = None
    measured: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def keep(self, tools: Tools) -> None:
        """Leaves what is known so far for `gates.py`, in case this gate never ends."""
        partial(tools, self.gate).write_text(json.dumps(asdict(self)))

    def decide(self, *findings: bool | None) -> None:
        """Passes when all findings hold, fails when one does not; open where one is unknown."""
        if any(finding is False for finding in findings):
            self.passes = False
        else:
            self.passes = None if None in findings or not findings else True


def partial(tools: Tools, gate: str) -> Path:
    """Where a gate leaves what it knows so far."""
    return tools.work / f"{gate}.partial.json"


def judge(gate: Callable[[Tools, Verdict], None], verdict: Verdict, tools: Tools) -> str:
    """Runs a gate and returns its verdict as JSON, whatever happens in it."""
    try:
        gate(tools, verdict)
    except NotHere as missing:
        verdict.passes = None
        verdict.notes.append(f"not run: {missing}")
    except Exception as error:  # One gate's fault is a result, and no other gate's business.
        verdict.passes = False
        verdict.notes.append(f"{type(error).__name__}: {error}")
        verdict.notes.extend(traceback.format_exc(limit=-2).splitlines()[-4:])
    return json.dumps(asdict(verdict), indent=1)


def within(value: float | None, expected: float | None, percent: float) -> bool | None:
    """Whether a value is as expected, relative to what is expected; None without a value."""
    if value is None or expected is None:
        return None
    return abs(value - expected) <= abs(expected) * percent / 100
