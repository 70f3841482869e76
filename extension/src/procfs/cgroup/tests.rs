//! Paths as the runtimes write them, one line of the table each.

use proptest::prelude::*;

use super::*;

const ID: &str = "3f5ab9d1c0e84b77a1f6d2093e5c8b4a7d6e1f00aa55cc993388ee2211bb4466";
const OTHER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const POD: &str = "8f3d2c1b-4a59-4e6d-9b7c-0123456789ab";
const POD_IN_SLICE: &str = "8f3d2c1b_4a59_4e6d_9b7c_0123456789ab";

/// Fills in the names above, parses, and gives container, unit and pod.
fn parse(text: &str) -> (Option<String>, Option<String>, Option<String>) {
    let text = text
        .replace("POD_IN_SLICE", POD_IN_SLICE)
        .replace("POD", POD)
        .replace("OTHER", OTHER)
        .replace("ID", ID);
    let found = Membership::parse(&text);
    (found.container_id, found.systemd_unit, found.pod_uid)
}

#[test]
fn every_runtime_s_containers_are_known() {
    let kubepods =
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podPOD_IN_SLICE.slice";
    let user = "/user.slice/user-1000.slice/user@1000.service/user.slice";
    // (what, path under version 2, container, unit, pod)
    let table = [
        ("docker, cgroupfs", "/docker/ID".to_owned(), "ID", "", ""),
        ("docker, systemd", "/system.slice/docker-ID.scope".into(), "ID", "docker-ID.scope", ""),
        ("docker, rootless", format!("{user}/docker-ID.scope"), "ID", "docker-ID.scope", ""),
        ("docker in docker", "/docker/OTHER/docker/ID".into(), "ID", "", ""),
        ("docker with a parent", "/batch/jobs/ID".into(), "ID", "", ""),
        ("containerd, nerdctl", "/default/ID".into(), "ID", "", ""),
        ("containerd, nerdctl, systemd", "/system.slice/nerdctl-ID.scope".into(), "ID", "nerdctl-ID.scope", ""),
        ("kubernetes, cgroupfs, burstable", "/kubepods/burstable/podPOD/ID".into(), "ID", "", "POD"),
        ("kubernetes, cgroupfs, guaranteed", "/kubepods/podPOD/ID".into(), "ID", "", "POD"),
        ("kubernetes, containerd", format!("{kubepods}/cri-containerd-ID.scope"), "ID", "cri-containerd-ID.scope", "POD"),
        ("kubernetes, cri-o", format!("{kubepods}/crio-ID.scope"), "ID", "crio-ID.scope", "POD"),
        ("kubernetes, cri-o, a cgroup of its own inside", format!("{kubepods}/crio-ID.scope/container"), "ID", "crio-ID.scope", "POD"),
        ("kubernetes, cri-o, monitor", format!("{kubepods}/crio-conmon-ID.scope"), "", "crio-conmon-ID.scope", "POD"),
        ("kubernetes, docker", format!("{kubepods}/docker-ID.scope"), "ID", "docker-ID.scope", "POD"),
        (
            "kubernetes, containerd's driver at odds with the kubelet's",
            "/system.slice/containerd.service/kubepods-besteffort-podPOD_IN_SLICE.slice:cri-containerd:ID".into(),
            "ID", "containerd.service", "POD",
        ),
        (
            "kubernetes in docker",
            "/system.slice/docker-OTHER.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podPOD_IN_SLICE.slice/cri-containerd-ID.scope".into(),
            "ID", "cri-containerd-ID.scope", "POD",
        ),
        ("a static pod of the kubelet", "/kubepods/burstable/pod0123456789abcdef0123456789abcdef/ID".into(), "ID", "", "0123456789abcdef0123456789abcdef"),
        ("seen from inside of another container", "/../../podPOD/ID".into(), "ID", "", "POD"),
        ("podman", "/machine.slice/libpod-ID.scope".into(), "ID", "libpod-ID.scope", ""),
        ("podman, new layout", "/machine.slice/libpod-ID.scope/container".into(), "ID", "libpod-ID.scope", ""),
        ("podman, rootless", format!("{user}/libpod-ID.scope/container"), "ID", "libpod-ID.scope", ""),
        ("podman, cgroupfs", "/libpod_parent/libpod-ID".into(), "ID", "", ""),
        ("podman, in a pod", "/machine.slice/machine-libpod_pod_OTHER.slice/libpod-ID.scope".into(), "ID", "libpod-ID.scope", ""),
        ("podman, monitor", "/machine.slice/libpod-conmon-ID.scope".into(), "", "libpod-conmon-ID.scope", ""),
        ("podman, in a service", "/system.slice/trainer.service/libpod-payload-ID".into(), "ID", "trainer.service", ""),
        ("podman, next to its container", "/system.slice/trainer.service/runtime".into(), "", "trainer.service", ""),
        ("ecs on ec2", "/ecs/0123456789abcdef0123456789abcdef/ID".into(), "ID", "", ""),
        (
            "ecs on fargate",
            "/ecs/0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdef-2677471447".into(),
            "0123456789abcdef0123456789abcdef-2677471447", "", "",
        ),
        ("systemd inside of a container", "/system.slice/docker-ID.scope/system.slice/trainer.service".into(), "ID", "trainer.service", ""),
    ];
    for (what, path, container, unit, pod) in table {
        let filled = |text: &str| {
            let text = text.replace("POD", POD).replace("ID", ID);
            (!text.is_empty()).then_some(text)
        };
        let wanted = (filled(container), filled(unit), filled(pod));
        assert_eq!(parse(&format!("0::{path}\n")), wanted, "{what}, version 2");
        let version_1 =
            format!("12:cpu,cpuacct:{path}\n5:memory:{path}\n1:name=systemd:{path}\n0::/\n");
        assert_eq!(parse(&version_1), wanted, "{what}, version 1");
    }
}

