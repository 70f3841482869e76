//! Event logs as Parquet tables: compact, and read by every query engine.
//!
//! ```text
//! <session>/kernels.parquet           one row per kernel, its details beside it
//!           kernel_details.parquet    details that no kernel was found for
//!           copies.parquet            scopes.parquet         profile_samples.parquet
//!           system_samples.parquet    sessions.parquet
//!           device_samples.parquet    scope_devices.parquet  session_devices.parquet
//!           static_devices.parquet
//! telemetry/telemetry.parquet         samples of memory, which are no event log
//! ```
//!
//! A table without rows has no file. Texts stand in the rows as texts (dictionary encoding makes
//! them cheap), instants and ids that rise are delta encoded, and pages are compressed with zstd.
//! The tables of devices point to the row of the event that they belong to by `event`, which counts
//! the rows of that event's table from 0. Every column may be null: a null is what the log did not
//! tell. `docs/formats/parquet.md` has all columns and tried queries.

mod cells;
mod columns;
mod read;

mod rows;
mod stream;
mod telemetry;
mod write;

pub use read::{Tables, read};
pub use rows::Table;
pub use telemetry::read_telemetry;
pub use write::{Files, Writer};

/// Why tables could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be made or opened.
    #[error("{table}: {error}")]
    File {
        /// The table's name.
        table: &'static str,
        /// What the system answered.
        error: std::io::Error,
    },
    /// Parquet refused.
    #[error("{table}: {error}")]
    Parquet {
        /// The table's name.
        table: &'static str,
        /// What the library answered.
        error: parquet::errors::ParquetError,
    },
    /// A column has another type than its name says.
    #[error("{table}: column {column} is no {expected}: these are not tables of event logs")]
    Column {
        /// The table's name.
        table: &'static str,
        /// The column's name.
        column: String,
        /// The type that it should have.
        expected: &'static str,
    },
}
