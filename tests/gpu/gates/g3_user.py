"""G3: the same as G2 as an ordinary user."""

import os

from g2_late import SECONDS, attach_late
from injected import ORDINARY_USER, Tools
from verdict import Verdict

__all__ = ["QUESTION", "SECONDS", "gate"]

QUESTION = "Does it work as an ordinary user?"


def gate(tools: Tools, verdict: Verdict) -> None:
    user = ORDINARY_USER if os.geteuid() == 0 else None
    attach_late(tools, verdict, user)
    verdict.measured["user_id"] = os.geteuid() if user is None else user