#[test]
fn the_innermost_unit_is_named_as_systemctl_names_it() {
    let table = [
        ("/init.scope", "init.scope"),
        ("/system.slice/ssh.service", "ssh.service"),
        ("/system.slice/system-trainer.slice/trainer@7.service", "trainer@7.service"),
        (
            r"/system.slice/system-trainer.slice/trainer@run\x2d7-fast.service",
            r"trainer@run\x2d7-fast.service",
        ),
        ("/system.slice/trainer.service/worker/3", "trainer.service"),
        ("/user.slice/user-1000.slice/session-4.scope", "session-4.scope"),
        ("/user.slice/user-1000.slice/user@1000.service/init.scope", "init.scope"),
        (
            r"/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.jupyter\x2dlab@1.service",
            r"app-org.jupyter\x2dlab@1.service",
        ),
        ("/system.slice/_cpu.trainer.service", "cpu.trainer.service"),
        ("/machine.slice/machine-gpu.scope/payload", "machine-gpu.scope"),
    ];
    for (path, unit) in table {
        assert_eq!(parse(&format!("0::{path}\n")).1.as_deref(), Some(unit), "{path}");
    }
}

#[test]
fn what_is_no_unit_and_no_container_is_neither() {
    for path in [
        "/",
        "/user.slice",
        "/slurm/uid_1000/job_77/step_0",
        "/lxc.payload.trainer",
        "/docker/short",
        "/docker/3F5AB9D1C0E84B77A1F6D2093E5C8B4A7D6E1F00AA55CC993388EE2211BB4466",
        "/with space.service",
        "/.service",
        "/@.service",
        "/podcast/8f3d2c1b-4a59-4e6d-9b7c",
    ] {
        assert_eq!(parse(&format!("0::{path}\n")), (None, None, None), "{path}");
    }
}

#[test]
fn hierarchies_of_version_1_complete_each_other() {
    let text = "6:memory:/docker/ID\n3:cpu:/\n1:name=systemd:/system.slice/docker.service\n";
    assert_eq!(parse(text), (Some(ID.to_owned()), Some("docker.service".to_owned()), None));
}

#[test]
fn all_units_of_a_path_can_be_asked_for() {
    let path = "/user.slice/user-1000.slice/user@1000.service/app.slice/notebook.scope/kernel";
    let all = ["user.slice", "user-1000.slice", "user@1000.service", "app.slice", "notebook.scope"];
    assert_eq!(units(path).collect::<Vec<_>>(), all);
}

#[test]
fn paths_are_given_once_and_may_hold_colons() {
    let text =
        "4:memory:/a:b/c\n3:cpu,cpuacct:/a:b/c\nnonsense\n2:freezer:relative\nx:y:/z\n0::/\n";
    assert_eq!(paths(text).collect::<Vec<_>>(), ["/a:b/c", "/"]);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = Membership::parse(&text);
        for path in paths(&text) {
            let _ = units(path).count();
        }
    }

    #[test]
    fn no_path_makes_it_panic(path in "(/[a-f0-9pods_:@\\\\.-]{0,70}(\\.slice|\\.scope|\\.service)?){1,5}") {
        let found = Membership::parse(&format!("0::{path}\n"));
        if let Some(unit) = found.systemd_unit {
            prop_assert!(path.contains(&unit));
        }
        if let Some(id) = found.container_id {
            prop_assert!(path.contains(&id));
        }
    }
}
