// Kernels whose counts can be said beforehand.
//
// One warp of 32 threads touches, with 4-byte elements and 128-byte cache lines:
//
//   kernel      global accesses  cache lines   coalescence, percent
//   tiny                      0            0   none
//   coalesced                 2            2   100
//   strided          2            2 x stride   100 / stride, for strides of 1 to 32
//   scattered                 2   see indices  computed from the same indices by analytic.py
//   divergent                 1            1   100
//   shared                    1            1   100
//   compute                   1            1   100
//   gemm                  loads and stores of tiles; for time, not for counts
//
// Instructions of one warp are what the machine code says: all of them up to EXIT, and those of the
// one loop `parameter` times (divergent has two sides and is compared with ncu alone).
//
// Branches of divergent, per warp: ITERATIONS at the end of the loop, which all threads take alike,
// and ITERATIONS in its middle, of which one in `parameter` parts the warp in two halves. A branch
// that parts a warp has two targets, any other has one, hence of all targets
//
//   percent = 100 x 2 x parting / (2 x ITERATIONS + parting), parting = ITERATIONS / parameter
//
// Every kernel takes the same arguments: a buffer to read, one to write, and a number.

#include <cstdint>

namespace {

constexpr uint32_t ITERATIONS = 256;
constexpr uint32_t TILE = 16;

__device__ __forceinline__ uint32_t thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// Sixteen instructions that no compiler removes or merges.
__device__ __forceinline__ uint32_t work(uint32_t value) {
#pragma unroll
    for (int step = 0; step < 16; ++step) {
        asm volatile("mad.lo.u32 %0, %0, %0, %0;" : "+r"(value));
    }
    return value;
}

}  // namespace

#define KERNEL extern "C" __global__ void
#define ARGUMENTS const uint32_t *in, uint32_t *out, uint32_t parameter

KERNEL tiny(ARGUMENTS) {}

KERNEL coalesced(ARGUMENTS) {
    out[thread()] = in[thread()];
}

// parameter: the stride in elements.
KERNEL strided(ARGUMENTS) {
    const uint32_t index = thread() * parameter;
    out[index] = in[index];
}

// parameter: the number of elements, a power of two. Multiplying by an odd number permutes them.
KERNEL scattered(ARGUMENTS) {
    const uint32_t index = (thread() * 2654435761u) & (parameter - 1);
    out[index] = in[index];
}

// parameter: one in so many iterations parts the warp; it divides ITERATIONS.
KERNEL divergent(ARGUMENTS) {
    uint32_t value = threadIdx.x;
    const uint32_t lane = threadIdx.x & 31;
    uint32_t countdown = 0;
#pragma unroll 1
    for (uint32_t iteration = 0; iteration < ITERATIONS; ++iteration) {
        const bool parts = countdown == 0;
        countdown = parts ? parameter - 1 : countdown - 1;
        if (!parts || lane < 16) {
            value = work(value);
        }
    }
    out[thread()] = value;
}

// parameter: iterations, at least one, each with one access to shared memory in a ring.
KERNEL shared(ARGUMENTS) {
    __shared__ uint32_t ring[1024];
    ring[threadIdx.x] = threadIdx.x;
    __syncthreads();
    uint32_t value = threadIdx.x;
#pragma unroll 1
    for (uint32_t iteration = 0; iteration < parameter; ++iteration) {
        value = *static_cast<volatile uint32_t *>(&ring[value]) ^ 1;
    }
    out[thread()] = value;
}

// parameter: iterations, at least one, of sixteen multiplications.
KERNEL compute(ARGUMENTS) {
    uint32_t value = threadIdx.x;
#pragma unroll 1
    for (uint32_t iteration = 0; iteration < parameter; ++iteration) {
        value = work(value);
    }
    out[thread()] = value;
}

// Blocks of TILE x TILE threads, one for each tile of a product of square matrices whose side is
// `parameter`, a multiple of TILE; the grid is one-dimensional.
KERNEL gemm(ARGUMENTS) {
    __shared__ float left[TILE][TILE];
    __shared__ float right[TILE][TILE];
    const float *matrix = reinterpret_cast<const float *>(in);
    const uint32_t column = threadIdx.x % TILE, row = threadIdx.x / TILE;
    const uint32_t tiles = parameter / TILE;
    const uint32_t x = blockIdx.x % tiles * TILE + column, y = blockIdx.x / tiles * TILE + row;
    float sum = 0;
    for (uint32_t tile = 0; tile < tiles; ++tile) {
        left[row][column] = matrix[y * parameter + tile * TILE + column];
        right[row][column] = matrix[(tile * TILE + row) * parameter + x];
        __syncthreads();
#pragma unroll
        for (uint32_t step = 0; step < TILE; ++step) {
            sum += left[row][step] * right[step][column];
        }
        __syncthreads();
    }
    out[y * parameter + x] = __float_as_uint(sum);
}
