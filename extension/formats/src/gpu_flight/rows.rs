//! Rows become events: which column means what, type by type.

use super::dictionary::{Dictionaries, Kind};
use crate::event::{
    Copy, CopyKind, Device, Host, Kernel, Phase, Profile, Scope, System, Text, What,
};
use crate::time::{Span, Timestamp};

/// The types of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Type {
    Kernel,
    Copy,
    Scope,
    Profile,
    Host,
    Device,
}

impl Type {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "kernel_event_batch" => Self::Kernel,
            "memcpy_event_batch" => Self::Copy,
            "scope_event_batch" => Self::Scope,
            "profile_sample_batch" => Self::Profile,
            "host_metric_batch" => Self::Host,
            "device_metric_batch" => Self::Device,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel_event_batch",
            Self::Copy => "memcpy_event_batch",
            Self::Scope => "scope_event_batch",
            Self::Profile => "profile_sample_batch",
            Self::Host => "host_metric_batch",
            Self::Device => "device_metric_batch",
        }
    }

    /// Whether a batch of this type may have that column.
    pub(super) fn knows(self, column: &str) -> bool {
        let (required, optional) = self.columns();
        required.contains(&column) || optional.contains(&column)
    }

    /// Columns without which a row tells nothing, and those that may be there.
    fn columns(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Kernel => (
                &["dt_ns", "kernel_id", "duration_ns"],
                &[
                    "stream_id",
                    "corr_id",
                    "dyn_shared",
                    "num_regs",
                    "has_details",
                    "external_kind",
                    "external_id",
                ],
            ),
            Self::Copy => {
                (&["dt_ns", "duration_ns", "bytes", "copy_kind"], &["stream_id", "corr_id"])
            }
            Self::Scope => (
                &["dt_ns", "scope_instance_id", "name_id", "event_type"],
                &["depth", "repeat", "warmup", "original_start_ns"],
            ),
            Self::Profile => (
                &["dt_ns"],
                &[
                    "metric_value",
                    "corr_id",
                    "device_id",
                    "function_id",
                    "pc_offset",
                    "metric_id",
                    "stall_reason",
                    "sample_kind",
                    "scope_name_id",
                    "source_file_id",
                    "source_line",
                ],
            ),
            Self::Host => (&["dt_ns"], &["cpu_pct_x100", "ram_used_mib", "ram_total_mib"]),
            Self::Device => (
                &["dt_ns", "device_id"],
                &[
                    "gpu_util",
                    "mem_util",
                    "temp_c",
                    "power_mw",
                    "used_mib",
                    "total_mib",
                    "clock_sm",
                ],
            ),
        }
    }
}

/// Most columns that a type has.
const MOST: usize = 12;

/// Where each of a type's columns stands in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    of: Type,
    /// By the order of [`Type::columns`].
    places: [Option<usize>; MOST],
}

