//! Why a record is refused.

use std::fmt;

use crate::json;
use crate::lines::LONGEST_LINE;

/// A rule that a record breaks. The texts are those of the format's reference, where it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The record is no object.
    #[error("record must be a mapping")]
    NotAnObject,
    /// The version is not 2. Such a record is never read as a legacy one.
    #[error("Unsupported schema_version: {0}")]
    UnsupportedVersion(String),
    /// The version is not 2, where only that was asked for.
    #[error("schema_version must be 2")]
    NotVersion2,
    /// The record has no version, and legacy records were not asked for.
    #[error("Legacy record conversion is disabled")]
    LegacyDisabled,
    /// Keys of the schema that are not there, in its order.
    #[error("Missing required telemetry fields: {}", .0.join(", "))]
    Missing(Vec<&'static str>),
    /// Keys that the schema does not have, sorted by code point.
    #[error("Unknown telemetry fields: {}", .0.join(", "))]
    Unknown(Vec<String>),
    /// A value is no integer: one without fraction and exponent.
    #[error("{0} must be an integer")]
    NotAnInteger(&'static str),
    /// An integer is too large or too small to be held.
    #[error("{0} must be within 128 bits")]
    BeyondRange(&'static str),
    /// A value is no string.
    #[error("{0} must be a string")]
    NotAString(&'static str),
    /// A value is null or blank.
    #[error("{0} must be a non-empty string")]
    Blank(&'static str),
    /// A number is below its minimum.
    #[error("{field} must be >= {minimum}{}", if *.nullable { " when provided" } else { "" })]
    TooSmall {
        /// The number's key.
        field: &'static str,
        /// The least that it may be.
        minimum: i128,
        /// Whether it may also be null.
        nullable: bool,
    },
    /// The device holds less than is used of it or free on it.
    #[error("{0} cannot exceed device_total_bytes")]
    MoreThanTotal(&'static str),
    /// `metadata` is no object.
    #[error("metadata must be an object")]
    MetadataNotAnObject,
    /// `metadata` of a legacy record is neither an object nor null.
    #[error("metadata must be an object when provided")]
    LegacyMetadataNotAnObject,
    /// A legacy record does not tell its time.
    #[error("Legacy record is missing a valid timestamp")]
    NoTimestamp,
    /// The number of a legacy record's device has digits that are not decimal.
    #[error("invalid literal for int() with base 10: '{0}'")]
    DeviceNumber(String),
    /// A process' number is not below the number of processes.
    #[error("{0} must be < world_size")]
    RankTooLarge(&'static str),
}

/// Why there is no event for a piece of text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text is no JSON.
    #[error(transparent)]
    Json(#[from] json::Fault),
    /// The line begins with a byte order mark.
    #[error("a UTF-8 byte order mark; JSON begins without one, save the file as plain UTF-8")]
    ByteOrderMark,
    /// The line is not UTF-8.
    #[error("the line is not UTF-8 behind byte {valid_up_to}")]
    NotUtf8 {
        /// Bytes of the line before the one that is wrong.
        valid_up_to: usize,
    },
    /// The line is longer than lines may be.
    #[error("the line is longer than {} MiB", LONGEST_LINE >> 20)]
    TooLong,
    /// An item of a list is no object.
    #[error("Event at index {0} must be an object")]
    ItemNotAnObject(u64),
    /// The record breaks a rule of the format.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Where in its file a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Records before it.
    pub index: u64,
    /// The line on which it begins, counted from 1.
    pub line: u64,
    /// Bytes of the file before it.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, line, offset } = self;
        write!(formatter, "event {index} (line {line}, byte {offset})")
    }
}
