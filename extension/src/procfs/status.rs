//! `/proc/<pid>/status`: user ids, and the process's pid in every namespace.
//!
//! ```text
//! Name:   python3
//! Uid:    1000    1000    1000    1000        real, effective, saved, file system
//! NSpid:  4242    7       1                   this namespace's first, the innermost last
//! ```

/// The four user ids of a process, as this `/proc`'s user namespace numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uids {
    /// Who started it.
    pub real: u32,
    /// Whose rights it has; what the condition `user` is about.
    pub effective: u32,
    /// What it may become again.
    pub saved: u32,
    /// Who owns the files that it creates.
    pub file_system: u32,
}

impl Uids {
    /// Each user that its files may belong to, once.
    #[must_use]
    pub fn all(&self) -> Vec<u32> {
        let mut all = vec![self.real, self.effective, self.saved, self.file_system];
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// What is used of `/proc/<pid>/status` (proc_pid_status(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Its user ids.
    pub uids: Uids,
    /// Its pid inside the innermost pid namespace that it is in; `None` on kernels before 4.1,
    /// which do not say.
    pub namespace_pid: Option<u32>,
}

impl Status {
    /// Takes the lines apart; `None` when the user ids are missing or a number is none.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut uids = None;
        let mut namespace_pid = None;
        // The kernel escapes newlines in `Name:`, so no name can pose as another line.
        for line in text.split(|&byte| byte == b'\n') {
            if let Some(numbers) = line.strip_prefix(b"Uid:") {
                uids = Some(parse_uids(numbers)?);
            } else if let Some(numbers) = line.strip_prefix(b"NSpid:") {
                let last = std::str::from_utf8(numbers).ok()?.split_ascii_whitespace().last()?;
                namespace_pid = Some(last.parse().ok()?);
                break;
            }
        }
        Some(Self { uids: uids?, namespace_pid })
    }
}

fn parse_uids(text: &[u8]) -> Option<Uids> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let mut next = || numbers.next()?.parse().ok();
    Some(Uids { real: next()?, effective: next()?, saved: next()?, file_system: next()? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_innermost_pid_is_the_last_of_three_levels() {
        let text =
            b"Name:\tpython3\nUmask:\t0022\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\n\
                     NStgid:\t4242\t70\t1\nNSpid:\t4242\t70\t1\nNSpgid:\t4242\t70\t1\n";
        let status = Status::parse(text).unwrap();
        assert_eq!(status.namespace_pid, Some(1));
        let uids = Uids { real: 1000, effective: 1001, saved: 1002, file_system: 1003 };
        assert_eq!(status.uids, uids);
    }

    #[test]
    fn an_old_kernel_without_namespace_pids_is_fine() {
        let status = Status::parse(b"Name:\tsh\nUid:\t0\t0\t0\t0\n").unwrap();
        assert_eq!(status.namespace_pid, None);
    }

    #[test]
    fn missing_or_broken_user_ids_are_refused() {
        for text in [
            "",
            "Name:\tsh\n",
            "Uid:\t0\t0\t0\n",
            "Uid:\t0\t-1\t0\t0\n",
            "Uid:\n",
            " Uid:\t0\t0\t0\t0",
        ] {
            assert_eq!(Status::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(Status::parse(b"Uid:\t0\t0\t0\t0\nNSpid:\n"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Status::parse(&bytes);
        }

        #[test]
        fn no_text_behind_the_keys_makes_it_panic(uid in "\\PC{0,40}", pids in "\\PC{0,40}") {
            let _ = Status::parse(format!("Uid:{uid}\nNSpid:{pids}\n").as_bytes());
        }
    }
}
