//! CUPTI: the library that tells of launches. Found at run time, and only for a listed process.
//!
//! ```text
//! symbols      which copy of libcupti, which version, which functions
//! types        layouts of what CUPTI hands over, checked when this is compiled
//! subscriber   taking CUPTI's slot and giving it back
//! callbacks    what happens on the host's threads
//! activity     records of what ran: activity_types, their layouts; activity_rows, what is taken of
//!              them; buffers, where they lie; foreign_text, names that may be none
//! sass         counting by code patched into kernels; sass_types, its structures; record_names
//! ```

pub mod activity;
mod activity_rows;
pub mod activity_types;
pub mod buffers;
pub mod callbacks;
mod foreign_text;
mod record_names;
pub mod sass;
pub mod sass_types;
pub mod subscriber;
pub mod symbols;
pub mod types;

pub use self::activity::Activity;
pub use self::sass::{FailedCall, Sass, SassCall, SassError};
pub use self::subscriber::Subscription;
pub use self::symbols::{Cupti, CuptiError};
