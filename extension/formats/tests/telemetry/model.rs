//! The rules written down a second time, as plainly as the format's description has them: over a tree
//! of values, without regard to speed. The crate has to agree with it on any record.

use serde_json::{Map, Value};

use crate::records::REQUIRED;

type Record = Map<String, Value>;

/// The event without its metadata as JSON text, and its metadata; or the first fault.
pub(crate) fn from_record(record: &Record) -> Result<(String, Value), String> {
    if let Some(version) = record.get("schema_version") {
        let version = integer(version, "schema_version")?;
        if version != 2 {
            return Err(format!("Unsupported schema_version: {version}"));
        }
        return validate(record.iter().map(|(key, value)| (key.clone(), of(value))).collect());
    }
    convert(record).and_then(validate)
}

/// A value of which integers may have more than 64 bits.
#[derive(Debug, Clone)]
enum Any {
    Integer(i128),
    Other(Value),
}

type Wide = std::collections::BTreeMap<String, Any>;

fn of(value: &Value) -> Any {
    as_integer(value).map_or_else(|| Any::Other(value.clone()), Any::Integer)
}

fn as_integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

fn integer(value: &Value, key: &str) -> Result<i128, String> {
    as_integer(value).ok_or(format!("{key} must be an integer"))
}

fn is_blank(text: &str) -> bool {
    let is_space = |letter: char| {
        matches!(
            letter,
            '\t'..='\r' | '\u{1c}'..='\u{20}' | '\u{85}' | '\u{a0}' | '\u{1680}'
                | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}'
                | '\u{3000}'
        )
    };
    text.chars().all(is_space)
}

fn text(value: &Value, key: &str) -> Result<String, String> {
    match value {
        Value::String(text) if !is_blank(text) => Ok(text.clone()),
        Value::String(_) | Value::Null => Err(format!("{key} must be a non-empty string")),
        _ => Err(format!("{key} must be a string")),
    }
}

fn validate(record: Wide) -> Result<(String, Value), String> {
    let missing: Vec<_> = REQUIRED.into_iter().filter(|key| !record.contains_key(*key)).collect();
    if !missing.is_empty() {
        return Err(format!("Missing required telemetry fields: {}", missing.join(", ")));
    }
    let unknown: Vec<_> =
        record.keys().map(String::as_str).filter(|key| !REQUIRED.contains(key)).collect();
    if !unknown.is_empty() {
        return Err(format!("Unknown telemetry fields: {}", unknown.join(", ")));
    }
    let integer = |key: &str| match &record[key] {
        Any::Integer(value) => Ok(*value),
        Any::Other(_) => Err(format!("{key} must be an integer")),
    };
    let optional = |key: &str| match &record[key] {
        Any::Other(Value::Null) => Ok(None),
        _ => integer(key).map(Some),
    };
    let least = |key: &str, least: i128, more: &str| match &record[key] {
        Any::Integer(value) if *value < least => Err(format!("{key} must be >= {least}{more}")),
        _ => Ok(()),
    };
    let words = |key: &str| match &record[key] {
        Any::Integer(_) => Err(format!("{key} must be a string")),
        Any::Other(value) => text(value, key).map(drop),
    };
    integer("timestamp_ns")?;
    least("timestamp_ns", 0, "")?;
    words("event_type")?;
    words("collector")?;
    integer("sampling_interval_ms")?;
    least("sampling_interval_ms", 0, "")?;
    integer("pid")?;
    least("pid", -1, "")?;
    words("host")?;
    integer("device_id")?;
    integer("allocator_allocated_bytes")?;
    integer("allocator_reserved_bytes")?;
    optional("allocator_active_bytes")?;
    optional("allocator_inactive_bytes")?;
    integer("allocator_change_bytes")?;
    least("allocator_allocated_bytes", 0, "")?;
    least("allocator_reserved_bytes", 0, "")?;
    least("allocator_active_bytes", 0, " when provided")?;
    least("allocator_inactive_bytes", 0, " when provided")?;
    let used = integer("device_used_bytes")?;
    let free = optional("device_free_bytes")?;
    let total = optional("device_total_bytes")?;
    least("device_used_bytes", 0, "")?;
    least("device_free_bytes", 0, " when provided")?;
    least("device_total_bytes", 0, " when provided")?;
    if total.is_some_and(|total| used > total) {
        return Err("device_used_bytes cannot exceed device_total_bytes".to_owned());
    }
    if total.is_some_and(|total| free.is_some_and(|free| free > total)) {
        return Err("device_free_bytes cannot exceed device_total_bytes".to_owned());
    }
    if !matches!(record["context"], Any::Other(Value::Null | Value::String(_))) {
        return Err("context must be a string".to_owned());
    }
    let Any::Other(metadata @ Value::Object(_)) = &record["metadata"] else {
        return Err("metadata must be an object".to_owned());
    };
    let member = |key: &&str| match &record[*key] {
        Any::Integer(value) => format!("\"{key}\":{value}"),
        Any::Other(_) if *key == "metadata" => "\"metadata\":{}".to_owned(),
        Any::Other(value) => format!("\"{key}\":{value}"),
    };
    let members: Vec<_> = REQUIRED.iter().map(member).collect();
    Ok((format!("{{{}}}", members.join(",")), metadata.clone()))
}

