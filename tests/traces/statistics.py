"""Compares what `warpgauge events stat --json` says of traces with HolisticTraceAnalysis 0.5.0.

usage: statistics.py WARPGAUGE TRACE...

Run it with a Python that has HolisticTraceAnalysis==0.5.0. The traces are Kineto's, each of one
device; besides, a job of four ranks is made up, and a copy of it is summed up with its events in any
order. Compared are, for each rank: idle, compute and non-compute time, the share of communication
that is hidden, the idle times of each stream by reason, the delays of launches, and sum, mean,
shortest and longest run of each kernel.

HolisticTraceAnalysis takes each slice for a kernel that has a stream, those of the host included. It
is given the traces without the streams of slices on the host. Its times are doubles of microseconds:
with an epoch's microseconds in them they are off by up to half a nanosecond each.
"""

import gzip
import json
import logging
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

# This file has the name of a module of Python's own, which others import.
HERE = pathlib.Path(__file__).resolve().parent
sys.path = [place for place in sys.path if pathlib.Path(place).resolve() != HERE]
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

from hta.trace_analysis import TraceAnalysis  # noqa: E402

DEVICE = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "cuda_sync", "cuda_event"}
COMPARED = 0


def same(what, ours, theirs, tolerance):
    global COMPARED
    COMPARED += 1
    if ours is None or not abs(ours - theirs) <= tolerance:
        sys.exit(f"{what}: {ours}, HolisticTraceAnalysis {theirs} (within {tolerance})")


def load(path):
    raw = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    return json.loads(raw)


