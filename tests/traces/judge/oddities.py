"""A trace of what profilers write seldom."""


def odd_trace():
    """Slices that overlap partly, begin together or take no time; odd names and ids; the base time
    behind the events; arrows that lead across lanes and from nowhere."""

    def event(phase, name, pid, tid, time, **more):
        return {"ph": phase, "cat": "cpu_op", "name": name, "pid": pid, "tid": tid, "ts": time, **more}

    def slices(pid, tid, spans):
        for place, (start, length) in enumerate(spans):
            yield event("X", f"{pid} {tid} {place}", pid, tid, start / 1000, dur=length / 1000)

    def arrow(phase, number, pid, tid, time):
        return event(phase, "ac2g", pid, tid, time, id=number, cat="ac2g", bp="e")

    spans = [(0, 1000), (500, 1000), (500, 100), (500, 1000), (900, 900), (2000, 0), (2000, 5), (1, 1)]
    names = ["\"quoted\" \\ back", "äöü \U0001f600", "x" * 1000]
    events = [*slices(7, 8, spans), *slices("Spans", "a row", spans), *slices(0, 3, reversed(spans))]
    events += [event("X", name, 1, 2, place, dur=0.25) for place, name in enumerate(names)]
    events += [arrow("s", 1, 7, 8, 0.5), arrow("f", 1, 0, 3, 0.9)]
    return {"schemaVersion": 1, "traceEvents": events, "baseTimeNanoseconds": 1_700_000_000 * 10**9}
