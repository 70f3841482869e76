//! A trace of any length in the form of PyTorch's profiler: a training loop on one device.
//!
//! As the profiler does, it writes the host's operators first, with their shapes, their memory and
//! the arrows to their backward operators, and then what the device's library recorded: each kernel
//! behind it the call that launched it, and the arrow between the two. So the times begin anew in
//! the middle of the trace. Some thirty different texts stand for the names of operators and kernels,
//! and some hundreds for shapes.

use std::io::{self, Write};

/// Of one training step: a linear layer forward and backward, a reduction over the ranks, a copy.
const OPERATORS: [(&str, u64, &str); 8] = [
    (
        "aten::linear",
        0,
        r#""Concrete Inputs": ["", "", ""], "Input type": ["float", "float", "float"], "Input Strides": [[1024, 1], [1024, 1], [1]], "Input Dims": [[64, 1024], [4096, 1024], [4096]]"#,
    ),
    (
        "aten::t",
        1,
        r#""Concrete Inputs": [""], "Input type": ["float"], "Input Strides": [[1024, 1]], "Input Dims": [[4096, 1024]]"#,
    ),
    (
        "aten::transpose",
        2,
        r#""Concrete Inputs": ["", "0", "1"], "Input type": ["float", "Scalar", "Scalar"], "Input Strides": [[1024, 1], [], []], "Input Dims": [[4096, 1024], [], []]"#,
    ),
    (
        "aten::as_strided",
        3,
        r#""Concrete Inputs": ["", "[1024, 4096]", "[1, 1024]", ""], "Input type": ["float", "ScalarList", "ScalarList", ""], "Input Strides": [[1024, 1], [], [], []], "Input Dims": [[4096, 1024], [], [], []]"#,
    ),
    (
        "aten::addmm",
        1,
        r#""Concrete Inputs": ["", "", "", "1", "1"], "Input type": ["float", "float", "float", "Scalar", "Scalar"], "Input Strides": [[1], [1024, 1], [1, 1024], [], []], "Input Dims": [[4096], [64, 1024], [1024, 4096], [], []]"#,
    ),
    ("autograd::engine::evaluate_function: AddmmBackward0", 0, ""),
    (
        "AddmmBackward0",
        1,
        r#""Concrete Inputs": [""], "Input type": ["float"], "Input Strides": [[4096, 1]], "Input Dims": [[64, 4096]]"#,
    ),
    (
        "aten::mm",
        2,
        r#""Concrete Inputs": ["", ""], "Input type": ["float", "float"], "Input Strides": [[4096, 1], [1024, 1]], "Input Dims": [[64, 4096], [4096, 1024]]"#,
    ),
];

const KERNELS: [&str; 6] = [
    "ampere_sgemm_128x64_tn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int, at::native::FillFunctor<float>, at::detail::Array<char*, 1>)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4>)",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>(cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4::Params)",
    "triton_poi_fused_add_cos_sin_0",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
];

const PID: u64 = 1_670_242;
/// Nanoseconds since the trace's base time.
const BEGIN: u64 = 2_413_669_095_762_437;
/// Nanoseconds between two groups of operators.
const GROUP: u64 = 120_000;

/// Writes whole groups of operators, and what they launched, until some `bytes` have been written.
pub(crate) fn trace(bytes: u64, out: &mut impl Write) -> io::Result<()> {
    let mut sample = vec![];
    operators(&mut sample, 1)?;
    launches(&mut sample, 1)?;
    let groups = bytes / sample.len() as u64 + 1;
    out.write_all(HEAD.as_bytes())?;
    for group in 0..groups {
        operators(out, group)?;
    }
    for group in 0..groups {
        launches(out, group)?;
    }
    labels(out)?;
    let end = Micros(BEGIN + groups * GROUP);
    write!(
        out,
        r#"
  {{
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "", "tid": "", "ts": {end}
  }}
  ],
  "distributedInfo": {{"backend": "nccl", "rank": 0, "world_size": 8}},
  "traceName": "trace.json",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1727743122000000000
}}"#
    )
}