def made_rank(rank, world_size, chance):
    """A training step again and again: copies, kernels, and collectives on a stream of their own."""
    events, now, correlation = [], 1000.0 + rank, 100
    free = {7: now, 13: now, 20: now}

    def call(name, length):
        nonlocal now, correlation
        correlation += 1
        events.append({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 900 + rank, "tid": 1,
                       "ts": round(now, 3), "dur": round(length, 3), "args": {"correlation": correlation}})
        now = round(now + length + chance.uniform(0.2, 3), 3)

    def work(category, name, stream, length, more=(), after=0.0):
        start = round(max(free[stream], now, after) + chance.choice([0.002, 0.9, 6.0, 45.0]), 3)
        if chance.random() < 0.5:
            start = round(max(free[stream], after), 3) + chance.choice([0.0, 0.004, 1.5])
            start = round(max(start, now - 1.0), 3)
        length = round(length, 3)
        free[stream] = round(start + length, 3)
        events.append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream, "ts": start,
                       "dur": length, "args": {"device": 0, "stream": stream, "correlation": correlation,
                                               **dict(more)}})
        return free[stream]

    events.append({"ph": "X", "cat": "cpu_op", "name": "aten::step", "pid": 900 + rank, "tid": 1,
                   "ts": now - 5, "dur": 1.0, "args": {}})
    for _ in range(60):
        call("cudaMemcpyAsync", chance.uniform(2, 6))
        work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 13, chance.uniform(5, 40), {"bytes": 1 << 20}.items())
        for layer in range(chance.randint(2, 6)):
            call("cudaLaunchKernel", chance.uniform(2, 8))
            done = work("kernel", f"gemm_{layer}", 7, chance.uniform(1, 60) * (1.3 if rank == 2 else 1))
        call("cudaLaunchKernelExC", chance.uniform(2, 8))
        work("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 20, chance.uniform(20, 90), after=done - 30)
        if chance.random() < 0.3:
            call("cudaMemsetAsync", 2.5)
            work("gpu_memset", "Memset (Device)", 7, chance.uniform(0.5, 3))
        if chance.random() < 0.2:
            correlation += 1
            work("kernel", "of_a_call_that_is_not_in_the_trace", 7, 4.0)
        now = round(max(now, free[7] - chance.uniform(-20, 60)), 3)
    return {"schemaVersion": 1, "baseTimeNanoseconds": 1727743122000000000,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size},
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": events}


def stat(binary, paths):
    done = subprocess.run([binary, "events", "stat", "--json", "--top", "1000000", *map(str, paths)],
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"warpgauge events stat: {done.stdout[-500:]} {done.stderr}")
    return json.loads(done.stdout)


def compare(binary, what, traces, folder):
    """Compares traces by rank; gives what warpgauge says of them."""
    ours, theirs = {}, {}
    for rank, document in traces.items():
        ours[rank] = folder / f"ours_{rank}.json"
        ours[rank].write_text(json.dumps(document))
        events = [dict(event) for event in document["traceEvents"]]
        for event in events:
            if event.get("cat") not in DEVICE and "stream" in event.get("args", {}):
                event["args"] = {key: value for key, value in event["args"].items() if key != "stream"}
        theirs[rank] = folder / f"theirs_{rank}.json"
        theirs[rank].write_text(json.dumps({**document, "traceEvents": events}))
    told = stat(binary, ours.values())
    hta = TraceAnalysis(trace_files={rank: str(path) for rank, path in theirs.items()}, trace_dir=str(folder))
    latest = max(event["ts"] for document in traces.values() for event in document["traceEvents"] if "dur" in event)
    # A double is off by half of its last digit at each end of each slice.
    work = sum(len(document["traceEvents"]) for document in traces.values())
    off = max(math.ulp(latest) * 2 * work, 1e-6)
    breakdown = hta.get_temporal_breakdown(visualize=False).set_index("rank")
    overlap = hta.get_comm_comp_overlap(visualize=False).set_index("rank")
    for rank, trace in zip(traces, told["traces"]):
        (device,) = trace["devices"]
        row, at = breakdown.loc[rank], f"{what}, rank {rank}"
        for key, column in [("idle_ns", "idle_time"), ("compute_ns", "compute_time"),
                            ("non_compute_ns", "non_compute_time"), ("span_ns", "kernel_time")]:
            same(f"{at}: {key}", device[key] / 1000, row[f"{column}(us)"], off)
        for key, column in [("idle_ns", "idle_time_pctg"), ("compute_ns", "compute_time_pctg")]:
            same(f"{at}: {key}", 100 * device[key] / device["span_ns"], row[column], 0.00501)
        communication, hidden = device["communication"], overlap.loc[rank]["comp_comm_overlap_pctg"]
        if communication is None:
            assert math.isnan(hidden), (at, hidden)
        else:
            share = 100 * communication["hidden_ns"] / communication["time_ns"]
            same(f"{at}: hidden communication", share, hidden, 0.00501)
        reasons, _ = hta.get_idle_time_breakdown(ranks=[rank], visualize=False)
        streams = {stream["row"]: stream for stream in device["streams"]}
        for _, reason in reasons.iterrows():
            key = {"host_wait": "host_wait_ns", "kernel_wait": "kernel_wait_ns", "other": "other_idle_ns"}
            value = streams[reason["stream"]][key[reason["idle_category"]]] / 1000
            same(f"{at}: stream {reason['stream']}: {reason['idle_category']}", value, reason["idle_time"], off + 0.00501)
        delays = hta.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False)[rank]["launch_delay"]
        if len(delays):
            back = device["launch_to_start"]["from_return"]
            same(f"{at}: launches", back["count"], len(delays), 0)
            for key, value in [("min_ns", delays.min()), ("max_ns", delays.max()), ("mean_ns", delays.mean())]:
                same(f"{at}: launch delay {key}", back[key] / 1000, value, off + 0.001)
            for key, part in [("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99)]:
                value = sorted(delays)[max(math.ceil(part * len(delays)), 1) - 1]
                same(f"{at}: launch delay {key}", back[key] / 1000, value, off + 0.001 + value / 256)
    kernels(what, hta, told, off)
    return told


def kernels(what, hta, told, off):
    _, theirs = hta.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=10**6)
    theirs = theirs.groupby("name").agg({"sum (us)": "sum", "max (us)": "max", "min (us)": "min"})
    ours = {kernel["name"]: kernel for kernel in told["kernels"]}
    copies = {copy["kind"]: copy for copy in told["copies"]}
    for name, row in theirs.iterrows():
        if name in copies:
            same(f"{what}: {name}", copies[name]["time_ns"] / 1000, row["sum (us)"], off)
            continue
        if name not in ours and "Sync" in name:
            continue
        for key, column in [("time_ns", "sum (us)"), ("longest_ns", "max (us)"), ("shortest_ns", "min (us)")]:
            same(f"{what}: {name}: {key}", ours[name][key] / 1000, row[column], off)


def main():
    binary, *paths = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for path in map(pathlib.Path, paths):
            document = load(path)
            if not any(event.get("cat") in DEVICE for event in document["traceEvents"]):
                print(f"{path.name}: nothing ran on a device")
                continue
            compare(binary, path.name, {0: document}, folder)
            print(f"{path.name}: as HolisticTraceAnalysis says")
        chance = random.Random(5)
        ranks = {rank: made_rank(rank, 4, chance) for rank in range(4)}
        told = compare(binary, "four ranks", ranks, folder)
        for rank in ranks.values():
            chance.shuffle(rank["traceEvents"])
            (folder / f"ours_{rank['distributedInfo']['rank']}.json").write_text(json.dumps(rank))
        shuffled = stat(binary, [folder / f"ours_{rank}.json" for rank in ranks])
        assert shuffled == told, "in any order the sums are the same"
        print("four ranks: as HolisticTraceAnalysis says, in any order of events")
    print(f"{COMPARED} figures compared")


if __name__ == "__main__":
    main()