impl Layout {
    /// The layout for these columns, or the name of one that is missing.
    pub(super) fn new(of: Type, columns: &[Text<'_>]) -> Result<Self, &'static str> {
        let (required, optional) = of.columns();
        let mut places = [None; MOST];
        for (place, name) in places.iter_mut().zip(required.iter().chain(optional)) {
            *place = columns.iter().position(|column| column == name);
        }
        let missing = required.iter().zip(&places).find(|(_, place)| place.is_none());
        missing.map_or(Ok(Self { of, places }), |(name, _)| Err(name))
    }

    fn cell(&self, row: &[i64], column: usize) -> Option<i64> {
        let place = self.places.get(column).copied().flatten()?;
        row.get(place).copied()
    }

    /// The first id in the row that no dictionary line has explained.
    pub(super) fn unexplained(&self, row: &[i64], texts: &Dictionaries) -> Option<(Kind, i64)> {
        let ids: &[(usize, Kind)] = match self.of {
            Type::Kernel => &[(1, Kind::Kernel)],
            Type::Scope => &[(2, Kind::ScopeName)],
            Type::Profile => &[
                (4, Kind::Function),
                (6, Kind::Metric),
                (9, Kind::ScopeName),
                (10, Kind::SourceFile),
            ],
            Type::Copy | Type::Host | Type::Device => &[],
        };
        let is_needed = matches!(self.of, Type::Kernel | Type::Scope);
        ids.iter().find_map(|(column, kind)| {
            let id = self.cell(row, *column).filter(|id| *id != 0 || is_needed)?;
            texts.text(*kind, id).is_none().then_some((*kind, id))
        })
    }

    /// The event that a row tells.
    pub(super) fn event<'d>(
        &self,
        base: i64,
        row: &[i64],
        texts: &'d Dictionaries,
    ) -> Result<What<'d>, Unresolved> {
        let cell = |column| self.cell(row, column);
        let need = |column| self.cell(row, column).unwrap_or_default();
        let time = Timestamp(base.checked_add(need(0)).ok_or(Unresolved::Time)?);
        let text = |kind: Kind, id: i64| {
            texts.text(kind, id).map(Into::into).ok_or(Unresolved::Id(kind, id))
        };
        let text_or_none = |kind: Kind, id: Option<i64>| match id {
            None | Some(0) => Ok(None),
            Some(id) => text(kind, id).map(Some),
        };
        Ok(match self.of {
            Type::Kernel => What::Kernel(Kernel {
                start: time,
                name: text(Kind::Kernel, need(1))?,
                duration: Span(need(2)),
                stream: cell(3),
                correlation: cell(4),
                dynamic_shared_bytes: cell(5),
                registers: cell(6),
                has_details: cell(7).map(|flag| flag != 0),
                external_kind: cell(8),
                external: cell(9),
                ..Kernel::default()
            }),
            Type::Copy => What::Copy(Copy {
                start: time,
                duration: Span(need(1)),
                bytes: need(2),
                kind: CopyKind(need(3)),
                stream: cell(4),
                correlation: cell(5),
                ..Copy::default()
            }),
            Type::Scope => What::Scope(Scope {
                phase: match need(3) {
                    0 => Phase::Begin,
                    1 => Phase::End,
                    2 => Phase::Continue,
                    3 => Phase::Suspend,
                    other => return Err(Unresolved::EventType(other)),
                },
                time,
                instance: Some(need(1)),
                name: text(Kind::ScopeName, need(2))?,
                depth: cell(4),
                repeat: cell(5),
                warmup: cell(6),
                original_start: cell(7).map(Timestamp),
                ..Scope::default()
            }),
            Type::Profile => What::Profile(Profile {
                time,
                value: cell(1),
                correlation: cell(2),
                device: cell(3),
                function: text_or_none(Kind::Function, cell(4))?,
                pc_offset: cell(5),
                metric: text_or_none(Kind::Metric, cell(6))?,
                stall_reason: cell(7),
                kind: cell(8),
                scope: text_or_none(Kind::ScopeName, cell(9))?,
                source_file: text_or_none(Kind::SourceFile, cell(10))?,
                source_line: cell(11),
                ..Profile::default()
            }),
            Type::Host => What::System(System {
                time,
                host: Some(Host {
                    cpu_centipercent: cell(1),
                    ram_used_mib: cell(2),
                    ram_total_mib: cell(3),
                }),
                ..System::default()
            }),
            Type::Device => What::System(System {
                time,
                devices: vec![Device {
                    index: need(1),
                    gpu_percent: cell(2),
                    memory_percent: cell(3),
                    temperature_celsius: cell(4),
                    power_milliwatts: cell(5),
                    used_mib: cell(6),
                    total_mib: cell(7),
                    multiprocessor_mhz: cell(8),
                    ..Device::default()
                }],
                ..System::default()
            }),
        })
    }
}

/// Why a row tells no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unresolved {
    /// No dictionary line has told what the id means.
    Id(Kind, i64),
    /// The row's time is beyond 64 bits.
    Time,
    /// A scope does not know this type of event.
    EventType(i64),
}
