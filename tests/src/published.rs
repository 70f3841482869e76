//! What an instrument has published, read as the contract says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use warpgauge_wire::file_name::NameFault;
use warpgauge_wire::{Function, LineReader, MeasurementFileName, PrimitiveId, Value};

/// The measurement files of one process, added up.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Published {
    /// Their number.
    pub files: usize,
    /// The sum of the lines of id 4.
    pub launches: u64,
    /// Occupancy in percent, as written, and the launches that it stands for: in each file, a line
    /// weighs launches / lines.
    pub occupancies: BTreeMap<String, f64>,
    /// The sum of the lines of id 0; `None` where there was none.
    pub instructions: Option<u64>,
    /// Of ids 2 and 3: the mean of each file's lines, weighed by the launches of the file; `None`
    /// where there was none.
    pub coalescence: Mean,
    /// As [`Self::coalescence`].
    pub divergence: Mean,
    /// The largest number of lines of id 1 in one file.
    pub most_occupancy_lines: u64,
}

/// A mean of percentages.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    /// The mean in percent, if there was a line.
    #[must_use]
    pub fn get(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    fn add(&mut self, percents: &[f64], launches: u64) {
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53")]
        let (lines, weight) = (percents.len() as f64, launches as f64);
        if !percents.is_empty() {
            self.sum += percents.iter().sum::<f64>() / lines * weight;
            self.weight += weight;
        }
    }
}

impl Published {
    /// Reads every file of a folder that names the process. Files that are being written do not
    /// count; anything that the contract does not allow is an error.
    ///
    /// # Errors
    /// The first file or line that is wrong.
    pub fn read(folder: &Path, pid: u32) -> Result<Self> {
        let mut published = Self::default();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name();
            match MeasurementFileName::parse(name.as_encoded_bytes()) {
                Err(NameFault::Hidden) => {}
                Err(fault) => bail!("{}: {fault:?}", entry.path().display()),
                Ok(name) if name.pid != pid => {}
                Ok(_) => {
                    let bytes = fs::read(entry.path())?;
                    published.add(&bytes).with_context(|| entry.path().display().to_string())?;
                }
            }
        }
        Ok(published)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let mut lines = Vec::new();
        let mut reader = LineReader::new();
        reader.push(bytes, |number, line| lines.push((number, line)));
        reader.finish(|number, line| lines.push((number, line)));
        let mut occupancies: BTreeMap<String, u64> = BTreeMap::new();
        let mut launches = None;
        let (mut coalescence, mut divergence) = (Vec::new(), Vec::new());
        for (number, line) in lines {
            let line = line.with_context(|| format!("line {number}"))?;
            match (line.id, line.value) {
                (id, Value::Percent(percent)) if id == Function::Occupancy.id() => {
                    *occupancies.entry(percent.to_string()).or_default() += 1;
                }
                (id, Value::Percent(percent)) if id == Function::Coalescence.id() => {
                    coalescence.push(percent);
                }
                (id, Value::Percent(percent)) if id == Function::Divergence.id() => {
                    divergence.push(percent);
                }
                (id, Value::Count(count)) if id == Function::Instructions.id() => {
                    self.instructions = Some(self.instructions.unwrap_or(0) + count);
                }
                (PrimitiveId::LAUNCHES, Value::Count(count)) if launches.is_none() => {
                    launches = Some(count);
                }
                other => bail!("line {number}: unexpected {other:?}"),
            }
        }
        let launches = launches.context("no line of id 4")?;
        self.coalescence.add(&coalescence, launches);
        self.divergence.add(&divergence, launches);
        let occupancy_lines: u64 = occupancies.values().sum();
        for (occupancy, lines) in occupancies {
            #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53")]
            let weight = launches as f64 / occupancy_lines as f64 * lines as f64;
            *self.occupancies.entry(occupancy).or_default() += weight;
        }
        self.files += 1;
        self.launches += launches;
        self.most_occupancy_lines = self.most_occupancy_lines.max(occupancy_lines);
        Ok(())
    }

    /// The occupancies and the launches that they stand for, to the nearest launch.
    #[must_use]
    pub fn rounded(&self) -> BTreeMap<&str, u64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count that is not negative"
        )]
        self.occupancies
            .iter()
            .map(|(occupancy, launches)| (occupancy.as_str(), launches.round() as u64))
            .collect()
    }
}
