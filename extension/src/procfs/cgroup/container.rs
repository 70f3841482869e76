//! Containers and Kubernetes pods in one part of a control group path.

/// The container that `part` is the control group of.
pub(super) fn id(part: &str) -> Option<&str> {
    // A slice groups containers: podman's `machine-libpod_pod_ID.slice` is a pod.
    if part.ends_with(".slice") || is_monitor(part) {
        return None;
    }
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let last = name.rsplit(['-', ':']).next().unwrap_or(name);
    if is_hex(last, 64) {
        return Some(last);
    }
    is_ecs_id(name).then_some(name)
}

/// Whether `part` holds the process that watches over a container, which is outside of it.
pub(super) fn is_monitor(part: &str) -> bool {
    part.contains("conmon-")
}

/// The pod that `part` is the control group of: `podUID`, or a slice whose name ends so.
pub(super) fn pod_uid(part: &str) -> Option<String> {
    // containerd with the wrong driver writes `kubepods-podUID.slice:cri-containerd:ID`.
    let name = part.split(':').next().unwrap_or(part);
    let uid = match name.strip_suffix(".slice") {
        Some(slice) => slice.rsplit('-').next()?.strip_prefix("pod")?,
        None => name.strip_prefix("pod")?,
    };
    // A slice's dashes mean nesting, so its name holds `_` for those of the uid.
    let uid = uid.replace('_', "-");
    (is_uuid(&uid) || is_hex(&uid, 32)).then_some(uid)
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_ecs_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(task, number)| {
        is_hex(task, 32) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn is_uuid(text: &str) -> bool {
    let mut groups = text.split('-');
    [8, 4, 4, 4, 12]
        .into_iter()
        .all(|digits| groups.next().is_some_and(|group| is_hex(group, digits)))
        && groups.next().is_none()
}
