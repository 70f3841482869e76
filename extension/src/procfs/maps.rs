//! `/proc/<pid>/maps`: which libraries a process has mapped.
//!
//! ```text
//! 7f10c2a00000-7f10c2a28000 r-xp 00028000 fd:01 1835019    /usr/lib/x86_64-linux-gnu/libcuda.so.550.54
//! address                   perms offset  dev   inode      path
//! ```
//!
//! A process may have a million mappings, so the file is streamed and left as soon as everything
//! was seen.

/// Which of the libraries that matter here a process has mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mapped {
    /// The CUDA driver, `libcuda.so` in any version: the process can use the GPU.
    pub cuda_driver: bool,
    /// warpgauge's own module, `libwarpgauge_instrument.so`: the process can be measured.
    pub module: bool,
}

/// Reads the file piece by piece.
#[derive(Debug, Default)]
pub(super) struct MapsScan {
    found: Mapped,
    /// The beginning of a line whose end is in the next piece.
    begun: Vec<u8>,
}

/// Longer than any line of the kernel: six columns and an escaped path of PATH_MAX.
const LONGEST_LINE: usize = 4 * 4096 + 128;

impl MapsScan {
    /// Takes the next piece; `false` when nothing further can be learned.
    pub(super) fn take(&mut self, piece: &[u8]) -> bool {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, after) = rest.split_at(end);
            if self.begun.is_empty() {
                self.look_at(line);
            } else {
                self.hold(line);
                let whole = std::mem::take(&mut self.begun);
                self.look_at(&whole);
                self.begun = whole;
                self.begun.clear();
            }
            rest = after.get(1..).unwrap_or_default();
        }
        self.hold(rest);
        !(self.found.cuda_driver && self.found.module)
    }

    /// What was found, a last line without a newline included.
    pub(super) fn finish(mut self) -> Mapped {
        let last = std::mem::take(&mut self.begun);
        self.look_at(&last);
        self.found
    }

    fn hold(&mut self, part: &[u8]) {
        let room = LONGEST_LINE.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
    }

    fn look_at(&mut self, line: &[u8]) {
        let Some(name) = file_name(line) else { return };
        self.found.cuda_driver |= is_version_of(name, b"libcuda.so");
        self.found.module |= is_version_of(name, b"libwarpgauge_instrument.so");
    }
}

/// The last part of the path of a line, or `None` where nothing or no file is mapped.
fn file_name(line: &[u8]) -> Option<&[u8]> {
    file(line).map(|(path, _)| last_part(path))
}

/// The path of a line and whether that file has been removed or replaced since; `None` where
/// nothing or no file is mapped.
fn file(line: &[u8]) -> Option<(&[u8], bool)> {
    let mut rest = line;
    for _ in 0..5 {
        let end = rest.iter().position(|&byte| byte == b' ')?;
        rest = rest.get(end..)?.trim_ascii_start();
    }
    // `[heap]`, and `[anon:NAME]` whose name the process chooses, are no files.
    if rest.first() != Some(&b'/') {
        return None;
    }
    Some(match rest.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (rest, false),
    })
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// A file that a process has mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// Its path as the process's own root has it.
    pub path: String,
    /// Whether the file has been removed or replaced since.
    pub deleted: bool,
}

impl MappedFile {
    /// The last part of its path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it is a library, in any version: `libcuda.so.1` is `libcuda.so`.
    #[must_use]
    pub fn is_version_of(&self, library: &str) -> bool {
        is_version_of(self.name().as_bytes(), library.as_bytes())
    }
}

/// The shared libraries of a whole `maps`, each once, in the order of their addresses.
pub(super) fn libraries(text: &[u8]) -> Vec<MappedFile> {
    let mut found: Vec<MappedFile> = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let Some((path, deleted)) = file(line) else { continue };
        if !last_part(path).windows(3).any(|part| part == b".so") {
            continue;
        }
        let file = MappedFile { path: String::from_utf8_lossy(path).into_owned(), deleted };
        // The segments of one library follow each other.
        if found.last() != Some(&file) && !found.contains(&file) {
            found.push(file);
        }
    }
    found
}

