//! What a trace says of itself: rank, devices, names of processes.

use std::collections::BTreeMap;

use serde::Deserialize;
use warpgauge_formats::trace::{Id, Label, Labelled};

use super::super::ranks::{self, Rank, Whose};

/// The member that tells a trace's place in a job.
const DISTRIBUTED: &str = "distributedInfo";

/// The member that describes the devices.
const DEVICES: &str = "deviceProperties";

/// Most devices and processes whose names are remembered.
const MOST: usize = 4_096;

/// What a trace says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Its place in a distributed job (`distributedInfo`).
    pub rank: Option<i64>,
    /// How many processes the job has (`distributedInfo`).
    pub world_size: Option<i64>,
    /// Product names of devices by ordinal (`deviceProperties`).
    pub devices: BTreeMap<i64, String>,
    /// Of a merged trace: its ranks.
    pub merged: Vec<MergedRank>,
    /// Names of processes.
    pub processes: BTreeMap<Id<'static>, String>,
    /// Members of the document that are not what they should be.
    pub not_understood: Vec<&'static str>,
}

/// One rank of a merged trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedRank {
    /// Its number; none of a trace that named none.
    pub rank: Option<i64>,
    /// The processes that are its own.
    pub processes: Vec<Id<'static>>,
    /// Product names of its devices by ordinal, where they are not those of all.
    pub devices: BTreeMap<i64, String>,
}

#[derive(Deserialize)]
struct DistributedInfo {
    rank: Option<i64>,
    world_size: Option<i64>,
}

#[derive(Deserialize)]
struct DeviceProperties {
    id: i64,
    name: String,
}

impl Said {
    pub(super) fn document(&mut self, key: &str, json: &str) {
        let not_understood = match key {
            DISTRIBUTED => serde_json::from_str::<DistributedInfo>(json).map_or(
                Some(DISTRIBUTED),
                |DistributedInfo { rank, world_size }| {
                    (self.rank, self.world_size) = (rank, world_size);
                    None
                },
            ),
            DEVICES => match devices(json) {
                Some(devices) => {
                    self.devices = devices;
                    None
                }
                None => Some(DEVICES),
            },
            ranks::MEMBER => match ranks::read(json) {
                Ok(ranks) => {
                    self.merged = ranks.into_iter().take(MOST).map(MergedRank::from).collect();
                    None
                }
                Err(_) => Some(ranks::MEMBER),
            },
            _ => None,
        };
        self.not_understood.extend(not_understood);
    }

    /// The rank that a process belongs to.
    pub(super) fn rank_of(&self, process: &Id<'_>) -> Option<i64> {
        self.merged_rank(process).map_or(self.rank, |merged| merged.rank)
    }

    /// The product name of a process's device.
    pub(super) fn device_name(&self, process: &Id<'_>, ordinal: Option<i64>) -> Option<&str> {
        let ordinal = ordinal.or(process.number())?;
        let own = self.merged_rank(process).and_then(|merged| merged.devices.get(&ordinal));
        own.or_else(|| self.devices.get(&ordinal)).map(String::as_str)
    }

    fn merged_rank(&self, process: &Id<'_>) -> Option<&MergedRank> {
        self.merged.iter().find(|merged| merged.processes.iter().any(|own| own == process))
    }

    pub(super) fn label(&mut self, label: &Label<'_>) {
        if let Labelled::ProcessName(name) = &label.says
            && self.processes.len() < MOST
        {
            self.processes.insert(label.track.process.clone().into_owned(), name.to_string());
        }
    }
}

impl From<Rank> for MergedRank {
    fn from(rank: Rank) -> Self {
        let own = rank.document.iter().find(|(key, _)| key == DEVICES);
        Self {
            rank: match rank.whose {
                Whose::Rank(number) => Some(number),
                Whose::Trace(_) => None,
            },
            processes: rank.processes,
            devices: own.and_then(|(_, json)| devices(json)).unwrap_or_default(),
        }
    }
}

fn devices(json: &str) -> Option<BTreeMap<i64, String>> {
    let all: Vec<DeviceProperties> = serde_json::from_str(json).ok()?;
    Some(all.into_iter().take(MOST).map(|one| (one.id, one.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_and_products_are_read() {
        let mut said = Said::default();
        said.document("distributedInfo", r#"{"backend":"nccl","rank":3,"world_size":8}"#);
        said.document("deviceProperties", r#"[{"id":0,"name":"H200","warpSize":32}]"#);
        said.document("traceName", "7");
        assert_eq!((said.rank, said.world_size), (Some(3), Some(8)));
        assert_eq!(said.devices, BTreeMap::from([(0, "H200".to_owned())]));
        said.document("deviceProperties", "{}");
        assert_eq!(said.not_understood, ["deviceProperties"]);
    }
}
