//! Every folder that measurement files lie in, the top one and the containers': claimed one after
//! the other, counted as one.

use std::time::{Duration, Instant};

use crate::aggregate::Shape;
use crate::containers::{Containers, Refusal};
use crate::instrument_health::leftovers;
use crate::listing::{Listing, Owners};
use crate::measurements::folder::{Folder, shown};
use crate::measurements::manifest::{self, ByFolder, Counted, StillThere, StillThereByFolder};
use crate::measurements::{self, Claim, FolderError, Limits, Request, quarantine};
use crate::procfs::ProcFs;
use crate::skips::Skips;

/// How long one pass reads containers' folders, after the top one.
const CONTAINERS_BUDGET: Duration = Duration::from_secs(10);

/// How much of one container's folder a pass looks at: a program leaves a file every ten seconds.
const OF_A_CONTAINER: Limits = Limits { entries: 10_000, budget: Duration::from_secs(1) };

/// The folders of one pass.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) top: &'a Folder,
    pub(super) containers: &'a Containers,
}

/// What all folders said.
#[derive(Default)]
pub(super) struct Claimed {
    /// Of all of them together, without the lists below.
    pub(super) sum: Claim,
    pub(super) counted: ByFolder<Counted>,
    pub(super) refused_names: ByFolder<Box<[u8]>>,
}

impl Claimed {
    /// Whether nothing was found that anybody would want to hear of.
    pub(super) fn is_empty(&self) -> bool {
        self.counted.is_empty() && self.sum.refused.total() == 0 && self.sum.unattributed == 0
    }

    fn take(&mut self, folder: Option<String>, mut claim: Claim) {
        let counted = std::mem::take(&mut claim.counted);
        if !counted.is_empty() {
            self.counted.insert(folder.clone(), counted);
        }
        let refused_names = std::mem::take(&mut claim.refused_names);
        if !refused_names.is_empty() {
            self.refused_names.insert(folder, refused_names);
        }
        self.sum.merge(claim);
    }
}

/// What a claim is to know.
pub(super) struct Knowledge<'a> {
    pub(super) listing: &'a Listing,
    pub(super) still_there: &'a StillThereByFolder,
    pub(super) shape: Shape,
    pub(super) now_ns: u64,
}

/// Reads everything that stands in the folders, the top one being `None` where it is missing.
/// Changes nothing.
///
/// # Errors
/// When the top folder cannot be listed. A container's that cannot be is counted.
pub(super) fn claim(
    top: Option<&Folder>,
    containers: &Containers,
    knowledge: &Knowledge<'_>,
) -> Result<Claimed, FolderError> {
    let Knowledge { listing, still_there, shape, now_ns } = *knowledge;
    let by_folder = Owners::by_folder(listing);
    let (nobody, nothing) = (Owners::default(), StillThere::default());
    let claim_one = |folder: &Folder, place: &Option<String>, limits| {
        let request = Request {
            owners: by_folder.get(&place.as_deref()).unwrap_or(&nobody),
            still_there: still_there.get(place).unwrap_or(&nothing),
            shape,
            now_ns,
            limits,
        };
        measurements::claim(folder, &request)
    };
    let mut claimed = Claimed::default();
    if let Some(top) = top {
        claimed.take(None, claim_one(top, &None, Limits::OF_THE_TOP_FOLDER)?);
    }
    claimed.sum.refused.merge(containers.refused.clone());
    let deadline = Instant::now() + CONTAINERS_BUDGET;
    for name in in_turn(containers, now_ns) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            claimed.sum.left.note("containers_budget_spent", || name.to_owned());
            continue;
        }
        // What cannot be opened was counted when it was to be made.
        let Ok(Some(folder)) = containers.open_measurements(name) else { continue };
        let limits = Limits { budget: OF_A_CONTAINER.budget.min(left), ..OF_A_CONTAINER };
        let place = Some(name.to_owned());
        match claim_one(&folder, &place, limits) {
            Ok(mut claim) => {
                let inside = |example: &str| format!("{}/{example}", folder.path().display());
                claim.refused = claim.refused.with_examples(inside);
                claim.left = claim.left.with_examples(inside);
                claimed.take(place, claim);
            }
            Err(fault) => {
                claimed.sum.refused.note(Refusal::Unusable.reason(), || fault.to_string());
            }
        }
    }
    Ok(claimed)
}

