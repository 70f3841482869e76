//! From CUPTI's records to rows, each in its record's place.
#![allow(unsafe_code, reason = "records lie in memory that CUPTI wrote")]

use std::ptr;

use crate::cupti::activity::NextRecord;
use crate::cupti::activity_types::{
    ALIGNMENT, COPY, COPY_BYTES, CopyRecord, KERNEL, KERNEL_BYTES, KernelRecord, NO_FURTHER_RECORD,
};
use crate::cupti::foreign_text::read_foreign;
use crate::events::row::Row;
use crate::names::{MAX_NAME_BYTES, NameId, NameTable};

/// Names that are remembered by their address while one buffer is read.
const REMEMBERED: usize = 64;

/// Replaces the records of a buffer by rows, from its beginning on. Gives their number, and whether
/// every record could be read.
///
/// # Safety
/// `buffer` is aligned for a [`Row`], may be written for `valid` bytes, and holds as many bytes of
/// records; `next` walks over them as `cuptiActivityGetNextRecord` does.
pub(super) unsafe fn make_rows(
    buffer: *mut u8,
    valid: usize,
    next: NextRecord,
    names: &NameTable,
) -> (u32, bool) {
    let mut names = Names { table: names, known: [(0, NameId::NONE); REMEMBERED] };
    let mut rows = 0;
    // SAFETY: as for the caller.
    let first = unsafe { step(buffer, valid, ptr::null_mut(), next) };
    let mut record = match first {
        Step::Record(offset) => offset,
        Step::End => return (0, true),
        Step::Broken => return (0, false),
    };
    loop {
        // SAFETY: `step` has found a record there.
        let read = unsafe { row(buffer, record, valid, &mut names) };
        let Ok(row) = read else { return (rows, false) };
        // The next record is found through this one, which is still whole.
        // SAFETY: as for the caller.
        let following = unsafe { step(buffer, valid, buffer.wrapping_add(record), next) };
        let end = if let Step::Record(offset) = following { offset } else { valid };
        if let Some(row) = row {
            let place = rows as usize * size_of::<Row>();
            if place + size_of::<Row>() > end {
                return (rows, false);
            }
            // SAFETY: within the buffer and before whatever is read next.
            let place = unsafe { buffer.add(place) };
            // SAFETY: a whole number of rows behind an address that is aligned for one.
            unsafe { place.cast::<Row>().write(row) };
            rows += 1;
        }
        match following {
            Step::Record(offset) => record = offset,
            Step::End => return (rows, true),
            Step::Broken => return (rows, false),
        }
    }
}

enum Step {
    /// A record at so many bytes from the buffer's beginning.
    Record(usize),
    End,
    Broken,
}

/// Finds the record behind another one, or the first behind none.
///
/// # Safety
/// As for [`make_rows`].
unsafe fn step(buffer: *mut u8, valid: usize, behind: *mut u8, next: NextRecord) -> Step {
    let mut record = behind;
    // SAFETY: the buffer has as many bytes of records.
    match unsafe { next(buffer, valid, &raw mut record) } {
        0 => {}
        NO_FURTHER_RECORD => return Step::End,
        _ => return Step::Broken,
    }
    let offset = (record as usize).checked_sub(buffer as usize);
    let moved_on = behind.is_null() || record as usize > behind as usize;
    match offset {
        Some(offset) if moved_on && offset.is_multiple_of(ALIGNMENT) && offset + 8 <= valid => {
            Step::Record(offset)
        }
        _ => Step::Broken,
    }
}

/// The row of a record; none where it tells of something else, an error where it is cut off.
///
/// # Safety
/// A record lies at `offset` of the buffer, which has `valid` bytes.
unsafe fn row(
    buffer: *mut u8,
    offset: usize,
    valid: usize,
    names: &mut Names<'_>,
) -> Result<Option<Row>, ()> {
    // SAFETY: within the buffer.
    let record = unsafe { buffer.add(offset) };
    // SAFETY: every record begins with its kind, read as the number that it is.
    let kind = unsafe { record.cast::<u32>().read() };
    let room = valid - offset;
    match kind {
        // SAFETY: a record of this kind, and all that is read of it lies within the buffer.
        KERNEL if room >= KERNEL_BYTES => unsafe { Ok(Some(kernel(record, names))) },
        // SAFETY: as above.
        COPY if room >= COPY_BYTES => unsafe { Ok(Some(copy(record))) },
        KERNEL | COPY => Err(()),
        _ => Ok(None),
    }
}

/// # Safety
/// A kernel's record.
unsafe fn kernel(record: *const u8, names: &mut Names<'_>) -> Row {
    let record = record.cast::<KernelRecord>();
    // Fields are read one by one: others are enumerations.
    macro_rules! read {
        ($field:ident) => {
            // SAFETY: the caller promises the record; no reference to a packed field is made.
            unsafe { (&raw const (*record).$field).read_unaligned() }
        };
    }
    let count = |number: i32| number.cast_unsigned();
    // The driver has refused blocks of more than 1,024 threads.
    let short = |number: i32| u16::try_from(number).unwrap_or(0);
    Row {
        start: read!(start),
        end: read!(end),
        bytes: 0,
        name: names.of(read!(name) as usize),
        device: read!(deviceId),
        stream: read!(streamId),
        correlation: read!(correlationId),
        grid: [count(read!(gridX)), count(read!(gridY)), count(read!(gridZ))],
        dynamic_shared: count(read!(dynamicSharedMemory)),
        static_shared: count(read!(staticSharedMemory)),
        local_per_thread: read!(localMemoryPerThread),
        block: [short(read!(blockX)), short(read!(blockY)), short(read!(blockZ))],
        registers: read!(registersPerThread),
        copy_kind: 0,
        is_copy: false,
    }
}

/// # Safety
/// A copy's record.
unsafe fn copy(record: *const u8) -> Row {
    let record = record.cast::<CopyRecord>();
    macro_rules! read {
        ($field:ident) => {
            // SAFETY: the caller promises the record; no reference to a packed field is made.
            unsafe { (&raw const (*record).$field).read_unaligned() }
        };
    }
    Row {
        start: read!(start),
        end: read!(end),
        bytes: read!(bytes),
        name: NameId::NONE,
        device: read!(deviceId),
        stream: read!(streamId),
        correlation: read!(correlationId),
        grid: [0; 3],
        dynamic_shared: 0,
        static_shared: 0,
        local_per_thread: 0,
        block: [0; 3],
        registers: 0,
        copy_kind: read!(copyKind),
        is_copy: true,
    }
}

/// Names by the address at which CUPTI keeps them. They are remembered for one buffer only: later
/// the address may be another name's.
struct Names<'t> {
    table: &'t NameTable,
    known: [(usize, NameId); REMEMBERED],
}

impl Names<'_> {
    fn of(&mut self, address: usize) -> NameId {
        // Allocated strings are apart by at least 16 bytes.
        let Some(place) = self.known.get_mut(address / 16 % REMEMBERED) else {
            return NameId::NONE;
        };
        if place.0 != address {
            let mut text = [0; MAX_NAME_BYTES];
            let id = read_foreign(address, &mut text)
                .and_then(|bytes| text.get(..bytes))
                .map_or(NameId::NONE, |name| self.table.intern(name));
            *place = (address, id);
        }
        place.1
    }
}
