//! Which of several counters a thread uses, so that threads do not fight over one cache line.
//!
//! The number is made of the thread's own address in memory: no thread-local memory of ours (which
//! the loader would allocate at a thread's first launch), nothing to hand out, nothing to take back
//! when a thread ends. Two threads may get the same number; they then share a counter, which is
//! slower and as right.
#![allow(unsafe_code, reason = "the thread pointer is in a register")]

/// How many counters each launch shape has.
pub(super) const SHARDS: usize = 64;

/// This thread's number, below [`SHARDS`].
pub(super) fn of_this_thread() -> usize {
    // Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4): stacks lie
    // at regular distances, and the highest bits of the product spread them best.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let number = thread_address().wrapping_mul(ODD) >> (u64::BITS - SHARDS.ilog2());
    usize::try_from(number).unwrap_or(0)
}

/// The thread pointer, which the ABI keeps in a register: different for any two threads that live.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn thread_address() -> u64 {
    let address;
    // SAFETY: on Linux the word at fs:0 is the thread control block's own address (System V ABI,
    // thread-local storage, variant II); reading it changes nothing.
    unsafe {
        std::arch::asm!(
            "mov {}, fs:0",
            out(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    address
}

/// The thread pointer, which the ABI keeps in a register: different for any two threads that live.
#[cfg(all(target_arch = "aarch64", not(miri)))]
fn thread_address() -> u64 {
    let address;
    // SAFETY: the register may be read by every program.
    unsafe {
        std::arch::asm!(
            "mrs {}, tpidr_el0",
            out(reg) address,
            options(nostack, preserves_flags, nomem)
        );
    }
    address
}

/// The part of the stack that is in use: mostly another one for another thread.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn thread_address() -> u64 {
    let here = 0_u8;
    (&raw const here).addr() as u64 >> 20
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_thread_keeps_its_number_and_threads_spread_over_all_of_them() {
        assert_eq!(of_this_thread(), of_this_thread());
        let gate = std::sync::Barrier::new(SHARDS);
        let numbers: BTreeSet<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..SHARDS)
                .map(|_| {
                    scope.spawn(|| {
                        gate.wait();
                        let number = of_this_thread();
                        gate.wait();
                        number
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(numbers.iter().all(|number| *number < SHARDS));
        assert!(numbers.len() > SHARDS / 4, "{} of {SHARDS} numbers", numbers.len());
    }
}
