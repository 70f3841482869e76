//! From arguments, or the configuration, to rules.

use std::path::{Path, PathBuf};

use super::Follow;
use crate::cli::events::Followed;
use crate::config::events::EventFormat;
use crate::follow::{Rule, Start};
use crate::setup::Setup;

/// Rules and the formats of what they mean; `None` is told by the content.
type Patterns = Vec<(Rule, Option<EventFormat>)>;

/// What is to be followed, or what is wrong with the arguments.
pub(super) fn given(arguments: &Follow, config: &Path) -> anyhow::Result<Result<Patterns, String>> {
    let start = if arguments.from_start { Start::Beginning } else { Start::End };
    let format = arguments.format.map(|format| match format {
        Followed::Gpumon => EventFormat::Gpumon,
        Followed::GpuFlight => EventFormat::GpuFlight,
    });
    if arguments.files.is_empty() {
        let setup = Setup::load(config)?;
        if setup.config.events.is_empty() {
            let path = setup.path.display();
            return Ok(Err(format!("name files, or add [[events]] to {path}")));
        }
        let formats = setup.config.events.iter().map(|log| format.or(Some(log.format)));
        let rules = setup.event_rules.into_iter().map(|rule| rule.starting(start));
        return Ok(Ok(rules.zip(formats).collect()));
    }
    let rules = arguments.files.iter().map(|file| Ok((rule(file)?.starting(start), format)));
    Ok(rules.collect())
}

/// A file that stands there means itself, whatever letters its name has; else it is a pattern, or a
/// file that is still to come.
fn rule(argument: &Path) -> Result<Rule, String> {
    let shown = argument.display();
    let whole = match argument.canonicalize() {
        Ok(path) if path.is_dir() => {
            return Err(format!(
                "{shown} is a folder; name the files in it, such as '{shown}/*.log'"
            ));
        }
        Ok(path) => path.to_str().map(globset::escape),
        Err(_) if argument == Path::new("-") => {
            return Err("standard input has no rotation; use `events validate -`".to_owned());
        }
        Err(_) => absolute(argument),
    };
    let whole = whole.ok_or_else(|| format!("{shown} is no UTF-8"))?;
    Rule::new(&whole).map_err(|fault| fault.to_string())
}

/// A pattern from the root on: the folders before its first wildcard as they are on the disk.
fn absolute(pattern: &Path) -> Option<String> {
    let is_plain =
        |part: &Path| part.to_str().is_some_and(|part| !part.contains(['*', '?', '[', '{', '\\']));
    let parts: Vec<_> = pattern.components().map(|part| Path::new(part.as_os_str())).collect();
    let folders = parts.len().saturating_sub(1);
    let fixed = parts.iter().take(folders).take_while(|part| is_plain(part)).count();
    let folder: PathBuf = parts.iter().take(fixed).collect();
    let folder = if fixed == 0 { PathBuf::from(".") } else { folder };
    let folder = folder.canonicalize().or_else(|_| std::path::absolute(&folder)).ok()?;
    let open: PathBuf = parts.iter().skip(fixed).collect();
    let folder = folder.to_str()?.trim_end_matches('/');
    Some(format!("{}/{}", globset::escape(folder), open.to_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_means_itself_and_a_pattern_what_it_matches() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("logs")).unwrap();
        std::fs::File::create(folder.join("logs/a[1].log")).unwrap();
        let of =
            |argument: &str| rule(&folder.join(argument)).map(|rule| rule.pattern().to_owned());
        let shown = folder.display();
        assert_eq!(of("logs/a[1].log"), Ok(format!("{shown}/logs/a[[]1[]].log")));
        assert_eq!(of("logs/../logs/*.log"), Ok(format!("{shown}/logs/*.log")));
        assert_eq!(of("logs/later.log"), Ok(format!("{shown}/logs/later.log")));
        assert_eq!(of("*/x_{a,b}.log"), Ok(format!("{shown}/*/x_{{a,b}}.log")));
        assert!(of("logs").unwrap_err().contains("is a folder"));
        assert!(of("logs/[.log").unwrap_err().contains("no pattern"));
        assert!(rule(Path::new("-")).unwrap_err().contains("standard input"));
    }

    #[test]
    fn a_relative_pattern_begins_in_the_working_folder() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(
            rule(Path::new("*.log")).unwrap().pattern(),
            format!("{}/*.log", here.display())
        );
    }
}
