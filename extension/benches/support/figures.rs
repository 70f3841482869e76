//! What a benchmark prints: one line for each figure, beside its floor and its budget; with
//! `--json` one JSON document instead.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::rounds::Asked;

/// Several values of one thing, one from each round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn rounds(&self) -> usize {
        self.0.len()
    }

    /// Half of the rounds gave less.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        }
    }

    fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// What a figure is held to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Budget {
    /// Nothing: it is shown to explain the others.
    None,
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// No more than the floor takes.
    TheFloor,
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) measured: Samples,
    /// The least that this could take, measured in the same run.
    pub(crate) floor: Option<Samples>,
    pub(crate) budget: Budget,
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, unit: &'static str, measured: Samples) -> Self {
        Self { what: what.into(), unit, measured, floor: None, budget: Budget::None }
    }

    pub(crate) fn over(self, floor: &Samples) -> Self {
        Self { floor: Some(floor.clone()), ..self }
    }

    pub(crate) fn within(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    fn limit(&self) -> Option<f64> {
        match self.budget {
            Budget::None => None,
            Budget::AtMost(limit) | Budget::AtLeast(limit) => Some(limit),
            Budget::TheFloor => self.floor.as_ref().map(Samples::median),
        }
    }

    /// The round that was disturbed least.
    fn best(&self) -> f64 {
        if self.unit.ends_with("/s") { self.measured.most() } else { self.measured.least() }
    }

    /// The median of what each round's measurement is to the same round's floor: whatever else
    /// the machine does disturbs both.
    fn ratio(&self) -> Option<f64> {
        let pairs = self.measured.0.iter().zip(&self.floor.as_ref()?.0);
        Some(pairs.map(|(measured, floor)| measured / floor).collect::<Samples>().median())
    }

    /// Whether the budget is met, where there is one.
    fn is_met(&self) -> Option<bool> {
        let measured = self.measured.median();
        match self.budget {
            Budget::None => None,
            Budget::AtMost(limit) => Some(measured <= limit),
            Budget::AtLeast(limit) => Some(measured >= limit),
            Budget::TheFloor => self.ratio().map(|ratio| ratio <= 1.0),
        }
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what,
            "unit": self.unit,
            "median": self.measured.median(),
            "best": self.best(),
            "rounds": self.measured.rounds(),
            "floor": self.floor.as_ref().map(Samples::median),
            "ratio": self.ratio(),
            "budget": self.limit(),
            "met": self.is_met(),
        })
    }
}

/// Prints the figures of one benchmark, and where they were measured. Those of a shortened run are
/// held to nothing.
pub(crate) fn print(title: &str, place: &Path, mut figures: Vec<Figure>, asked: Asked) {
    let machine = Machine::here(place);
    if !asked.in_full {
        figures.iter_mut().for_each(|figure| figure.budget = Budget::None);
    }
    if asked.json {
        let document = json!({
            "benchmark": title,
            "in_full": asked.in_full,
            "machine": machine.json(),
            "figures": figures.iter().map(Figure::json).collect::<Vec<_>>(),
        });
        println!("{document}");
        return;
    }
    println!("{title}: {}", machine.words());
    if !asked.in_full {
        println!("shortened, so the figures mean nothing; `cargo bench` measures in full");
    }
    println!(
        "\n{:<52} {:>6} {:>10} {:>10} {:>10} {:>7} {:>10}",
        "what", "rounds", "median", "best", "floor", "ratio", "budget"
    );
    for figure in figures {
        let number =
            |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.1}"));
        println!(
            "{:<52} {:>6} {:>10} {:>10} {:>10} {:>7} {:>10} {}",
            format!("{} [{}]", figure.what, figure.unit),
            figure.measured.rounds(),
            number(Some(figure.measured.median())),
            number(Some(figure.best())),
            number(figure.floor.as_ref().map(Samples::median)),
            figure.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            number(figure.limit()),
            figure.is_met().map_or("", |is_met| if is_met { "met" } else { "MISSED" }),
        );
    }
    println!();
}

/// Where the figures were measured.
struct Machine {
    cores: usize,
    kernel: String,
    file_system: String,
    /// Mean number of runnable tasks over the last minute, from `/proc/loadavg`: what else was
    /// going on, and the benchmark itself.
    load: String,
}

impl Machine {
    fn here(place: &Path) -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
            file_system: file_system_of(place).unwrap_or_else(|| "unknown".to_owned()),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
        }
    }

    fn words(&self) -> String {
        let Self { cores, kernel, file_system, load } = self;
        format!("{cores} cores, Linux {kernel}, {file_system}, load {load}")
    }

    fn json(&self) -> Value {
        let Self { cores, kernel, file_system, load } = self;
        json!({ "cores": cores, "kernel": kernel, "file_system": file_system, "load": load })
    }
}

/// The type of the file system that holds a path: of all mount points above it the longest
/// (proc_pid_mountinfo(5): field 5 is the mount point, the first after `-` is the type).
fn file_system_of(place: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        place.starts_with(point).then(|| (point.len(), file_system.split(' ').next()))
    });
    mounts.max_by_key(|(length, _)| *length)?.1.map(str::to_owned)
}
