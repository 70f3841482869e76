"""Converts traces and lets software that is not ours say what is in them.

usage: judge CONVERTER ENGINE SESSION

CONVERTER is the example convert_trace, ENGINE the folder of Perfetto's trace processor, SESSION that of
a session in GPU Flight's forms (tests/fixtures/gpuflight/generate_session.py).
"""

import decimal
import json
import pathlib
import subprocess
import sys
import tempfile

from breakdowns import ANALYSES, breakdowns
from expectations import OfKineto, OfSession, load
from oddities import odd_trace
from trace_processor import Trace

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "kineto"
CHANNELS = ("device", "scope", "system")
FORMS = ("kineto", "chrome", "perfetto")


class Judge:
    def __init__(self, converter, engine, folder):
        self.converter, self.engine, self.folder = converter, engine, pathlib.Path(folder)
        self.is_good = True

    def convert(self, raw, source, form):
        """The path of the trace in that form."""
        path = self.folder / f"{form}.json"
        with path.open("wb") as output:
            command = [self.converter, source, form]
            subprocess.run(command, input=raw, stdout=output, stderr=subprocess.DEVNULL, check=True)
        return path

    def say(self, what, faults):
        print(f"{'BAD' if faults else 'ok '} {what}", flush=True)
        for fault in faults[:5]:
            print(f"    {fault}")
        self.is_good &= not faults

    def same(self, what, found, expected):
        self.say(what, [] if found == expected else [f"found {found}", f"expected {expected}"])

    def shown(self, what, trace, expected, only_expected=False):
        """Whether the trace processor shows what it should, without a fault."""
        faults = list(trace.faults)
        for kind in ("slices", "flows"):
            found, wanted = getattr(trace, kind), getattr(expected, kind)
            faults += [f"{kind} missing: {item}" for item in wanted - found]
            if not only_expected:
                faults += [f"{kind} surplus: {item}" for item in found - wanted]
        count = f"{expected.slices.total()} slices, {expected.flows.total()} flows"
        self.say(f"{what}: Perfetto shows {count}", faults)

    def kineto_trace(self, path):
        raw, document = load(path)
        original = self.folder / "original.json"
        original.write_bytes(raw)
        name, expected = path.name.split(".")[0], OfKineto(document)
        analysed = breakdowns(original)
        for form in FORMS:
            converted = self.convert(raw, "kineto", form)
            self.shown(f"{name} as {form}", Trace(self.engine, converted), expected)
            if form != "perfetto":
                seen = f"HTA sees {analysed['kernels'][0]} slices on streams"
                self.same(f"{name} as {form}: {seen}", breakdowns(converted), analysed)
            if form == "kineto":
                again = json.loads(converted.read_bytes(), parse_float=decimal.Decimal)
                self.same(f"{name} as kineto: equal", plain(again), plain(document))

    def odd_trace(self):
        """What profilers write seldom. Kineto's form has no lanes, so viewers drop slices of it."""
        raw = json.dumps(odd_trace()).encode()
        expected = OfKineto(json.loads(raw, parse_float=decimal.Decimal))
        for form in ("chrome", "perfetto"):
            converted = self.convert(raw, "kineto", form)
            self.shown(f"odd trace as {form}", Trace(self.engine, converted), expected)

    def session(self, folder):
        expected = OfSession(folder / "fat")
        told = {}
        for source in ("fat", "columnar_alldetail"):
            logs = [folder / source / f"train.{channel}.log" for channel in CHANNELS]
            raw = b"".join(log.read_bytes() for log in logs)
            for form in FORMS:
                what = f"session ({source}) as {form}"
                converted = self.convert(raw, "gpu-flight", form)
                trace = Trace(self.engine, converted)
                self.session_shown(what, trace, expected, calls=source == "fat", form=form)
                if form != "perfetto":
                    found = breakdowns(converted)
                    count, length = expected.on_streams()
                    seen = f"{what}: HTA sees {count} kernels and copies of {length} ns"
                    self.same(seen, found["kernels"], (count, length))
                    # Batches do not tell the calls, without which there are no reasons to be idle.
                    of_work = [found[name] for name in ("kernels", "get_temporal_breakdown")]
                    first = told.setdefault("work", of_work)
                    self.same(f"{what}: its breakdowns are those of the others", of_work, first)
                    if source == "fat":
                        broken = [name for name in ANALYSES if str(found[name]).endswith("Error")]
                        self.say(f"{what}: HTA computes all breakdowns", broken)

    def session_shown(self, what, trace, expected, calls, form):
        """Batches do not tell when calls were made: then only the work is compared."""
        if calls:
            self.shown(what, trace, expected, only_expected=True)
        else:
            missing = [f"missing: {item}" for item in expected.kernels - trace.slices]
            seen = f"{what}: Perfetto shows {expected.kernels.total()} kernels"
            self.say(seen, trace.faults + missing)
        unit = "mW" if form == "perfetto" else ""
        power = {(time, value) for time, name, of, value in trace.counters
                 if "power" in name and of == unit}
        missing = [item for item in expected.power if item not in power]
        self.say(f"{what}: {len(expected.power)} values of power", missing)


def plain(document):
    """A document as it means: a record without arguments has none, and numbers are numbers."""
    for event in document["traceEvents"]:
        if event["ph"] in "Xi":
            event.setdefault("args", {})
    return document


def main():
    converter, engine, session = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(converter, engine, folder)
        for path in sorted(FIXTURES.glob("*.json*")):
            if not path.name.startswith("invalid"):
                judge.kineto_trace(path)
        judge.odd_trace()
        judge.session(pathlib.Path(session))
    sys.exit(0 if judge.is_good else 1)


if __name__ == "__main__":
    main()
