"""Converts Kineto traces to Perfetto's form and lets Perfetto's own trace processor say what is in them.

usage: judge.py CONVERTER WEB_DIST TRACE...

CONVERTER reads Kineto's JSON and writes Perfetto packets (the example kineto_to_perfetto). What it
should hold is counted here from the JSON by Python's reader, with times as exact decimals.
"""

import collections
import decimal
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

QUERY = pathlib.Path(__file__).with_name("trace_query.cjs")
SEPARATOR = "\x1f"


def nanoseconds(microseconds):
    return int(decimal.Decimal(microseconds) * 1000)


def events_of(path):
    raw = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    return raw, json.loads(raw, parse_float=str, parse_int=str)["traceEvents"]


def query(dist, trace, sql):
    """The rows of one query; a text column holds what may hold the tool's own separator."""
    command = ["node", str(QUERY), str(dist), str(trace), sql]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{trace}: {done.stderr}")
    return done.stdout.split("\n")[1:-1]


def expected_slices(events):
    slices = collections.Counter()
    for event in events:
        if event["ph"] in "Xi":
            duration = nanoseconds(event.get("dur", "0"))
            slices[nanoseconds(event["ts"]), duration, event["name"]] += 1
    return slices


def expected_flows(events):
    ends = collections.defaultdict(dict)
    for event in events:
        if event["ph"] in "sf":
            ends[event["cat"], event["id"]][event["ph"]] = nanoseconds(event["ts"])
    return sorted((end["s"], end["f"]) for end in ends.values() if len(end) == 2)


def judge(converter, dist, path):
    raw, events = events_of(path)
    with tempfile.NamedTemporaryFile(suffix=".pftrace") as trace:
        subprocess.run([converter], input=raw, stdout=trace, check=True, stderr=subprocess.DEVNULL)
        faults = query(
            dist,
            trace.name,
            "select name || ' ' || value from stats"
            " where severity in ('error', 'data_loss') and value > 0",
        )
        text = "ts || char(31) || dur || char(31) || replace(name, char(10), ' ')"
        rows = query(dist, trace.name, f"select {text} from slice")
        found = collections.Counter()
        for row in rows:
            time, duration, name = row.split(SEPARATOR)
            found[int(time), int(duration), name] += 1
        flows = query(
            dist,
            trace.name,
            "select a.ts || ' ' || b.ts from flow join slice a on slice_out = a.id"
            " join slice b on slice_in = b.id",
        )
    slices, expected = expected_slices(events), expected_flows(events)
    flows = sorted(tuple(map(int, row.split())) for row in flows)
    missing, surplus = slices - found, found - slices
    good = not faults and not missing and not surplus and flows == expected
    print(f"{'ok ' if good else 'BAD'} {path.name}: {sum(found.values())} of {sum(slices.values())}"
          f" slices, {len(flows)} of {len(expected)} flows, faults: {faults}")
    for said, what in (("missing", missing), ("surplus", surplus)):
        for item in list(what)[:5]:
            print(f"    {said}: {item}")
    return good


def main():
    converter, dist, *paths = sys.argv[1:]
    results = [judge(converter, pathlib.Path(dist), pathlib.Path(path)) for path in paths]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
