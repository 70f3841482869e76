//! Kernels that wait for others: on another device, in another process, on another machine.

/// Whether a kernel's name is that of a communication library: such a kernel may wait for one that
/// the very thread which we hold up has yet to launch.
#[must_use]
pub fn is_collective(name: &[u8]) -> bool {
    const FAMILIES: [&[u8]; 7] =
        [b"nccl", b"rccl", b"nvshmem", b"msccl", b"deep_ep", b"allreduce", b"cross_device_reduce"];
    FAMILIES
        .iter()
        .any(|family| name.windows(family.len()).any(|part| part.eq_ignore_ascii_case(family)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_communication_libraries_are_known_by_their_names() {
        for name in [
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            "_ZN4vllm23cross_device_reduce_1stageI6__halfLi2EEEv",
            "nvshmemi_barrier",
        ] {
            assert!(is_collective(name.as_bytes()), "{name}");
        }
        for name in ["saxpy", "_Z4gemmPfS_S_", ""] {
            assert!(!is_collective(name.as_bytes()), "{name}");
        }
    }
}
