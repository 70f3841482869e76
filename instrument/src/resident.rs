//! What the library costs in memory: the resident pages of its own file and of the libraries that
//! it measures with.
//!
//! `/proc/self/maps` says where they are mapped, `/proc/self/pagemap` which of those pages are in
//! memory: eight bytes a page, bit 63 set where it is present (kernel documentation,
//! admin-guide/mm/pagemap.rst). Only our ranges are looked at, so a process with a terabyte mapped
//! is not walked through, as `/proc/self/smaps` would.
//!
//! What these libraries allocate on the heap is not in it: nobody can tell it from the host's. A
//! libcupti that the host loaded itself is counted all the same.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::descriptors::open_above_standard;

/// The libraries, by how their file names begin.
const LIBRARIES: [&str; 3] = ["libwarpgauge_instrument", "libcupti", "libnvperf"];

/// Bytes of one entry of `pagemap`.
const ENTRY_BYTES: u64 = 8;

/// Set in an entry whose page is in memory.
const PRESENT: u64 = 1 << 63;

/// Entries read at a time.
const CHUNK_ENTRIES: usize = 1 << 10;

/// Bytes of our libraries that are in memory now; `None` where the system does not say.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    let page_bytes = u64::try_from(page_bytes).ok().filter(|bytes| *bytes > 0)?;
    let open = |path| open_above_standard(OpenOptions::new().read(true), Path::new(path)).ok();
    let maps = open("/proc/self/maps")?;
    let pagemap = open("/proc/self/pagemap")?;
    let mut pages = 0;
    for line in BufReader::new(&*maps).split(b'\n') {
        if let Some(range) = range_of_ours(&line.ok()?) {
            let range = range.start / page_bytes..range.end / page_bytes;
            pages += present(&pagemap, range).ok()?;
        }
    }
    Some(pages * page_bytes)
}

/// The addresses of a line of `maps` if it is of one of our libraries.
fn range_of_ours(line: &[u8]) -> Option<Range<u64>> {
    let line = std::str::from_utf8(line).ok()?;
    let name = line.get(line.find('/')?..)?.rsplit('/').next()?;
    if !LIBRARIES.iter().any(|library| name.starts_with(library)) {
        return None;
    }
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

/// How many of these pages are in memory.
fn present(pagemap: &File, pages: Range<u64>) -> io::Result<u64> {
    let mut entries = [0; CHUNK_ENTRIES * ENTRY_BYTES as usize];
    let mut present = 0;
    let mut next = pages.start;
    while next < pages.end {
        let wanted = (pages.end - next).min(CHUNK_ENTRIES as u64);
        let bytes = usize::try_from(wanted * ENTRY_BYTES).unwrap_or(entries.len());
        let Some(chunk) = entries.get_mut(..bytes) else { break };
        pagemap.read_exact_at(chunk, next * ENTRY_BYTES)?;
        let (words, _) = chunk.as_chunks::<{ ENTRY_BYTES as usize }>();
        let here = words.iter().filter(|word| u64::from_ne_bytes(**word) & PRESENT != 0).count();
        present += here as u64;
        next += wanted;
    }
    Ok(present)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_our_libraries_have_a_range() {
        let ours = b"7f10c2a00000-7f10c2a28000 r-xp 00028000 fd:01 12    /opt/a b/libcupti.so.13";
        assert_eq!(range_of_ours(ours), Some(0x7f10_c2a0_0000..0x7f10_c2a2_8000));
        for other in [
            "7f10c2a00000-7f10c2a28000 r-xp 00028000 fd:01 12    /opt/libcupti/libc.so.6",
            "7f10c2a00000-7f10c2a28000 rw-p 00000000 00:00 0     [heap]",
            "libcupti.so",
            "",
        ] {
            assert_eq!(range_of_ours(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn pages_that_were_touched_are_present() {
        let page = 4096;
        let touched = vec![1_u8; 64 * page];
        let start = touched.as_ptr() as u64 / page as u64 + 1;
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        assert_eq!(present(&pagemap, start..start + 60).unwrap(), 60);
        assert!(touched.iter().all(|byte| *byte == 1));
    }

    #[test]
    fn a_process_without_the_library_has_none_of_it_in_memory() {
        // The test program links the code itself and loads no library of ours.
        assert_eq!(resident_bytes(), Some(0));
    }
}
