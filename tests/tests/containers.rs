//! Programs in containers with folders of their own: real control groups, real pid namespaces, the
//! real extension. Takes root; where that is missing, the reason is printed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use warpgauge_tests::{Container, Published, RunningHost, World, eventually};

fn configure(world: &World) {
    let path = |name: &str| world.path(name).display().to_string();
    let text = format!(
        "monitored_pg_names = [\"trainer\"]\nfunctions = [\"occupancy\"]\n\
         [paths]\nruntime_config = {:?}\nmeasurements = {:?}\ncontainers = {:?}\nstate = {:?}\n\
         [[process_group]]\nname = \"trainer\"\nprocess_name = \"warpgauge-host\"\n\
         env = {{ WARPGAUGE_LOGFILE = {:?} }}\n\
         [export]\nprotocol = \"file\"\npath = {:?}\n",
        path("runtime.conf"),
        path("measurements"),
        path("containers"),
        path("state"),
        path("instrument.log"),
        path("metrics.otlp.jsonl"),
    );
    let mut file = fs::File::create(world.path("warpgauge.toml")).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// One pass of the real program; gives its report.
fn pass(world: &World) -> Value {
    let warpgauge = world.artifacts().warpgauge.as_ref().unwrap();
    let config = world.path("warpgauge.toml");
    let output =
        Command::new(warpgauge).args(["run", "--json", "--config"]).arg(config).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {log}", output.status);
    assert_eq!(log, "", "the pass has something to complain of");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Launches by container, `""` being none, over every exported window; roll-ups left out.
fn exported_launches(world: &World) -> BTreeMap<String, u64> {
    let mut launches = BTreeMap::new();
    let text = fs::read_to_string(world.path("metrics.otlp.jsonl")).unwrap();
    for line in text.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        for resource in request["resourceMetrics"].as_array().unwrap() {
            let attribute = |key: &str| {
                let attributes = resource["resource"]["attributes"].as_array().unwrap();
                attributes.iter().find(|one| one["key"] == key).map(|one| one["value"].clone())
            };
            if attribute("process.pid").is_none() {
                continue;
            }
            let container = attribute("container.id").map(|id| id["stringValue"].clone());
            let container = container.and_then(|id| id.as_str().map(str::to_owned));
            let sum = launches.entry(container.unwrap_or_default()).or_insert(0);
            for metric in resource["scopeMetrics"][0]["metrics"].as_array().unwrap() {
                if metric["name"] == "gpu.kernel.launches" {
                    let points = metric["sum"]["dataPoints"].as_array().unwrap();
                    let counts = points.iter().map(|point| point["asInt"].as_str().unwrap());
                    *sum += counts.map(|count| count.parse::<u64>().unwrap()).sum::<u64>();
                }
            }
        }
    }
    launches
}

/// A program that waits before its first and after its last launch.
fn start(world: &World, launches: &str, home: Option<(&Container, &Path)>) -> RunningHost {
    let pauses = ["--pause-before", "init", "--pause-before", "exit"];
    let mut host = world.host(&[&["--launches", launches], &pauses[..]].concat());
    if let Some((container, folder)) = home {
        host = host
            .in_container(container)
            .env("WARPGAUGE_RUNTIME_CONFIG_PATH", folder.join("runtime.conf"))
            .env("WARPGAUGE_MEASUREMENTS_OUTPUT_DIR", folder.join("measurements"));
    }
    let mut host = host.start().unwrap();
    host.wait_until_ready().unwrap();
    host
}

fn wait_for_launches(measurements: &Path, pid: u32, launches: u64) {
    eventually("the library publishes", || {
        Ok((Published::read(measurements, pid)?.launches == launches).then_some(()))
    })
    .unwrap();
}

#[test]
fn programs_with_one_pid_in_two_containers_are_listed_measured_and_told_apart() {
    let containers: Result<Vec<_>, _> = (0..2).map(|_| Container::create()).collect();
    let containers = match containers {
        Ok(containers) => containers,
        Err(reason) => {
            eprintln!("skipped: this machine lets this user make no containers: {reason}");
            return;
        }
    };
    let world = World::new().unwrap();
    configure(&world);
    // One folder has the whole id, the other one its short form.
    let names = [containers[0].id(), &containers[1].id()[..12]];
    let folders: Vec<PathBuf> =
        names.iter().map(|name| world.path("containers").join(name)).collect();
    for folder in &folders {
        fs::create_dir_all(folder).unwrap();
    }
    let mut inside: Vec<_> = ["30", "50"]
        .into_iter()
        .zip(containers.iter().zip(&folders))
        .map(|(launches, (container, folder))| start(&world, launches, Some((container, folder))))
        .collect();
    let mut outside = start(&world, "70", None);

    let report = pass(&world);
    assert_eq!(report["listed"], 3, "{report:#}");
    for folder in &folders {
        let listed = fs::read_to_string(folder.join("runtime.conf")).unwrap();
        assert!(listed.contains("\n1:1 #= trainer\n"), "{listed}");
    }
    let listed = fs::read_to_string(world.runtime_config()).unwrap();
    assert!(listed.contains(&format!("\n{}:1 #= trainer\n", outside.pid())), "{listed}");
    assert!(!listed.contains("\n1:1"), "{listed}");

    for host in inside.iter_mut().chain([&mut outside]) {
        host.go_on().unwrap();
        host.wait_until_ready_after_report().unwrap();
    }
    for (folder, launches) in folders.iter().zip([30, 50]) {
        wait_for_launches(&folder.join("measurements"), 1, launches);
    }
    wait_for_launches(&world.measurements(), outside.pid(), 70);
    let report = pass(&world);
    let launches = |pid: Option<u64>| {
        let rows = report["processes"].as_array().unwrap();
        let row = rows.iter().find(|row| row["pid"].as_u64() == pid);
        row.map(|row| row["launches"].as_u64().unwrap())
    };
    assert_eq!(launches(Some(outside.pid().into())), Some(70), "{report:#}");
    assert_eq!(launches(Some(1)), None, "its pid is the one outside: {report:#}");

    for mut host in inside.into_iter().chain([outside]) {
        host.go_on().unwrap();
        assert!(host.finish().unwrap().status.success());
    }
    let report = pass(&world);
    assert_eq!((&report["listed"], &report["unattributed"]), (&0.into(), &0.into()), "{report:#}");
    let expected = [(containers[0].id(), 30), (containers[1].id(), 50), ("", 70)];
    let expected = expected.map(|(id, launches)| (id.to_owned(), launches));
    assert_eq!(exported_launches(&world), BTreeMap::from(expected));
    for folder in &folders {
        let left = folder.join("measurements").read_dir().unwrap().count();
        assert_eq!(left, 0, "nothing is left in {}", folder.display());
        let listed = fs::read_to_string(folder.join("runtime.conf")).unwrap();
        assert!(!listed.contains("\n1:"), "{listed}");
    }
}
