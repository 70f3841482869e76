//! The contract between the injected library and the extension, as `docs/communication.md` says it.
//!
//! ```text
//! runtime configuration   <pid>:<function_id>[,<function_id>...]      extension -> instrument
//! measurement file name   <pid>-<tid>-<timestamp>                     instrument -> extension
//! measurement line        <primitive_id>:<measurement>
//! ```
//!
//! Writing is exact: one spelling for each meaning. Reading is tolerant: blanks, CRLF, comments, a
//! missing last newline and the spellings of older modules are accepted; whatever is refused is
//! named by a fault and leaves the lines around it standing.
//!
//! Nothing here allocates per line, opens a file, or depends on another crate: the same code runs
//! inside a monitored process and in the pass.
#![forbid(unsafe_code)]

pub mod file_name;
pub mod function;
pub mod limits;
pub mod lines;
pub mod measurement;
pub mod number;
pub mod proportion;
pub mod runtime_config;

pub use file_name::MeasurementFileName;
pub use function::{Function, FunctionSet, PrimitiveId};
pub use lines::LineReader;
pub use measurement::{LineFault, Measurement, Value};
pub use runtime_config::{ConfigFault, Entry, plan_for};
