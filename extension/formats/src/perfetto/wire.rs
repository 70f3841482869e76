//! Protobuf's wire format: a field is its number and kind, then a number or a length and bytes.

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

#[inline]
fn varint(out: &mut Vec<u8>, value: u64) {
    match u8::try_from(value) {
        Ok(byte @ ..0x80) => out.push(byte),
        _ => long_varint(out, value),
    }
}

fn long_varint(out: &mut Vec<u8>, value: u64) {
    let (bytes, length) = packed(value);
    out.extend_from_slice(bytes.get(..length).unwrap_or_default());
}

/// A number in seven bits a byte, the lowest first, and how many bytes that are.
fn packed(mut value: u64) -> ([u8; 10], usize) {
    let (mut bytes, mut length) = ([0; 10], 0);
    for byte in &mut bytes {
        length += 1;
        *byte = (value as u8) | 0x80;
        value >>= 7;
        if value == 0 {
            *byte &= 0x7f;
            break;
        }
    }
    (bytes, length)
}

/// How many bytes a number takes.
#[inline]
pub(super) fn size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// The head of a field that holds as many bytes, which must follow.
#[inline]
pub(super) fn head(out: &mut Vec<u8>, field: u64, length: usize) {
    varint(out, field << 3 | BYTES);
    varint(out, length as u64);
}

/// A whole number without a sign, or an enumeration's.
#[inline]
pub(super) fn unsigned(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | VARINT);
    varint(out, value);
}

/// A whole number with a sign (`int32`, `int64`): two's complement in 64 bits.
#[inline]
pub(super) fn signed(out: &mut Vec<u8>, field: u64, value: i64) {
    unsigned(out, field, value.cast_unsigned());
}

/// Eight bytes.
#[inline]
pub(super) fn fixed64(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A double.
#[inline]
pub(super) fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    fixed64(out, field, value.to_bits());
}

/// A text.
#[inline]
pub(super) fn text(out: &mut Vec<u8>, field: u64, value: &str) {
    bytes(out, field, value.as_bytes());
}

/// Bytes, or a message that has been written before.
#[inline]
pub(super) fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    head(out, field, value.len());
    out.extend_from_slice(value);
}

/// A message that `write` writes.
#[inline]
pub(super) fn message(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    varint(out, field << 3 | BYTES);
    let place = out.len();
    // The length stands before the message and is known behind it: mostly it takes one byte.
    out.push(0);
    write(out);
    let length = out.len() - place - 1;
    match (u8::try_from(length), out.get_mut(place)) {
        (Ok(length @ ..0x80), Some(slot)) => *slot = length,
        _ => lengthen(out, place, length),
    }
}

/// Makes room for a length of several bytes before the message behind `place`.
fn lengthen(out: &mut Vec<u8>, place: usize, length: usize) {
    let (bytes, size) = packed(length as u64);
    let end = out.len();
    out.resize(end + size - 1, 0);
    out.copy_within(place + 1..end, place + size);
    for (slot, byte) in out.iter_mut().skip(place).zip(bytes).take(size) {
        *slot = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        let mut out = vec![];
        unsigned(&mut out, 1, 300);
        signed(&mut out, 16, -1);
        let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(out, [&[0x08, 0xac, 0x02, 0x80, 0x01][..], &minus_one].concat());
        for value in (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            out.clear();
            varint(&mut out, value);
            assert_eq!(out.len(), size(value), "{value}");
        }
    }

    #[test]
    fn a_message_has_its_length_before_it_however_long_it_is() {
        for (length, written) in [
            (0, &[0x00][..]),
            (127, &[0x7f]),
            (128, &[0x80, 0x01]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x80, 0x80, 0x01]),
        ] {
            let message_itself = vec![b'x'; length];
            let mut out = b"before".to_vec();
            message(&mut out, 2, |out| out.extend_from_slice(&message_itself));
            assert_eq!(out, [&b"before\x12"[..], written, &message_itself].concat());
        }
    }
}