/// The containers, each pass beginning with another one, so that none that takes all the time is
/// always before the same others.
fn in_turn(containers: &Containers, now_ns: u64) -> impl Iterator<Item = &str> {
    let names = containers.names();
    let seconds = usize::try_from(now_ns / 1_000_000_000).unwrap_or(0);
    let first = seconds.checked_rem(names.len()).unwrap_or(0);
    names.iter().skip(first).chain(names.iter().take(first)).map(String::as_str)
}

impl Places<'_> {
    /// Removes the health files that killed processes left, and says how many there were.
    pub(super) fn remove_health_files(self, listing: &Listing, proc: &ProcFs, now_ns: u64) -> u64 {
        let mut removed = leftovers::remove(self.top, None, listing, proc, now_ns);
        for name in leftovers::containers(listing) {
            // One that cannot be opened has been counted by now.
            if let Ok(Some(folder)) = self.containers.open_measurements(name) {
                removed += leftovers::remove(&folder, Some(name), listing, proc, now_ns);
            }
        }
        removed
    }

    /// Removes what was counted; returns what still stands. With `verify` a content that has changed
    /// since is left alone, in a container's folder always: its names are the container's choice.
    pub(super) fn remove(&self, counted: &ByFolder<Counted>, verify: bool) -> ByFolder<Counted> {
        let workers = measurements::workers();
        let mut left = ByFolder::new();
        for (folder, files) in counted {
            let standing = match folder {
                None => manifest::remove(self.top, files, workers, verify),
                Some(name) => match self.containers.open_measurements(name) {
                    Ok(Some(folder)) => manifest::remove(&folder, files, 1, true),
                    // They went with their folder.
                    Ok(None) => Vec::new(),
                    Err(fault) if fault.is_no_folder() => Vec::new(),
                    Err(_) => files.clone(),
                },
            };
            if !standing.is_empty() {
                left.insert(folder.clone(), standing);
            }
        }
        left
    }

    /// Says once that files cannot be removed.
    pub(super) fn warn_of(&self, left: &ByFolder<Counted>) {
        let Some((folder, files)) = left.iter().next() else { return };
        let path = match folder {
            None => self.top.path().to_owned(),
            Some(name) => self.containers.path().join(name),
        };
        tracing::warn!(
            "{}: {} counted files cannot be removed, {} is one; they are not counted again, but the folder grows: run warpgauge as a user that may remove them",
            path.display(),
            left.values().map(Vec::len).sum::<usize>(),
            files.first().map(|file| shown(&file.name)).unwrap_or_default(),
        );
    }

    /// Moves what was refused into each folder's quarantine; returns what went wrong, for the log.
    pub(super) fn put_away(&self, refused: &ByFolder<Box<[u8]>>) -> Skips {
        let mut faults = Skips::default();
        for (folder, names) in refused {
            let of_container;
            let folder = match folder {
                None => self.top,
                Some(name) => match self.containers.open_measurements(name) {
                    Ok(Some(folder)) => {
                        of_container = folder;
                        &of_container
                    }
                    // Gone, or met again by the next pass.
                    Ok(None) | Err(_) => continue,
                },
            };
            let path = folder.path().display();
            match quarantine::put_away(folder, names.iter().map(AsRef::as_ref)) {
                Ok(stay) => faults
                    .note_many("refused entries cannot be moved away", stay, || path.to_string()),
                Err(fault) => {
                    faults.note("quarantine unusable", || {
                        format!("{path}/{}: {fault}", quarantine::NAME)
                    });
                }
            }
        }
        faults
    }
}
