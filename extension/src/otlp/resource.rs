//! Who a series belongs to: OTLP resources in OpenTelemetry's attribute names (semantic
//! conventions 1.42, "Resource").

use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use uuid::Uuid;

use crate::event_metrics::EventSource;
use crate::listing::ListedProcess;

/// Marks the resource of a group's roll-up: its numbers are those of its processes again, so a
/// query sums either the ones with this attribute or the ones without.
pub const ROLL_UP: &str = "warpgauge.roll_up";

/// The group that a process was found in.
pub const GROUP: &str = "warpgauge.group";

/// Marks a resource of which event logs or devices tell, not the library.
pub const SOURCE: &str = "warpgauge.source";

/// What a program that writes an event log calls itself.
pub const APP: &str = "warpgauge.app";

/// The namespace that the conventions prescribe for derived `service.instance.id`s.
const INSTANCE_NAMESPACE: Uuid = Uuid::from_u128(0x4d63_009a_8d0f_11ee_aad7_4c79_6ed8_e320);

/// The machine that the pass runs on, and what its environment adds to every resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// `host.name`
    pub name: String,
    /// Tells boots of one machine apart; empty where it cannot be read.
    pub boot_id: String,
    /// `OTEL_RESOURCE_ATTRIBUTES`, decoded.
    pub attributes: Vec<(String, String)>,
}

impl Host {
    /// The resource of one process.
    #[must_use]
    pub fn process(&self, process: &ListedProcess) -> Resource {
        let own_name = process.service_name.clone().or_else(|| process.group.clone());
        let name = own_name.unwrap_or_else(|| format!("unknown_service:{}", process.executable));
        let identity =
            format!("{}/{}/{}/{}", self.name, self.boot_id, process.pid, process.start_ticks);
        let mut attributes = vec![
            text("service.name", name),
            text("service.instance.id", instance_id(&identity)),
            KeyValue {
                value: Some(AnyValue { value: Some(Value::IntValue(process.pid.into())) }),
                ..key("process.pid")
            },
            text("process.executable.name", process.executable.clone()),
            text("process.creation.time", iso_8601(process.created_ns)),
        ];
        attributes.extend(process.container_id.clone().map(|id| text("container.id", id)));
        attributes.extend(process.pod_uid.clone().map(|uid| text("k8s.pod.uid", uid)));
        attributes.extend(process.group.clone().map(|group| text(GROUP, group)));
        self.resource(attributes)
    }

    /// The resource of a group's roll-up.
    #[must_use]
    pub fn roll_up(&self, group: &str) -> Resource {
        self.resource(vec![
            text("service.name", group.to_owned()),
            text("service.instance.id", instance_id(&format!("{}/group/{group}", self.name))),
            text(GROUP, group.to_owned()),
            text(ROLL_UP, "group".to_owned()),
        ])
    }

    /// The resource of what an event log says of one process or session. It is not the process's own:
    /// a log counts pids as its own namespace does, and may be read when the process is long gone.
    #[must_use]
    pub fn event_source(&self, source: &EventSource) -> Resource {
        let EventSource { group, pid, app, session, host } = source;
        let name = group.clone().or_else(|| app.clone());
        let own_host = host.as_deref().unwrap_or(&self.name);
        let identity = format!("{own_host}/events/{group:?}/{pid:?}/{app:?}/{session:?}");
        let mut attributes = vec![
            text("service.name", name.unwrap_or_else(|| "unknown_service".to_owned())),
            text("service.instance.id", instance_id(&identity)),
            text(SOURCE, "events".to_owned()),
        ];
        attributes.extend(pid.map(|pid| KeyValue {
            value: Some(AnyValue { value: Some(Value::IntValue(pid)) }),
            ..key("process.pid")
        }));
        attributes.extend(app.clone().map(|app| text(APP, app)));
        attributes.extend(session.clone().map(|session| text("session.id", session)));
        attributes.extend(host.clone().map(|host| text("host.name", host)));
        attributes.extend(group.clone().map(|group| text(GROUP, group)));
        self.resource(attributes)
    }

