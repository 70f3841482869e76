//! Harness of the end-to-end cases: real processes under the stand-in driver, each in a world of
//! its own.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use warpgauge_tests::World;
//!
//! let world = World::new()?;
//! let mut host = world.host(&["--launches", "10", "--pause-before", "init"]).start()?;
//! world.list(&[(host.pid(), "1")])?;
//! host.go_on()?;
//! let outcome = host.finish()?;
//! assert_eq!(world.published_by(outcome.pid)?.launches, outcome.launches());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod artifacts;
pub mod container;
pub mod host;
pub mod published;
pub mod wait;
pub mod world;

pub use artifacts::Artifacts;
pub use container::Container;
pub use host::{Host, Outcome, RunningHost};
pub use published::Published;
pub use wait::eventually;
pub use world::World;
