//! From Kineto's document to records.

use std::io::Read;

use super::category::is_known;
use super::interpret::{Unclear, record};
use super::members::{Members, Wrong};
use crate::finding::Finding;
use crate::json::stream::{Error, Position, Stream};
use crate::json::{Kind, Reader};
use crate::trace::{Record, Sink};

/// Reads the trace in `input` and hands on its records in their order.
///
/// A record that is not understood is handed on as [`Record::Other`], with a finding that says why
/// or, where nothing is wrong with it, as an unknown kind.
///
/// Memory: that of [`Stream`], and the document's own metadata one value at a time.
///
/// # Errors
/// Where the document is no JSON, is cut off, or cannot be read. All records before that place have
/// been handed on.
pub fn read<R: Read>(input: R, sink: &mut dyn Sink) -> Result<(), Error> {
    let mut stream = Stream::new(input);
    if stream.peek()? == Kind::Array {
        events(&mut stream, sink)?;
        return stream.end();
    }
    stream.enter_object()?;
    while let Some(key) = stream.next_key()? {
        match key.as_str() {
            "traceEvents" => events(&mut stream, sink)?,
            "baseTimeNanoseconds" => base_time(&mut stream, sink)?,
            _ => document(&mut stream, &key, sink)?,
        }
    }
    stream.end()
}

fn document<R: Read>(stream: &mut Stream<R>, key: &str, sink: &mut dyn Sink) -> Result<(), Error> {
    let line = stream.value_position()?.line;
    stream.value(|reader| {
        let json = reader.skip()?;
        sink.record(line, &Record::Document { key: key.into(), json: json.into() });
        Ok(())
    })
}

fn base_time<R: Read>(stream: &mut Stream<R>, sink: &mut dyn Sink) -> Result<(), Error> {
    let position = stream.value_position()?;
    let line = position.line;
    stream.value(|reader| {
        let whole = reader.clone();
        let nanoseconds = match reader.peek()? {
            Kind::Number => reader.number()?.whole(),
            _ => {
                reader.skip()?;
                None
            }
        };
        if let Some(nanoseconds) = nanoseconds {
            sink.record(line, &Record::BaseTime(nanoseconds));
            return Ok(());
        }
        let json = text(whole);
        let key = "baseTimeNanoseconds";
        sink.at(position);
        sink.finding(Finding::refused(line, key, "a whole number of 64 bits", json));
        sink.record(line, &Record::Document { key: key.into(), json: json.into() });
        Ok(())
    })
}

fn events<R: Read>(stream: &mut Stream<R>, sink: &mut dyn Sink) -> Result<(), Error> {
    stream.enter_array()?;
    while stream.next_item()? {
        let position = stream.value_position()?;
        stream.value(|reader| {
            let whole = reader.clone();
            if reader.peek()? != Kind::Object {
                reader.skip()?;
                let json = text(whole);
                sink.at(position);
                sink.finding(Finding::refused(position.line, "traceEvents", "an object", json));
                sink.record(position.line, &Record::Other(json.into()));
                return Ok(());
            }
            let members = Members::read(reader)?;
            // The object has been read to its end: what follows happens once.
            event(position, members, whole, sink);
            Ok(())
        })?;
    }
    Ok(())
}

fn event<'a>(position: Position, members: Members<'a>, whole: Reader<'a>, sink: &mut dyn Sink) {
    let line = position.line;
    let mut odd = vec![];
    match record(members, &mut odd) {
        Ok(record) => {
            if !odd.is_empty() {
                sink.at(position);
            }
            for Wrong { field, expected, found } in odd {
                sink.finding(Finding::suspect(line, field, expected, found));
            }
            if let Record::Event(event) = &record {
                match event.category.as_deref() {
                    Some(category) if !is_known(category) => sink.unknown(line, category),
                    _ => {}
                }
            }
            sink.record(line, &record);
        }
        Err(unclear) => {
            match unclear {
                Unclear::Wrong(Wrong { field, expected, found }) => {
                    sink.at(position);
                    sink.finding(Finding::refused(line, field, expected, found));
                }
                Unclear::Unknown(name) => sink.unknown(line, &name),
                Unclear::Derived => return,
            }
            sink.record(line, &Record::Other(text(whole).into()));
        }
    }
}

/// The value before which a reader stands, which has been read once without a fault.
fn text(mut reader: Reader<'_>) -> &str {
    reader.skip().unwrap_or_default()
}
