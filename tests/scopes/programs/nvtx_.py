"""A program that uses NVTX as Python has it."""

import threading

import nvtx


@nvtx.annotate("function", color="blue")
def function():
    with nvtx.annotate("within", domain="training", category="io", payload=3):
        pass


function()
nvtx.push_range("pushed", domain="training")
nvtx.pop_range(domain="training")
number = nvtx.start_range(message="range", domain="training")
thread = threading.Thread(target=nvtx.end_range, args=(number,))
thread.start()
thread.join()
nvtx.mark(message="d\u00e9j\u00e0 vu")
