//! Whatever the text: no panic, a value that is passed over is the value that stands there, and what
//! is written reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpgauge_formats::json::{Kind, Reader, write};

fuzz_target!(|text: &str| {
    let mut reader = Reader::new(text);
    let Ok(value) = reader.skip() else { return };
    assert!(text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with(value));

    let mut again = Reader::new(value);
    match again.peek() {
        Ok(Kind::Text) => {
            let read = again.text().unwrap();
            let mut out = Vec::new();
            write::text(&mut out, &read);
            assert_eq!(Reader::new(std::str::from_utf8(&out).unwrap()).text().unwrap(), read);
        }
        Ok(Kind::Number) => {
            let number = again.number().unwrap();
            if let Some(whole) = number.whole::<i64>() {
                assert!(number.is_whole());
                assert_eq!(number.is_negative(), whole < 0);
            }
            if let Some(plain) = Reader::new(value).plain_integer() {
                assert_eq!(number.whole(), Some(plain));
            }
        }
        other => drop(other.unwrap()),
    }
});
