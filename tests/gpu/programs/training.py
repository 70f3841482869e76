"""A small training run with what real ones have: data loaders, threads, a CUDA graph.

Prints one line of JSON: a digest of the weights, the last loss, and seconds. Deterministic: two
runs print the same digest. With TRAINING_PROFILE=after or =before, steps are also taken under
PyTorch's profiler, and the kernels that it saw take the digest's place.
"""

import hashlib
import json
import os
import sys
import threading
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS_BEFORE_GRAPH = 60
REPLAYS = 200
STEPS_OF_A_PROFILE = 20
# For the library to find CUPTI free: two polling intervals and a flush, and some more.
SECONDS_AFTER_PROFILE = 5


def kernels_of(profiler) -> int:
    return sum(1 for event in profiler.events() if event.device_type.name == "CUDA")


def profiled_after(step) -> dict:
    """PyTorch's profiler comes when the library measures already: the kernels that it saw."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(STEPS_OF_A_PROFILE):
            step()
        torch.cuda.synchronize()
    return {"kernels_seen": kernels_of(profiler), "steps_profiled": STEPS_OF_A_PROFILE}


def profiled_before(step) -> dict:
    """PyTorch's profiler is there first. Says "ready" and waits for a line while it works, so that
    the library is listed meanwhile; then works on, with the profiler and some seconds without."""
    from torch.profiler import ProfilerActivity, profile

    def steps() -> None:
        for _ in range(STEPS_OF_A_PROFILE):
            step()
        torch.cuda.synchronize()

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        steps()
        print("ready", flush=True)
        sys.stdin.readline()
        steps()
    found = {"kernels_seen": kernels_of(profiler), "steps_profiled": 2 * STEPS_OF_A_PROFILE}
    until = time.monotonic() + SECONDS_AFTER_PROFILE
    while time.monotonic() < until:
        step()
        torch.cuda.synchronize()
    return found


def main() -> None:
    started = time.monotonic()
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    data = TensorDataset(torch.randn(4096, 256), torch.randint(0, 10, (4096,)))
    loader = DataLoader(data, batch_size=256, num_workers=2, pin_memory=True)
    model = nn.Sequential(
        nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lossfunction = nn.CrossEntropyLoss()

    def train(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=False)
        loss = lossfunction(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    stop = threading.Event()

    def side_work() -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            matrix = torch.ones(256, 256, device="cuda")
            while not stop.is_set():
                matrix = (matrix @ matrix).clamp(max=1)
                stream.synchronize()

    steps = 0
    while steps < STEPS_BEFORE_GRAPH:
        for inputs, labels in loader:
            loss = train(inputs.cuda(non_blocking=True), labels.cuda(non_blocking=True))
            steps += 1
    static_inputs, static_labels = data.tensors[0][:256].cuda(), data.tensors[1][:256].cuda()
    side_stream = torch.cuda.Stream()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for _ in range(3):
            train(static_inputs, static_labels)
    torch.cuda.current_stream().wait_stream(side_stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train(static_inputs, static_labels)
    thread = threading.Thread(target=side_work)
    thread.start()
    for _ in range(REPLAYS):
        graph.replay()
        torch.cuda.synchronize()
    stop.set()
    thread.join()
    found = {"loss": loss.item()}
    profiled = {"after": profiled_after, "before": profiled_before}
    if when := os.environ.get("TRAINING_PROFILE"):
        found |= profiled[when](lambda: train(static_inputs, static_labels))
    else:
        weights = b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
        found["weights"] = hashlib.sha256(weights).hexdigest()
    found["seconds"] = time.monotonic() - started
    print(json.dumps(found))


if __name__ == "__main__":
    main()
