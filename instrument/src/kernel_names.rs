//! What kernels are called: noted on the host's threads, made readable by the worker.
//!
//! A kernel's name can be asked for only while the kernel is alive, which at its launch it is. It is
//! taken at the first launch of a shape class, by the driver's word alone: what CUPTI brings along
//! may be an invalid pointer. Names are bounded in number and length.

use std::fmt;
use std::sync::{Mutex, TryLockError};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, DemangleWrite, ParseOptions};

/// A kernel: its handle, and the generation in which the handle means it
/// ([`crate::launch::Launch::key`]).
pub type Kernel = (u64, u64);

/// How many names wait for the worker at most; kernels beyond go without a name for now.
const MAX_WAITING: usize = 1024;

/// Bytes of a name that are kept: the longest that compilers are known to write have some thousand.
const MAX_NAME_BYTES: usize = 4096;

/// Characters of a name that are shown.
const MAX_SHOWN: usize = 240;

/// How deep a name may nest. Parsing takes about 1 KiB of stack a level.
const MAX_NESTING: u32 = 64;

/// Names that wait for the worker.
#[derive(Debug, Default)]
pub struct KernelNames(Mutex<Vec<(Kernel, Box<[u8]>)>>);

impl KernelNames {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Notes a kernel's name. A thread that finds another one here goes on without.
    pub fn note(&self, kernel: Kernel, name: &[u8]) {
        let mut waiting = match self.0.try_lock() {
            Ok(waiting) => waiting,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if waiting.len() < MAX_WAITING {
            let kept = name.get(..MAX_NAME_BYTES).unwrap_or(name);
            waiting.push((kernel, kept.into()));
        }
    }

    /// Takes the names that were noted since the last time.
    pub fn take(&self) -> Vec<(Kernel, Box<[u8]>)> {
        match self.0.try_lock() {
            Ok(mut waiting) => std::mem::take(&mut *waiting),
            Err(TryLockError::Poisoned(poisoned)) => std::mem::take(&mut *poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Vec::new(),
        }
    }
}

/// A name for people: demangled where it is a C++ name and that is wanted, and never longer than
/// a line takes.
#[must_use]
pub fn shown(name: &[u8], demangled: bool) -> String {
    let mut shown = Shown::default();
    if !(demangled && demangle(name, &mut shown)) {
        shown = Shown::default();
        // What does not fit is cut off.
        let _cut = shown.push_string(&String::from_utf8_lossy(name));
    }
    shown.text
}

/// False where the name is no C++ name.
fn demangle(name: &[u8], shown: &mut Shown) -> bool {
    let parsing = ParseOptions::default().recursion_limit(MAX_NESTING);
    let options = DemangleOptions::default().recursion_limit(MAX_NESTING);
    let Ok((symbol, [])) = BorrowedSymbol::with_tail_and_options(name, &parsing) else {
        return false;
    };
    symbol.structured_demangle(shown, &options).is_ok() || shown.is_full
}

/// Takes as many characters as are shown and refuses more, so that a name which unfolds to
/// gigabytes ends there.
#[derive(Default)]
struct Shown {
    text: String,
    characters: usize,
    is_full: bool,
}

impl DemangleWrite for Shown {
    fn write_string(&mut self, part: &str) -> fmt::Result {
        self.push_string(part)
    }
}

impl Shown {
    fn push_string(&mut self, part: &str) -> fmt::Result {
        for character in part.chars() {
            if self.characters == MAX_SHOWN {
                self.is_full = true;
                self.text.push_str("...");
                return Err(fmt::Error);
            }
            self.characters += 1;
            self.text.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpp_names_are_readable_unless_the_linkers_are_wanted() {
        let name = b"_Z4gemmIfLi4EEvPKT_S2_PS0_i";
        assert_eq!(
            shown(name, true),
            "void gemm<float, 4>(float const*, float const*, float*, int)"
        );
        assert_eq!(shown(name, false), String::from_utf8_lossy(name));
        assert_eq!(shown(b"saxpy", true), "saxpy");
        assert_eq!(shown(b"_Z", true), "_Z");
        assert_eq!(shown(b"\xff\xfe", true), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_name_is_cut_where_a_line_ends() {
        let long = shown(&vec![b'x'; 1 << 20], true);
        assert_eq!(long, format!("{}...", "x".repeat(MAX_SHOWN)));
        let nested = [b"_Z1f".as_slice(), &vec![b'P'; 100_000], b"i"].concat();
        assert!(shown(&nested, true).len() <= MAX_SHOWN + 3);
    }

    /// Each template argument stands for the two of the one before: 2^40 characters in all.
    #[test]
    fn a_name_that_unfolds_without_end_ends_at_the_bound() {
        let mut name = b"_Z1fI1aIiiE".to_vec();
        for level in 0..30_u8 {
            let reference = match level {
                0 => b"S0_".to_vec(),
                _ => vec![b'S', b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[level as usize], b'_'],
            };
            name.extend([b"1aI".as_slice(), &reference, &reference, b"E"].concat());
        }
        name.extend(b"Evv");
        assert!(shown(&name, true).len() <= MAX_SHOWN + 3);
    }

    #[test]
    fn names_wait_in_bounded_number_and_length() {
        let names = KernelNames::new();
        for number in 0..2 * MAX_WAITING as u64 {
            names.note((number, 0), &vec![b'x'; 10_000]);
        }
        let taken = names.take();
        assert_eq!((taken.len(), taken[0].1.len()), (MAX_WAITING, MAX_NAME_BYTES));
        assert_eq!(names.take(), []);
    }

    proptest! {
        #[test]
        fn no_name_panics_or_takes_more_than_a_line(name: Vec<u8>, text in "_Z[A-Za-z0-9_]{0,200}") {
            for name in [name.as_slice(), text.as_bytes()] {
                prop_assert!(shown(name, true).chars().count() <= MAX_SHOWN + 3);
            }
        }
    }
}
