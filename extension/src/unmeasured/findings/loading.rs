//! Is it a CUDA process, and is the library in it?

use std::path::Path;

use crate::procfs::{MappedFile, Unread};
use crate::unmeasured::evidence::{Inside, Presence};
use crate::unmeasured::finding::{Finding, Link};
use crate::unmeasured::startup::{INJECTION, LIBRARY, Startup, other_tool};

/// How to start a program so that it can be measured.
const START_WITH: &str = "start it with CUDA_INJECTION64_PATH=/usr/lib/warpgauge/libwarpgauge_instrument.so, or wherever the library lies";

pub(super) fn findings(pid: u32, inside: &Inside) -> Vec<Finding> {
    let maps = format!("/proc/{pid}/maps");
    let libraries = match &inside.libraries {
        Ok(libraries) => libraries,
        // What is denied has been said.
        Err(Unread::Denied) => return environment(pid, inside),
        Err(reason) => {
            return vec![Finding::obstacle(
                Link::Permission,
                maps,
                reason.to_string(),
                reason.advice(),
            )];
        }
    };
    let mut found = cuda(pid, inside, libraries);
    match libraries.iter().find(|file| file.is_version_of(LIBRARY)) {
        Some(module) => found.push(loaded(module)),
        None => {
            let from_environment = environment(pid, inside);
            let is_explained = !from_environment.is_empty();
            found.extend(from_environment);
            found.push(not_loaded(maps, inside, libraries, is_explained));
        }
    }
    found
}

fn cuda(pid: u32, inside: &Inside, libraries: &[MappedFile]) -> Vec<Finding> {
    let place = format!("/proc/{pid}/maps");
    let driver = libraries.iter().find(|file| file.is_version_of("libcuda.so"));
    match (driver, &inside.device_open) {
        (Some(driver), _) => {
            vec![Finding::good(Link::Cuda, &driver.path, "the CUDA driver is loaded")]
        }
        (None, Ok(true)) => vec![Finding::note(
            Link::Cuda,
            place,
            "/dev/nvidia* is open, but no libcuda.so is mapped: it uses the GPU, not necessarily through CUDA",
            "",
        )],
        (None, _) => vec![Finding::obstacle(
            Link::Cuda,
            place,
            "no libcuda.so is mapped and no /dev/nvidia* is open: it does not use CUDA, or not yet",
            "wait until it has begun its GPU work; of several processes of a job, name the one that computes",
        )],
    }
}

fn loaded(module: &MappedFile) -> Finding {
    if module.deleted {
        return Finding::note(
            Link::Library,
            &module.path,
            "the file was replaced or removed since: the process runs the old library",
            "restart the program to use the new one",
        );
    }
    Finding::good(Link::Library, &module.path, "the library is loaded")
}

/// The library is not loaded. Why, as far as the environment says.
fn environment(pid: u32, inside: &Inside) -> Vec<Finding> {
    let place = format!("/proc/{pid}/environ");
    let startup = match &inside.startup {
        Ok(startup) => startup,
        Err(Unread::Denied) => return Vec::new(),
        Err(reason) => {
            return vec![Finding::note(
                Link::Environment,
                place,
                reason.to_string(),
                reason.advice(),
            )];
        }
    };
    let mut found = Vec::new();
    found.extend(injection(&place, startup, inside.injected));
    found.extend(startup.preloads.iter().filter_map(|path| {
        let tool = other_tool(path)?;
        Some(Finding::note(
            Link::Environment,
            format!("{place}: LD_PRELOAD"),
            format!("{} is {tool}", path.display()),
            "it may take CUPTI's only slot; start the program without it to be measured",
        ))
    }));
    found
}

fn injection(place: &str, startup: &Startup, injected: Presence) -> Option<Finding> {
    let place = format!("{place}: {INJECTION}");
    let obstacle = |what: String, remedy: &str| {
        Some(Finding::obstacle(Link::Environment, place.clone(), what, remedy))
    };
    let Some(path) = &startup.injection else {
        if startup.preloads_library() {
            return None;
        }
        return obstacle("it was started without this variable".to_owned(), START_WITH);
    };
    let shown = path.display();
    if !is_ours(path) {
        let tool = other_tool(path).unwrap_or("another library");
        return obstacle(
            format!("it names {shown}, which is {tool}; the driver loads one library alone"),
            "start the program without that tool, and with our library's path",
        );
    }
    if path.is_relative() {
        return obstacle(
            format!(
                "it names {shown}, a relative path, which depends on the folder that the program was in"
            ),
            "name the library by its absolute path",
        );
    }
    match injected {
        Presence::Missing => obstacle(
            format!("it names {shown}, and there is no such file as the process sees it"),
            "install the library there; a container needs it mounted",
        ),
        Presence::There | Presence::Unknown(_) => None,
    }
}

fn is_ours(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains("warpgauge"))
}

fn not_loaded(
    maps: String,
    inside: &Inside,
    libraries: &[MappedFile],
    is_explained: bool,
) -> Finding {
    let what = "the library is not loaded";
    let other = libraries.iter().find_map(|file| Some((file, other_tool(Path::new(&file.path))?)));
    match other {
        Some((file, tool)) => Finding::obstacle(
            Link::Library,
            maps,
            format!("{what}; {} is, which is {tool}", file.path),
            "start the program without that tool to be measured",
        ),
        None if is_explained => Finding::obstacle(Link::Library, maps, what, START_WITH),
        None if inside.startup.is_err() => Finding::obstacle(
            Link::Library,
            maps,
            format!("{what}, and how the process was started cannot be read"),
            START_WITH,
        ),
        None => Finding::obstacle(
            Link::Library,
            maps,
            format!(
                "{what}, although the environment names it: the driver loads it inside cuInit, which was not called yet, or the loader refused it"
            ),
            "wait for the first CUDA call; else start the program with LD_DEBUG=libs, which says why a library is refused (another architecture, an older glibc, no permission)",
        ),
    }
}
