//! JSON in one spelling, so that two texts with the same value are the same text.

use warpgauge_formats::json::{Kind, Reader, write};

/// The value that `text` is: keys in their order, integers with all their digits, other numbers as
/// the doubles that they are.
pub(crate) fn canonical(text: &str) -> String {
    let mut out = vec![];
    let mut reader = Reader::new(text);
    value(&mut reader, &mut out);
    reader.end().unwrap();
    String::from_utf8(out).unwrap()
}

fn value(reader: &mut Reader<'_>, out: &mut Vec<u8>) {
    match reader.peek().unwrap() {
        Kind::Object => {
            reader.enter_object().unwrap();
            out.push(b'{');
            while let Some(key) = reader.next_key().unwrap() {
                write::text(out, &key);
                out.push(b':');
                value(reader, out);
                out.push(b',');
            }
            out.push(b'}');
        }
        Kind::Array => {
            reader.enter_array().unwrap();
            out.push(b'[');
            while reader.next_item().unwrap() {
                value(reader, out);
                out.push(b',');
            }
            out.push(b']');
        }
        Kind::Text => write::text(out, &reader.text().unwrap()),
        Kind::Number => {
            let number = reader.number().unwrap();
            let digits = number.as_str();
            match digits {
                "-0" => out.push(b'0'),
                _ if digits.contains(['.', 'e', 'E']) => {
                    out.extend_from_slice(format!("{:e}f", number.as_f64()).as_bytes());
                }
                _ => out.extend_from_slice(digits.as_bytes()),
            }
        }
        Kind::Boolean => write::boolean(out, reader.boolean().unwrap()),
        Kind::Null => {
            reader.null().unwrap();
            out.extend_from_slice(b"null");
        }
    }
}
