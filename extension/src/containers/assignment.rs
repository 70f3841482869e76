//! Which container folder a process belongs to: the one that carries the most telling of the names
//! that the control group gives it.
//!
//! | order | folder's name | example |
//! |---|---|---|
//! | 1 | the container's id | `3f5a…`, 64 digits; ECS: 32 digits, `-`, a number |
//! | 2 | its customary short form, 12 digits | `3f5a0c1b2d3e` |
//! | 3 | the Kubernetes pod's uid | `0a1b2c3d-…` |
//! | 4 | the same as slices write it | `0a1b2c3d_…` |
//! | 5 | the systemd unit | `trainer.service`, `libpod-3f5a….scope` |

use super::Containers;

/// The digits of a container's id that tools show.
const SHORT_ID: usize = 12;

/// What the control group says of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place<'p> {
    /// The innermost container's id.
    pub container_id: Option<&'p str>,
    /// The uid of the innermost pod, dashes restored.
    pub pod_uid: Option<&'p str>,
    /// The innermost systemd unit that is no slice.
    pub systemd_unit: Option<&'p str>,
}

impl Place<'_> {
    /// Whether nothing is known; so it is of a process that is ending, too, since that has left its
    /// control group already (cgroups(7), version 1).
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// The names that a folder for it may have, the most telling first.
    fn names(&self) -> impl Iterator<Item = String> {
        let id = self.container_id;
        let short = id.and_then(|id| id.get(..SHORT_ID)).filter(|short| Some(*short) != id);
        let uid = self.pod_uid;
        let in_slices = uid.map(|uid| uid.replace('-', "_"));
        let names = [id, short, uid, in_slices.as_deref(), self.systemd_unit];
        names.map(|name| name.map(str::to_owned)).into_iter().flatten()
    }
}

impl Containers {
    /// The folder that serves a process; `None` means the top one.
    #[must_use]
    pub fn folder_of(&self, place: &Place<'_>) -> Option<&str> {
        if self.names.is_empty() {
            return None;
        }
        place.names().find_map(|name| self.names.get(&name)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f5a0c1b2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f90";
    const UID: &str = "0a1b2c3d-1111-2222-3333-444455556666";

    fn folder_among(folders: &[&str], place: Place<'_>) -> Option<String> {
        let parent = tempfile::tempdir().unwrap();
        for folder in folders {
            std::fs::create_dir(parent.path().join(folder)).unwrap();
        }
        Containers::look(parent.path()).folder_of(&place).map(str::to_owned)
    }

    #[test]
    fn the_most_telling_name_wins() {
        let place = Place {
            container_id: Some(ID),
            pod_uid: Some(UID),
            systemd_unit: Some("trainer.service"),
        };
        let slice_uid = UID.replace('-', "_");
        let mut folders = vec![ID, &ID[..12], UID, &slice_uid, "trainer.service", "other"];
        while folders.len() > 1 {
            assert_eq!(folder_among(&folders, place).as_deref(), Some(folders[0]));
            folders.remove(0);
        }
        assert_eq!(folder_among(&folders, place), None);
    }

    #[test]
    fn no_other_part_of_an_id_names_a_container() {
        let place = Place { container_id: Some(ID), ..Place::default() };
        for folder in [&ID[..11], &ID[..13], &ID[1..13], &ID[..63]] {
            assert_eq!(folder_among(&[folder], place), None, "{folder}");
        }
        assert_eq!(folder_among(&[ID], Place::default()), None);
    }
}
