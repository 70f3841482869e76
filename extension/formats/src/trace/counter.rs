//! Values over time.

use super::{Metadata, Track};
use crate::event::Text;
use crate::time::Timestamp;

/// The values of a counter at one moment. They hold until the next event of the same track and name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CounterEvent<'a> {
    /// When.
    pub timestamp: Timestamp,
    /// Where it is drawn; the row is none where the counter belongs to the whole process.
    pub track: Track<'a>,
    /// Ordinal of the device that the values are of.
    pub device: Option<i64>,
    /// The producer's category.
    pub category: Option<Text<'a>>,
    /// The counter's name.
    pub name: Text<'a>,
    /// The values by the name of their series. Kineto's hardware counters name theirs `""`.
    pub values: Metadata<'a>,
    /// The values' unit, in UCUM: `By`, `%`, `W`.
    pub unit: Option<Text<'a>>,
}
