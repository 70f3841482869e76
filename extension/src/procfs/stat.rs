//! `/proc/<pid>/stat`: one line of fields, the second of which may hold anything.
//!
//! ```text
//! 4242 (a name) S 1 4242 4242 0 -1 4194560 ... 3 0 123456 ...
//! pid   comm    state       flags            |   starttime
//!                                            num_threads
//! ```

/// What is used of `/proc/<pid>/stat` (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat<'text> {
    /// Field 2: the name, as in `/proc/<pid>/comm`.
    pub comm: &'text [u8],
    /// Field 3: the state's letter, such as `S` or `Z`.
    pub state: u8,
    /// Field 9: the kernel's flags of the task, `PF_*` in `include/linux/sched.h`.
    pub flags: u32,
    /// Field 20: how many threads it has.
    pub threads: i64,
    /// Field 22: start time in clock ticks since boot.
    pub start_ticks: u64,
}

impl<'text> Stat<'text> {
    /// Takes the line apart; `None` when it is not one.
    pub fn parse(line: &'text [u8]) -> Option<Self> {
        // The name may hold spaces, newlines and parentheses; no later field holds a `)`.
        let open = line.iter().position(|&byte| byte == b'(')?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let comm = line.get(open + 1..close)?;
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        // `nth` consumes: each number is the distance from the field before.
        let state = *fields.next()?.as_bytes().first()?;
        let flags = fields.nth(5)?.parse().ok()?;
        let threads = fields.nth(10)?.parse().ok()?;
        let start_ticks = fields.nth(1)?.parse().ok()?;
        Some(Self { comm, state, flags, threads, start_ticks })
    }

    /// Whether it runs no program at all: `PF_KTHREAD` of `include/linux/sched.h`.
    pub fn is_kernel_thread(&self) -> bool {
        const PF_KTHREAD: u32 = 0x0020_0000;
        self.flags & PF_KTHREAD != 0
    }

    /// Whether nothing of it runs any more and only its parent has yet to notice.
    ///
    /// A process whose first thread has returned while others run shows the state `Z` as well,
    /// with more than one thread left.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line as the kernel writes it, up to the start time and a little beyond.
    fn line(comm: &[u8], state: char, flags: u32, threads: u32, start: u64) -> Vec<u8> {
        let mut line = b"4242 (".to_vec();
        line.extend_from_slice(comm);
        let rest = format!(
            ") {state} 1 4242 4242 0 -1 {flags} 900 0 3 0 12 7 0 0 20 0 {threads} 0 {start} 9 8\n"
        );
        line.extend_from_slice(rest.as_bytes());
        line
    }

    #[test]
    fn a_line_of_a_real_kernel_is_understood() {
        let text = b"1 (systemd) S 0 1 1 0 -1 4194560 120683 5331447 196 2471 292 528 6923 2543 20 \
                     0 1 0 33 173031424 2952 18446744073709551615 1 1 0 0 0 0 671173123 4096 1260 0 \
                     0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            (stat.comm, stat.state, stat.threads, stat.start_ticks),
            (&b"systemd"[..], b'S', 1, 33)
        );
        assert!(!stat.is_kernel_thread());
    }

    #[test]
    fn a_name_may_hold_spaces_newlines_parentheses_and_other_bytes() {
        for comm in
            [&b"a) S 1 (b"[..], b"(sd-pam)", b"tmux: server", b"x\ny", b"\xff\xfe)", b"", b"))"]
        {
            let text = line(comm, 'S', 0, 3, 123_456);
            let stat = Stat::parse(&text).unwrap();
            assert_eq!((stat.comm, stat.threads, stat.start_ticks), (comm, 3, 123_456));
        }
    }

    #[test]
    fn kernel_threads_and_the_dead_are_told_by_flag_and_state() {
        assert!(
            Stat::parse(&line(b"kworker/0:1", 'I', 0x0420_8060, 1, 9)).unwrap().is_kernel_thread()
        );
        assert!(Stat::parse(&line(b"gone", 'Z', 0x40_004c, 1, 9)).unwrap().has_ended());
        assert!(!Stat::parse(&line(b"alive", 'S', 0, 1, 9)).unwrap().has_ended());
    }

    #[test]
    fn a_process_whose_first_thread_returned_still_runs() {
        assert!(!Stat::parse(&line(b"pool", 'Z', 0, 8, 9)).unwrap().has_ended());
    }

    #[test]
    fn a_line_that_is_cut_off_is_refused() {
        let whole = line(b"python3", 'S', 0, 1, 9);
        let start = whole.iter().rposition(|&byte| byte == b'9').unwrap() - 1;
        for end in 0..start {
            assert_eq!(Stat::parse(&whole[..end]), None, "{end} bytes");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Stat::parse(&bytes);
        }

        #[test]
        fn every_name_survives(comm in prop::collection::vec(1u8.., 0..16), start in any::<u64>()) {
            let text = line(&comm, 'R', 0, 1, start);
            let stat = Stat::parse(&text).unwrap();
            prop_assert_eq!((stat.comm, stat.start_ticks), (&comm[..], start));
        }
    }
}
