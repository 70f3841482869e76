//! One JSON document: a list of records, an object with such a list, or one record.

use std::io::Read;

use super::{Fault, Form, Intake, LoadError, Place, TelemetryEvent};
use crate::json::Kind;
use crate::json::stream::{self, LONGEST_VALUE, Stream};
use crate::telemetry::key::Key;
use crate::telemetry::record::{Record, is_of_interest};

/// The key under which producers put their events.
const EVENTS: &str = "events";

pub(super) fn load(
    input: impl Read,
    events_key: Option<&str>,
    intake: &mut Intake<'_>,
) -> Result<Form, LoadError> {
    let mut stream = Stream::new(input);
    match stream.peek()? {
        Kind::Array => {
            list(&mut stream, intake)?;
            stream.end()?;
            Ok(Form::List)
        }
        Kind::Object => object(&mut stream, events_key, intake),
        _ => {
            skip(&mut stream)?;
            stream.end()?;
            Err(LoadError::NoContainer)
        }
    }
}

fn list<R: Read>(stream: &mut Stream<R>, intake: &mut Intake<'_>) -> stream::Result<()> {
    stream.enter_array()?;
    while stream.next_item()? {
        let position = stream.value_position()?;
        let place = intake.place(position.line, position.offset);
        if stream.peek()? == Kind::Object {
            stream.value(|reader| {
                let record = Record::read(reader)?;
                // Nothing fails from here on, so that no record is taken twice.
                intake.take(place, TelemetryEvent::from_record(record, intake.options));
                Ok(())
            })?;
        } else {
            skip(stream)?;
            intake.take(place, Err(Fault::ItemNotAnObject(place.index)));
        }
    }
    Ok(())
}

fn object<R: Read>(
    stream: &mut Stream<R>,
    events_key: Option<&str>,
    intake: &mut Intake<'_>,
) -> Result<Form, LoadError> {
    let begin = stream.value_position()?;
    let list_key = events_key.unwrap_or(EVENTS);
    let mut list_was_read = false;
    // The object's own members, for as long as it may be a record itself.
    let mut members = Members::default();
    stream.enter_object()?;
    while let Some(name) = stream.next_key()? {
        if name == list_key && list_was_read {
            return Err(LoadError::KeyTwice { key: name, position: stream.position() });
        }
        if name == list_key && stream.peek()? == Kind::Array {
            list(stream, intake)?;
            list_was_read = true;
        } else if list_was_read || events_key.is_some() {
            skip(stream)?;
        } else {
            members.read(name, stream)?;
        }
    }
    stream.end()?;
    match events_key {
        _ if list_was_read => Ok(Form::Object),
        Some(key) => Err(LoadError::NoListUnderKey { key: key.to_owned() }),
        None if members.record.tells_an_event() => {
            let place = Place { index: 0, line: begin.line, offset: begin.offset };
            intake.take(place, TelemetryEvent::from_record(members.record, intake.options));
            Ok(Form::Record)
        }
        None => Err(LoadError::NoEvents),
    }
}

/// Members that are read one by one, because the object that they are of may be larger than memory.
#[derive(Default)]
struct Members {
    record: Record<'static>,
    /// Bytes that they have, as they are written.
    bytes: u64,
}

impl Members {
    fn read<R: Read>(&mut self, name: String, stream: &mut Stream<R>) -> Result<(), LoadError> {
        let begin = stream.position().offset;
        self.bytes += name.len() as u64;
        if is_of_interest(&name) {
            stream.value(|reader| {
                let mut member = Record::default();
                member.read_member(Key::named(&name), name.clone().into(), reader)?;
                self.record.absorb(member);
                Ok(())
            })?;
            self.bytes += stream.position().offset - begin;
        } else {
            skip(stream)?;
            self.record.absorb_unknown(name);
        }
        if self.bytes > LONGEST_VALUE as u64 {
            return Err(LoadError::RecordTooLarge { position: stream.position() });
        }
        Ok(())
    }
}

/// Passes over a value of any size.
fn skip<R: Read>(stream: &mut Stream<R>) -> stream::Result<()> {
    match stream.peek()? {
        Kind::Object => {
            stream.enter_object()?;
            while stream.next_key()?.is_some() {
                skip(stream)?;
            }
        }
        Kind::Array => {
            stream.enter_array()?;
            while stream.next_item()? {
                skip(stream)?;
            }
        }
        _ => stream.value(|reader| reader.skip().map(drop))?,
    }
    Ok(())
}
