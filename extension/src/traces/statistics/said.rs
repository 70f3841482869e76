//! What a trace says of itself: rank, devices, names of processes.

use std::collections::BTreeMap;

use serde::Deserialize;
use warpgauge_formats::trace::{Id, Label, Labelled};

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
    /// Names of processes.
    pub processes: BTreeMap<Id<'static>, String>,
    /// Members of the document that are not what they should be.
    pub not_understood: Vec<&'static str>,
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
        let understood = match key {
            "distributedInfo" => serde_json::from_str(json).map(|info: DistributedInfo| {
                (self.rank, self.world_size) = (info.rank, info.world_size);
            }),
            "deviceProperties" => serde_json::from_str(json).map(|all: Vec<DeviceProperties>| {
                self.devices = all.into_iter().take(MOST).map(|one| (one.id, one.name)).collect();
            }),
            _ => return,
        };
        if understood.is_err() {
            let key = if key == "distributedInfo" { "distributedInfo" } else { "deviceProperties" };
            self.not_understood.push(key);
        }
    }

    pub(super) fn label(&mut self, label: &Label<'_>) {
        if let Labelled::ProcessName(name) = &label.says
            && self.processes.len() < MOST
        {
            self.processes.insert(label.track.process.clone().into_owned(), name.to_string());
        }
    }
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
