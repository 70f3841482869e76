//! `/proc/<pid>/cmdline` and `/proc/<pid>/environ`: strings that each end with a NUL.
//!
//! A process may overwrite both (`setproctitle`), so neither the last NUL nor any is certain.

/// The single arguments of a `cmdline`.
pub fn strings(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    let empty = text.is_empty();
    text.split(|&byte| byte == 0).skip(usize::from(empty))
}

/// Replaces the content of `joined` by the arguments joined by single spaces. The NULs that fill
/// up the space of an overwritten command line are left out.
pub fn join(text: &[u8], joined: &mut Vec<u8>) {
    let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    joined.clear();
    joined.extend(text.iter().take(end).map(|&byte| if byte == 0 { b' ' } else { byte }));
}

/// The value of a variable in an `environ`; of several the first, as getenv(3) has it.
pub fn variable<'text>(environ: &'text [u8], name: &str) -> Option<&'text [u8]> {
    strings(environ).find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(text: &[u8]) -> Vec<u8> {
        let mut joined = b"what was there before".to_vec();
        join(text, &mut joined);
        joined
    }

    #[test]
    fn arguments_are_split_and_joined() {
        let text = b"python3\0train.py\0\0--lr=1\0";
        assert_eq!(
            strings(text).collect::<Vec<_>>(),
            [&b"python3"[..], b"train.py", b"", b"--lr=1"]
        );
        assert_eq!(joined(text), b"python3 train.py  --lr=1");
    }

    #[test]
    fn a_kernel_thread_has_no_arguments() {
        assert_eq!(strings(b"").count(), 0);
        assert_eq!(joined(b""), b"");
    }

    #[test]
    fn a_title_that_was_written_over_the_arguments_loses_its_padding() {
        assert_eq!(joined(b"nginx: worker process\0\0\0\0\0"), b"nginx: worker process");
        assert_eq!(joined(b"postgres: idle"), b"postgres: idle");
    }

    #[test]
    fn the_first_of_several_variables_counts_and_prefixes_do_not() {
        let environ = b"RANKING=9\0RANK=1\0RANK=2\0EMPTY=\0NOVALUE\0A=b=c\0";
        assert_eq!(variable(environ, "RANK"), Some(&b"1"[..]));
        assert_eq!(variable(environ, "EMPTY"), Some(&b""[..]));
        assert_eq!(variable(environ, "A"), Some(&b"b=c"[..]));
        assert_eq!(variable(environ, "NOVALUE"), None);
        assert_eq!(variable(environ, "RAN"), None);
    }

    proptest! {
        #[test]
        fn joining_keeps_every_byte_but_the_last_nuls(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut whole = joined(&text);
            prop_assert!(whole.len() <= text.len());
            prop_assert!(!whole.contains(&0));
            whole.resize(text.len(), b' ');
            let spaced: Vec<u8> = text.iter().map(|&byte| if byte == 0 { b' ' } else { byte }).collect();
            prop_assert_eq!(whole, spaced);
        }

        #[test]
        fn what_was_put_together_comes_apart(parts in prop::collection::vec("[^\0]{0,12}", 1..8)) {
            let text: String = parts.iter().map(|part| format!("{part}\0")).collect();
            let apart: Vec<&[u8]> = strings(text.as_bytes()).collect();
            // One lone empty argument cannot be told from none.
            if parts != [""] {
                prop_assert_eq!(apart, parts.iter().map(String::as_bytes).collect::<Vec<_>>());
            }
            let _ = variable(text.as_bytes(), "A");
        }
    }
}