fn convert(record: &Record) -> Result<Wide, String> {
    let mut metadata = match record.get("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(members)) => members.clone(),
        Some(_) => return Err("metadata must be an object when provided".to_owned()),
    };
    for (key, value) in record {
        if let Some(key) = key.strip_prefix("metadata_") {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let first = |keys: &[&str]| match keys.iter().find(|key| record.contains_key(**key)) {
        Some(key) => integer(&record[*key], key).map(Some),
        None => Ok(None),
    };
    let times = |key: &str, factor: f64| match record.get(key) {
        Some(Value::Number(number)) => Some((number.as_f64().unwrap() * factor) as i128),
        _ => None,
    };
    let timestamp = match first(&["timestamp_ns"])? {
        Some(timestamp) => timestamp,
        None => times("timestamp", 1_000_000_000.0)
            .ok_or("Legacy record is missing a valid timestamp")?,
    };
    let device = match first(&["device_id"])? {
        Some(device) => device,
        None => device_of(record)?,
    };
    let allocated = match first(&["allocator_allocated_bytes", "memory_allocated"])? {
        Some(bytes) => bytes,
        None => match times("memory_mb", 1024.0 * 1024.0) {
            Some(bytes) => bytes,
            None => first(&["device_used_bytes"])?.unwrap_or(0),
        },
    };
    let reserved = first(&["allocator_reserved_bytes", "memory_reserved"])?.unwrap_or(allocated);
    let change = first(&["allocator_change_bytes", "memory_change"])?.unwrap_or(0);
    let nullable = |members: &Record, key: &str| match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => integer(value, key).map(Some),
    };
    let active = nullable(record, "allocator_active_bytes")?;
    let inactive = nullable(record, "allocator_inactive_bytes")?;
    let used = first(&["device_used_bytes"])?.unwrap_or(allocated);
    let aliases = ["total_memory", "device_total", "total_bytes"];
    let in_record = ["device_total_bytes"].into_iter().chain(aliases);
    let mut places = in_record.map(|key| (record, key)).chain(aliases.map(|key| (&metadata, key)));
    let total = match places.find(|(members, key)| members.contains_key(*key)) {
        Some((members, key)) => nullable(members, key)?,
        None => None,
    };
    let free = match record.contains_key("device_free_bytes") {
        true => nullable(record, "device_free_bytes")?,
        false => total.map(|total| (total - used).max(0)),
    };
    let sample = Value::from("sample");
    let event_type = record.get("event_type").or(record.get("type")).unwrap_or(&sample);
    let event_type = text(event_type, "event_type")?;
    let interval = first(&["sampling_interval_ms"])?.unwrap_or(0);
    let pid = match record.get("pid").or(metadata.get("pid")) {
        Some(pid) => integer(pid, "pid")?,
        None => -1,
    };
    let host = match record.get("host").or(metadata.get("host")) {
        Some(host) => text(host, "host")?,
        None => "unknown".to_owned(),
    };
    let collector = collector_of(record, &metadata, device);
    let null = Value::Null;
    let context = record.get("context").or(record.get("message")).unwrap_or(&null);
    if !matches!(context, Value::Null | Value::String(_)) {
        return Err("context must be a string".to_owned());
    }
    let null_or = |value: Option<i128>| value.map_or(Any::Other(Value::Null), Any::Integer);
    let other = |text: String| Any::Other(Value::from(text));
    let members = [
        ("schema_version", Any::Integer(2)),
        ("timestamp_ns", Any::Integer(timestamp)),
        ("event_type", other(event_type)),
        ("collector", other(collector)),
        ("sampling_interval_ms", Any::Integer(interval)),
        ("pid", Any::Integer(pid)),
        ("host", other(host)),
        ("device_id", Any::Integer(device)),
        ("allocator_allocated_bytes", Any::Integer(allocated)),
        ("allocator_reserved_bytes", Any::Integer(reserved)),
        ("allocator_active_bytes", null_or(active)),
        ("allocator_inactive_bytes", null_or(inactive)),
        ("allocator_change_bytes", Any::Integer(change)),
        ("device_used_bytes", Any::Integer(used)),
        ("device_free_bytes", null_or(free)),
        ("device_total_bytes", null_or(total)),
        ("context", Any::Other(context.clone())),
        ("metadata", Any::Other(Value::Object(metadata.clone()))),
    ];
    Ok(members.map(|(key, value)| (key.to_owned(), value)).into())
}

fn device_of(record: &Record) -> Result<i128, String> {
    if let Some(Value::String(name)) = record.get("device") {
        if name.to_lowercase().contains("cpu") {
            return Ok(-1);
        }
        // The digits of which the generated names are made.
        match name.rsplit(':').next().filter(|_| name.contains(':')).unwrap_or_default() {
            "٣" => return Ok(3),
            "²" => return Err("invalid literal for int() with base 10: '²'".to_owned()),
            number if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Ok(number.parse().unwrap());
            }
            _ if name.to_lowercase().starts_with("/gpu") => return Ok(0),
            _ => {}
        }
    }
    Ok(if record.contains_key("memory_mb") { 0 } else { -1 })
}

fn collector_of(record: &Record, metadata: &Record, device: i128) -> String {
    if let Some(Value::String(collector)) = record.get("collector")
        && !is_blank(collector)
    {
        return collector.clone();
    }
    if let Some(Value::String(backend)) = record.get("backend").or(metadata.get("backend")) {
        let backend = backend.trim().to_lowercase();
        if ["mps", "rocm", "cuda", "cpu"].contains(&backend.as_str()) {
            return format!("gpumemprof.{backend}_tracker");
        }
    }
    let name = if record.contains_key("memory_mb") {
        "tfmemprof.memory_tracker"
    } else if record.contains_key("memory_allocated") && device == -1 {
        "gpumemprof.cpu_tracker"
    } else if record.contains_key("memory_allocated") {
        "gpumemprof.cuda_tracker"
    } else {
        "legacy.unknown"
    };
    name.to_owned()
}