    /// The resource of the machine's devices, as the management library tells of them.
    #[must_use]
    pub fn devices(&self) -> Resource {
        self.resource(vec![
            text("service.name", "warpgauge".to_owned()),
            text("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            text("service.instance.id", instance_id(&format!("{}/devices", self.name))),
            text(SOURCE, "devices".to_owned()),
        ])
    }

    /// The resource of the extension itself.
    #[must_use]
    pub fn extension(&self) -> Resource {
        self.resource(vec![
            text("service.name", "warpgauge".to_owned()),
            text("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            text("service.instance.id", instance_id(&format!("{}/warpgauge", self.name))),
        ])
    }

    /// What is known of the entity wins over what the environment says of everything.
    fn resource(&self, mut attributes: Vec<KeyValue>) -> Resource {
        for (name, value) in &self.attributes {
            if attributes.iter().all(|known| known.key != *name) {
                attributes.push(text(name, value.clone()));
            }
        }
        if attributes.iter().all(|known| known.key != "host.name") {
            attributes.push(text("host.name", self.name.clone()));
        }
        Resource { attributes, ..Resource::default() }
    }
}

/// What tells a resource from every other: its `service.instance.id`.
#[must_use]
pub fn instance_of(resource: &Resource) -> &str {
    let id = resource.attributes.iter().find(|attribute| attribute.key == "service.instance.id");
    match id.and_then(|id| id.value.as_ref()?.value.as_ref()) {
        Some(Value::StringValue(id)) => id,
        _ => "",
    }
}

/// A text attribute.
#[must_use]
pub fn text(name: &str, value: String) -> KeyValue {
    KeyValue { value: Some(AnyValue { value: Some(Value::StringValue(value)) }), ..key(name) }
}

fn key(name: &str) -> KeyValue {
    KeyValue { key: name.to_owned(), ..KeyValue::default() }
}

fn instance_id(identity: &str) -> String {
    Uuid::new_v5(&INSTANCE_NAMESPACE, identity.as_bytes()).to_string()
}

fn iso_8601(unix_ns: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_ns);
    humantime::format_rfc3339_millis(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(attributes: &[(&str, &str)]) -> Host {
        let attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Host { name: "node7".into(), boot_id: "b".into(), attributes: attributes.collect() }
    }

    fn process(start_ticks: u64) -> ListedProcess {
        ListedProcess {
            pid: 42,
            own_pid: 1,
            start_ticks,
            created_ns: 1_700_000_000_250_000_000,
            uids: vec![],
            group: Some("trainer".into()),
            executable: "python3".into(),
            service_name: None,
            container_id: None,
            pod_uid: None,
            folder: None,
            gone_since_ns: None,
        }
    }

    fn value(resource: &Resource, name: &str) -> Option<String> {
        let attribute = resource.attributes.iter().find(|attribute| attribute.key == name)?;
        match attribute.value.as_ref()?.value.as_ref()? {
            Value::StringValue(text) => Some(text.clone()),
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn a_reused_pid_is_another_instance() {
        let first = host(&[]).process(&process(1));
        assert_eq!(instance_of(&first), instance_of(&host(&[]).process(&process(1))));
        assert_ne!(instance_of(&first), instance_of(&host(&[]).process(&process(2))));
        assert_eq!(value(&first, "process.creation.time").unwrap(), "2023-11-14T22:13:20.250Z");
    }

    #[test]
    fn what_a_process_says_of_itself_wins_over_its_group() {
        let process = ListedProcess { service_name: Some("own".into()), ..process(1) };
        let resource =
            host(&[("service.name", "env"), ("host.name", "n"), ("k", "v")]).process(&process);
        assert_eq!(value(&resource, "service.name").unwrap(), "own");
        assert_eq!(value(&resource, "host.name").unwrap(), "n");
        assert_eq!(value(&resource, "k").unwrap(), "v");
        assert_eq!(value(&resource, GROUP).unwrap(), "trainer");
    }

    #[test]
    fn a_process_in_a_pod_names_container_and_pod() {
        let (container_id, pod_uid) = (Some("3f5a".to_owned()), Some("11d2".to_owned()));
        let resource = host(&[]).process(&ListedProcess { container_id, pod_uid, ..process(1) });
        assert_eq!(value(&resource, "container.id").unwrap(), "3f5a");
        assert_eq!(value(&resource, "k8s.pod.uid").unwrap(), "11d2");
        assert_eq!(value(&host(&[]).process(&process(1)), "k8s.pod.uid"), None);
    }

    #[test]
    fn a_roll_up_says_that_it_is_one_and_has_no_pid() {
        let resource = host(&[]).roll_up("trainer");
        assert_eq!(value(&resource, ROLL_UP).unwrap(), "group");
        assert_eq!(value(&resource, "process.pid"), None);
    }
}
