"""A program that says something, then begins to use CUDA."""

import ctypes

import warpgauge

with warpgauge.scope("before"):
    pass
answer = ctypes.CDLL("libcuda.so.1").cuInit(0)
with warpgauge.scope("with CUDA"):
    pass
print(answer)
