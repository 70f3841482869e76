"""What a converted trace should show, counted from its source by Python's own reader.

Times are exact: decimal microseconds are read as text, and nanoseconds as whole numbers.
"""

import collections
import decimal
import gzip
import json

from trace_processor import name_in_rows

DAY = 86_400_000_000_000
HOUR = 3_600_000_000_000


def nanoseconds(microseconds):
    return int(decimal.Decimal(microseconds) * 1000)


def load(path):
    raw = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    return raw, json.loads(raw, parse_float=decimal.Decimal)


class OfKineto:
    """Of a trace in Kineto's form."""

    def __init__(self, document):
        self.slices, self.flows = collections.Counter(), collections.Counter()
        ends = collections.defaultdict(dict)
        for event in document["traceEvents"]:
            if event["ph"] in "Xi":
                key = nanoseconds(event["ts"]), nanoseconds(event.get("dur", 0))
                self.slices[(*key, name_in_rows(event["name"]))] += 1
            if event["ph"] in "sf":
                ends[event["cat"], event["id"]][event["ph"]] = nanoseconds(event["ts"])
        for end in ends.values():
            if len(end) == 2:
                self.flows[end["s"], end["f"]] += 1


class OfSession:
    """Of a session in GPU Flight's wide form: what is drawn as slices, arrows and counters."""

    def __init__(self, folder):
        self.lines = []
        for channel in ("device", "scope", "system"):
            log = folder / f"train.{channel}.log"
            self.lines += [json.loads(line) for line in log.read_text().splitlines()]
        self.slices, self.flows = collections.Counter(), collections.Counter()
        self.power, self.kernels = collections.Counter(), collections.Counter()
        begun = []
        # The base time: the midnight at least an hour before the session.
        base = (self.lines[0]["ts_ns"] - HOUR) // DAY * DAY
        for line in self.lines:
            kind = line["type"]
            if kind in ("kernel_event", "memcpy_event"):
                start, call = line["start_ns"] - base, line["api_start_ns"] - base
                kernel = kind == "kernel_event"
                name = line["name"] if kernel else copy_name(line)
                self.slices[start, line["end_ns"] - line["start_ns"], name] += 1
                if kernel:
                    self.kernels[start, line["end_ns"] - line["start_ns"], name] += 1
                called = "cudaLaunchKernel" if kernel else line["name"]
                self.slices[call, line["api_exit_ns"] - line["api_start_ns"], called] += 1
                self.flows[call, start] += 1
            elif kind == "scope_begin":
                begun.append(line)
            elif kind == "scope_end":
                place = max(i for i, it in enumerate(begun) if it["user_scope"] == line["user_scope"])
                start = begun.pop(place)["ts_ns"]
                self.slices[start - base, line["ts_ns"] - start, line["name"]] += 1
            for device in line.get("devices", []) if kind == "system_sample" else []:
                self.power[line["ts_ns"] - base, float(device["power_mw"])] += 1

    def on_streams(self):
        """How many kernels and copies there are, and how long they ran."""
        work = [line for line in self.lines if line["type"] in ("kernel_event", "memcpy_event")]
        return len(work), sum(line["end_ns"] - line["start_ns"] for line in work)


def copy_name(line):
    return f"Memcpy {line['copy_kind']} ({line['src_kind']} -> {line['dst_kind']})"