/// Whether `name` is `library`, or `library` followed by a version as in `libcuda.so.1`.
fn is_version_of(name: &[u8], library: &[u8]) -> bool {
    name.strip_prefix(library).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DRIVER: &str = "7f10c2a00000-7f10c2a28000 r-xp 00028000 fd:01 1835019                    /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15\n";
    const MODULE: &str = "7f10c2b00000-7f10c2b28000 r--p 00000000 fd:01 12 /opt/warp gauge/libwarpgauge_instrument.so (deleted)\n";
    const OTHERS: &str = "\
55d0c2a00000-55d0c2a28000 r-xp 00000000 fd:01 99                         /usr/bin/python3.11
55d0c3a00000-55d0c3a28000 rw-p 00000000 00:00 0                          [heap]
7f10c1a00000-7f10c1a28000 rw-p 00000000 00:00 0
7f10c1b00000-7f10c1b28000 rw-p 00000000 00:00 0                          [anon: /libcuda.so.1]
7f10c1c00000-7f10c1c28000 r-xp 00000000 fd:01 98                         /usr/lib/libcudart.so.12
7f10c1d00000-7f10c1d28000 r-xp 00000000 fd:01 97                         /home/libcuda.so/data.bin
7f10c1e00000-7f10c1e28000 r-xp 00000000 fd:01 96                         /usr/lib/libcuda.sources
7f10c1f00000-7f10c1f28000 r-xp 00000000 fd:01 95                         /usr/lib/mylibcuda.so.1
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    fn scan(text: &[u8], piece: usize) -> Mapped {
        let mut scan = MapsScan::default();
        for piece in text.chunks(piece) {
            if !scan.take(piece) {
                break;
            }
        }
        scan.finish()
    }

    #[test]
    fn the_driver_and_the_module_are_found_however_the_text_is_cut() {
        let text = format!("{OTHERS}{DRIVER}{OTHERS}{MODULE}{OTHERS}");
        for piece in [1, 2, 7, 64, 100, 4096] {
            let found = scan(text.as_bytes(), piece);
            assert_eq!(found, Mapped { cuda_driver: true, module: true }, "pieces of {piece}");
        }
    }

    #[test]
    fn names_that_only_look_alike_are_not_the_driver() {
        assert_eq!(scan(OTHERS.as_bytes(), 4096), Mapped::default());
    }

    #[test]
    fn libraries_are_named_once_with_what_became_of_their_files() {
        let text = format!("{OTHERS}{DRIVER}{DRIVER}{MODULE}");
        let found = libraries(text.as_bytes());
        let names: Vec<_> = found.iter().map(|file| (file.name(), file.deleted)).collect();
        let expected = [
            ("libcudart.so.12", false),
            ("libcuda.sources", false),
            ("mylibcuda.so.1", false),
            ("libcuda.so.550.54.15", false),
            ("libwarpgauge_instrument.so", true),
        ];
        // `libcuda.sources` has `.so` in its name and is told apart by its version.
        assert_eq!(names, expected);
        assert!(found[3].is_version_of("libcuda.so") && !found[1].is_version_of("libcuda.so"));
    }

    #[test]
    fn a_last_line_without_a_newline_counts() {
        let found = scan(DRIVER.trim_end().as_bytes(), 10);
        assert_eq!(found, Mapped { cuda_driver: true, module: false });
    }

    #[test]
    fn a_line_that_never_ends_takes_no_memory_to_speak_of() {
        let mut scan = MapsScan::default();
        for _ in 0..100 {
            assert!(scan.take(&[b'x'; 4096]));
        }
        assert!(scan.begun.len() <= LONGEST_LINE);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), piece in 1usize..64) {
            let _ = scan(&bytes, piece);
            let _ = libraries(&bytes);
        }

        #[test]
        fn the_cut_makes_no_difference(text in "[a-z /.\n\\[\\]-]{0,300}", piece in 1usize..64) {
            prop_assert_eq!(scan(text.as_bytes(), piece), scan(text.as_bytes(), 4096));
        }
    }
}