const HEAD: &str = r#"
{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA A100-PG509-200", "totalGlobalMem": 42297524224,
      "computeMajor": 8, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 108
    , "regsPerMultiprocessor": 65536, "sharedMemPerBlockOptin": 166912, "sharedMemPerMultiprocessor": 167936
    }
  ],
  "record_shapes": 1,
  "with_flops": 0,
  "traceEvents": ["#;

/// Decimal microseconds of whole nanoseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Some nanoseconds below 1000 that look like nothing in particular.
fn noise(seed: u64) -> u64 {
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 1000
}

/// The operators of a group on two threads: forward on the main one, backward on another.
fn operators(out: &mut impl Write, group: u64) -> io::Result<()> {
    let begin = BEGIN + group * GROUP;
    for (place, (name, depth, shapes)) in OPERATORS.iter().enumerate() {
        let place = place as u64;
        let index = group * OPERATORS.len() as u64 + place;
        let thread = if place < 5 { PID } else { PID + 771 };
        let start = Micros(begin + place * 9_000 + noise(index));
        let length = Micros([60_000, 20_500, 12_250, 5_125][*depth as usize] + noise(index + 1));
        write!(
            out,
            r#"
  {{
    "ph": "X", "cat": "cpu_op", "name": "{name}", "pid": {PID}, "tid": {thread},
    "ts": {start}, "dur": {length},
    "args": {{
      "External id": {index},"Record function id": {index}, "#
        )?;
        if matches!(place, 4..=6) {
            write!(out, r#""Sequence number": {group}, "Fwd thread id": {}, "#, place / 5)?;
        }
        if !shapes.is_empty() {
            write!(out, "{shapes}, ")?;
        }
        write!(out, "\"Ev Idx\": {index}\n    }}\n  }},")?;
        if matches!(place, 4 | 6) {
            let (phase, bind) = if place == 4 { ("s", "") } else { ("f", r#", "bp": "e""#) };
            write!(
                out,
                r#"
  {{
    "ph": "{phase}", "id": {group}, "pid": {PID}, "tid": {thread}, "ts": {start},
    "cat": "fwdbwd", "name": "fwdbwd"{bind}
  }},"#
            )?;
        }
    }
    let bytes = 1_048_576_i64 * if group.is_multiple_of(2) { 1 } else { -1 };
    write!(
        out,
        r#"
  {{
    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
    "pid": {PID}, "tid": {PID}, "ts": {ts},
    "args": {{
      "Total Reserved": 2097152000, "Total Allocated": {total}, "Bytes": {bytes}, "Device Id": 0, "Device Type": 1, "Addr": {address}, "Ev Idx": {group}
    }}
  }},"#,
        ts = Micros(begin + 50_000),
        total = 1_073_741_824 + bytes,
        address = 139_637_976_727_552 + group * 512,
    )
}

/// Kernels and a copy with the calls that launched them, and the arrows.
fn launches(out: &mut impl Write, group: u64) -> io::Result<()> {
    let begin = BEGIN + group * GROUP;
    for (place, name) in KERNELS.iter().enumerate() {
        let place = place as u64;
        let correlation = group * 8 + place;
        let (call, work) = (begin + 37_000 + place * 9_000, begin + 48_000 + place * 11_000);
        let stream = if place == 5 { 20 } else { 7 };
        write!(
            out,
            r#"
  {{
    "ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": {stream},
    "ts": {start}, "dur": {length},
    "args": {{
      "External id": {external},      "queued": 0, "device": 0, "context": 1,      "stream": {stream}, "correlation": {correlation},      "registers per thread": {registers},      "shared memory": {shared},      "blocks per SM": 0.{blocks:06},      "warps per SM": {warps}.037037,      "grid": [{grid}, 1, 1],      "block": [128, 1, 1],      "est. achieved occupancy %": {occupancy}
    }}
  }},"#,
            start = Micros(work),
            length = Micros(10_000 + noise(correlation)),
            external = group * 8 + 4,
            registers = 16 + place * 8,
            shared = place * 2064,
            blocks = 9259 + noise(correlation),
            warps = place,
            grid = 1 + noise(correlation) % 128,
            occupancy = noise(correlation) % 100,
        )?;
        arrow(out, false, 0, stream, work, correlation)?;
        let name = if place == 4 {
            ("cuda_driver", "cuLaunchKernel", 307)
        } else {
            ("cuda_runtime", "cudaLaunchKernel", 211)
        };
        launched(out, name, begin, call, correlation)?;
    }
    let (correlation, work, call) = (group * 8 + 6, begin + 116_000, begin + 101_000);
    write!(
        out,
        r#"
  {{
    "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7,
    "ts": {start}, "dur": 1.{length:03},
    "args": {{
      "External id": {external},      "device": 0, "context": 1,      "stream": 7, "correlation": {correlation},      "bytes": 262144, "memory bandwidth (GB/s)": 21.{length:03}
    }}
  }},"#,
        start = Micros(work),
        length = noise(group),
        external = group * 8 + 7,
    )?;
    arrow(out, false, 0, 7, work, correlation)?;
    launched(out, ("cuda_runtime", "cudaMemcpyAsync", 41), begin, call, correlation)
}

fn launched(
    out: &mut impl Write,
    (category, name, cbid): (&str, &str, u32),
    begin: u64,
    start: u64,
    correlation: u64,
) -> io::Result<()> {
    let external = correlation - (correlation % 8) + 4;
    let length = Micros(4_000 + noise(begin + correlation));
    write!(
        out,
        r#"
  {{
    "ph": "X", "cat": "{category}", "name": "{name}", "pid": {PID}, "tid": {PID},
    "ts": {}, "dur": {length},
    "args": {{
      "External id": {external},      "cbid": {cbid}, "correlation": {correlation}
    }}
  }},"#,
        Micros(start)
    )?;
    arrow(out, true, PID, PID, start, correlation)
}

fn arrow(
    out: &mut impl Write,
    start: bool,
    pid: u64,
    tid: u64,
    time: u64,
    id: u64,
) -> io::Result<()> {
    let (phase, bind) = if start { ("s", "") } else { ("f", r#", "bp": "e""#) };
    write!(
        out,
        r#"
  {{
    "ph": "{phase}", "id": {id}, "pid": {pid}, "tid": {tid}, "ts": {},
    "cat": "ac2g", "name": "ac2g"{bind}
  }},"#,
        Micros(time)
    )
}

fn labels(out: &mut impl Write) -> io::Result<()> {
    let begin = Micros(BEGIN);
    for (pid, labels) in [(PID, "CPU"), (0, "GPU 0")] {
        for (name, key, value) in
            [("process_name", "name", "python3.10"), ("process_labels", "labels", labels)]
        {
            write!(
                out,
                r#"
  {{
    "name": "{name}", "ph": "M", "ts": {begin}, "pid": {pid}, "tid": 0,
    "args": {{
      "{key}": "{value}"
    }}
  }},"#
            )?;
        }
    }
    for (pid, tid, name) in
        [(0, 7, "stream 7"), (0, 20, "stream 20"), (PID, PID, "thread 1670242 (python3.10)")]
    {
        write!(
            out,
            r#"
  {{
    "name": "thread_name", "ph": "M", "ts": {begin}, "pid": {pid}, "tid": {tid},
    "args": {{
      "name": "{name}"
    }}
  }},"#
        )?;
    }
    Ok(())
}
