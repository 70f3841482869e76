"""Asks Perfetto's own trace processor what is in a trace."""

import collections
import pathlib
import subprocess
import sys

QUERY = pathlib.Path(__file__).resolve().parents[1] / "trace_query.cjs"
SEPARATOR = "\x1f"

# Each query gives one column. A name may hold the tool's own separator and newlines.
QUERIES = {
    "faults": "select name || ' ' || value from stats"
    " where severity in ('error', 'data_loss') and value > 0",
    "slices": "select ts || char(31) || dur || char(31) ||"
    " replace(replace(name, char(10), ' '), char(13), ' ') from slice",
    "flows": "select a.ts || ' ' || b.ts from flow join slice a on slice_out = a.id"
    " join slice b on slice_in = b.id",
    "counters": "select c.ts || char(31) || t.name || char(31) || coalesce(t.unit, '')"
    " || char(31) || c.value from counter c join counter_track t on t.id = c.track_id",
}


def name_in_rows(name):
    return name.replace("\n", " ").replace("\r", " ")


class Trace:
    """What the trace processor says of one trace."""

    def __init__(self, engine, path):
        rows = ask(engine, path)
        self.faults = rows["faults"]
        self.slices = collections.Counter()
        for row in rows["slices"]:
            time, duration, name = row.split(SEPARATOR)
            self.slices[int(time), int(duration), name] += 1
        self.flows = collections.Counter(tuple(map(int, row.split())) for row in rows["flows"])
        self.counters = collections.Counter()
        for row in rows["counters"]:
            time, name, unit, value = row.split(SEPARATOR)
            self.counters[int(time), name.strip(), unit, float(value)] += 1


def ask(engine, trace):
    """The rows of every query. Each row begins with the query's name."""
    named = [
        f"with answer(line) as ({sql}) select '{name}' || char(30) || line from answer"
        for name, sql in QUERIES.items()
    ]
    command = ["node", str(QUERY), str(engine), str(trace), *named]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{trace}: {done.stderr}")
    rows = {name: [] for name in QUERIES}
    for line in done.stdout.split("\n"):
        name, separator, row = line.partition("\x1e")
        if separator:
            rows[name].append(row)
    return rows
