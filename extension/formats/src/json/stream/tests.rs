//! A document cut anywhere reads like the whole one.

use super::*;
use proptest::prelude::*;

/// Gives a few bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(into.len());
        (&mut self.0).take(count as u64).read(into)
    }
}

/// Walks an object of arrays, whose items are read whole, and tells all that it meets.
fn walk(document: &[u8], drip: usize) -> Result<Vec<String>> {
    let mut stream = Stream::new(Drip(document, drip));
    let mut met = vec![];
    stream.enter_object()?;
    while let Some(key) = stream.next_key()? {
        met.push(key);
        if stream.peek()? != Kind::Array {
            met.push(stream.value(|reader| reader.skip().map(str::to_owned))?);
            continue;
        }
        stream.enter_array()?;
        while stream.next_item()? {
            let position = stream.value_position()?;
            let item = stream.value(|reader| reader.skip().map(str::to_owned))?;
            assert!(document[position.offset as usize..].starts_with(item.as_bytes()));
            met.push(item);
        }
    }
    stream.end()?;
    Ok(met)
}

const DOCUMENT: &str = " {\"ä\": [1.25, -7e3 , \"\u{1f600}\\ud83d\\ude00\", {\"b\":[[],{}]},\n true], \"n\" :12, \"z\":null}\n ";

#[test]
fn the_smallest_reads_give_what_the_largest_give() {
    let expected = [
        "ä",
        "1.25",
        "-7e3",
        "\"\u{1f600}\\ud83d\\ude00\"",
        "{\"b\":[[],{}]}",
        "true",
        "n",
        "12",
        "z",
        "null",
    ];
    for drip in [1, 2, 3, 5, 7, 1000] {
        assert_eq!(walk(DOCUMENT.as_bytes(), drip).unwrap(), expected);
    }
}

#[test]
fn a_number_that_is_the_whole_document_is_read_to_its_end() {
    let mut stream = Stream::new(Drip(b"1250", 1));
    let number = stream.value(|reader| Ok(reader.number()?.as_str().to_owned())).unwrap();
    assert_eq!(number, "1250");
    stream.end().unwrap();
}

#[test]
fn a_byte_order_mark_belongs_to_no_value() {
    assert_eq!(walk(b"\xef\xbb\xbf{\"a\":1}", 1).unwrap(), ["a", "1"]);
    let fault = walk(b"\xef\xbb\xbf{a", 1).unwrap_err();
    let said = "line 1, column 2 (byte 4): a key in double quotes was expected";
    assert_eq!(fault.to_string(), said);
}

#[test]
fn a_fault_names_line_and_column() {
    for drip in [1, 4, 1000] {
        let fault = walk(b"{\"a\": [1,\n  {\"b\": tru3}]}", drip).unwrap_err();
        assert_eq!(fault.to_string(), "line 2, column 9 (byte 18): true was expected");
    }
}

#[test]
fn what_is_no_utf8_is_named_and_what_stands_before_it_is_read() {
    let mut stream = Stream::new(Drip(b"[1,\n\"\xff\"]", 100));
    stream.enter_array().unwrap();
    assert!(stream.next_item().unwrap());
    assert_eq!(stream.value(|reader| Ok(reader.plain_integer())).unwrap(), Some(1));
    assert!(stream.next_item().unwrap());
    let fault = stream.value(|reader| reader.skip().map(drop)).unwrap_err();
    assert_eq!(fault.to_string(), "line 2, column 2 (byte 5): the text is not UTF-8");
}

#[test]
fn a_character_cut_by_the_end_is_not_utf8() {
    let fault = walk(b"{\"\xc3", 1).unwrap_err();
    assert!(matches!(fault, Error::NotUtf8 { .. }), "{fault}");
}

#[test]
fn a_value_that_is_too_long_is_refused_where_it_begins() {
    let mut document = b"[1,\n \"".to_vec();
    document.resize(LONGEST_VALUE + CHUNK, b'x');
    let mut stream = Stream::new(&*document);
    stream.enter_array().unwrap();
    assert!(stream.next_item().unwrap());
    stream.value(|reader| reader.skip().map(drop)).unwrap();
    assert!(stream.next_item().unwrap());
    let fault = stream.value(|reader| reader.skip().map(drop)).unwrap_err();
    let said = "line 2, column 2 (byte 5): the value that begins here is longer than 16 MiB";
    assert_eq!(fault.to_string(), said);
}

#[test]
fn a_value_longer_than_the_first_buffer_is_read_whole() {
    let long = "y".repeat(3 * CHUNK + 17);
    let document = format!("{{\"a\": \"{long}\", \"b\": 2}}");
    let met = walk(document.as_bytes(), 4096).unwrap();
    assert_eq!(met.get(1).map(String::len), Some(long.len() + 2));
    assert_eq!(met.get(3).map(String::as_str), Some("2"));
}

#[test]
fn something_behind_the_document_is_a_fault() {
    let fault = walk(b"{} \n x", 1).unwrap_err();
    let said = "line 2, column 2 (byte 5): something stands behind the value";
    assert_eq!(fault.to_string(), said);
}

proptest! {
    #[test]
    fn a_document_cut_anywhere_says_so_at_its_end(cut in 2..DOCUMENT.trim_end().len(), drip in 1..9_usize) {
        let document = &DOCUMENT.as_bytes()[..cut];
        let position = match walk(document, drip).unwrap_err() {
            Error::CutOff { position, .. } | Error::NotUtf8 { position } => position,
            other => panic!("{other}"),
        };
        let whole = document.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
        prop_assert!(position.offset <= whole as u64);
        prop_assert!(position.offset + 8 >= whole as u64);
    }

    #[test]
    fn bytes_of_any_kind_end_in_a_result(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = walk(&bytes, 3);
    }
}
