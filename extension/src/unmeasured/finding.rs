//! What was found out about one link of the chain.

use serde::Serialize;

/// The chain from a running process to its measurements, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// There is such a process.
    Process,
    /// It can be looked at.
    Permission,
    /// It uses CUDA.
    Cuda,
    /// It was started so that the driver loads the library.
    Environment,
    /// The library is loaded.
    Library,
    /// The library looks where the extension writes.
    Settings,
    /// The process is listed.
    Listing,
    /// What it publishes has somewhere to go.
    Folder,
    /// The library measures.
    Measuring,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// As it should be.
    Good,
    /// Worth knowing; it does not stand in the way.
    Note,
    /// It stands in the way, or may.
    Obstacle,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where in the chain.
    pub link: Link,
    /// How much it matters.
    pub weight: Weight,
    /// What was found.
    pub what: String,
    /// Where it was found: a file, a variable, a key.
    #[serde(rename = "where")]
    pub place: String,
    /// What to do about it; empty where nothing needs to be done.
    pub remedy: String,
}

impl Finding {
    /// As it should be.
    pub(super) fn good(link: Link, place: impl Into<String>, what: impl Into<String>) -> Self {
        let (what, place) = (what.into(), place.into());
        Self { link, weight: Weight::Good, what, place, remedy: String::new() }
    }

    /// Worth knowing.
    pub(super) fn note(
        link: Link,
        place: impl Into<String>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (what, place, remedy) = (what.into(), place.into(), remedy.into());
        Self { link, weight: Weight::Note, what, place, remedy }
    }

    /// It stands in the way.
    pub(super) fn obstacle(
        link: Link,
        place: impl Into<String>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { weight: Weight::Obstacle, ..Self::note(link, place, what, remedy) }
    }
}
