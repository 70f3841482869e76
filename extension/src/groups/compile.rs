//! From the configuration's tables to rules that can be applied, or to everything that is wrong
//! with them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use nix::unistd::{Uid, User};
use regex::bytes::{Regex, RegexBuilder};

use crate::config::process_group::{Conditions, ProcessGroup};

use super::condition::{Condition, Test};
use super::process_name::ProcessName;
use super::{ConditionKey, RuleFault, RulePlace, RuleProblem};

/// The rules of all monitored groups, compiled.
#[derive(Debug)]
pub struct Rules {
    /// In the order of `monitored_pg_names`.
    pub(super) groups: Vec<GroupRule>,
    /// Where every rule names its processes: the kernel's names that can match at all.
    pub(super) comms: Option<HashSet<Vec<u8>>>,
}

/// The rule of one group.
#[derive(Debug)]
pub(super) struct GroupRule {
    pub(super) name: String,
    /// The conditions of the table itself.
    pub(super) own: Vec<Arc<Condition>>,
    /// The conditions of each entry of `any`.
    pub(super) alternatives: Vec<Vec<Arc<Condition>>>,
    /// The ways to belong to the group: the table's own conditions together with those of one
    /// alternative, the cheapest first.
    pub(super) ways: Vec<Vec<Arc<Condition>>>,
}

impl Rules {
    /// Compiles the rules of the `monitored` names, in their order; a name without a table means
    /// the process name. Tables that are not monitored are checked as well.
    ///
    /// # Errors
    /// Every fault of every table.
    pub fn compile(groups: &[ProcessGroup], monitored: &[String]) -> Result<Self, Vec<RuleFault>> {
        let mut faults = Vec::new();
        let mut tables = HashMap::new();
        for (index, group) in groups.iter().enumerate() {
            let rule = compile_table(group, index, &mut faults);
            let place = RulePlace::Name { group: index };
            if group.name.is_empty() {
                let problem = RuleProblem::EmptyName;
                faults.push(RuleFault { name: String::new(), place, problem });
            } else if let Some(&(first, _)) = tables.get(&group.name) {
                let problem = RuleProblem::DuplicateName { first };
                faults.push(RuleFault { name: group.name.clone(), place, problem });
            } else {
                tables.insert(group.name.clone(), (index, rule));
            }
        }
        let mut rules = Vec::new();
        let mut seen = HashSet::new();
        for (index, name) in monitored.iter().enumerate() {
            if name.is_empty() {
                let place = RulePlace::Monitored { index };
                let problem = RuleProblem::EmptyName;
                faults.push(RuleFault { name: String::new(), place, problem });
            } else if seen.insert(name) {
                let table = tables.remove(name).map(|(_, rule)| rule);
                rules.push(table.unwrap_or_else(|| GroupRule::by_process_name(name)));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let comms = comms_that_can_match(&rules);
        Ok(Self { groups: rules, comms })
    }
}

impl GroupRule {
    fn new(name: &str, own: Vec<Arc<Condition>>, alternatives: Vec<Vec<Arc<Condition>>>) -> Self {
        let mut ways: Vec<Vec<_>> = match alternatives.is_empty() {
            true => vec![own.clone()],
            false => {
                alternatives.iter().map(|way| own.iter().chain(way).cloned().collect()).collect()
            }
        };
        for way in &mut ways {
            way.sort_by(|a, b| a.key.cmp(&b.key));
        }
        Self { name: name.to_owned(), own, alternatives, ways }
    }

    fn by_process_name(name: &str) -> Self {
        let test = Test::ProcessName(ProcessName::new(name));
        let key = ConditionKey::ProcessName;
        let condition = Condition { key, wanted: name.to_owned(), test };
        Self::new(name, vec![Arc::new(condition)], Vec::new())
    }
}

/// Without a process name in every way of every group, any process may match.
fn comms_that_can_match(groups: &[GroupRule]) -> Option<HashSet<Vec<u8>>> {
    let name_of = |condition: &Arc<Condition>| match &condition.test {
        Test::ProcessName(name) => Some(name.comm().to_vec()),
        _ => None,
    };
    let ways = groups.iter().flat_map(|group| &group.ways);
    ways.map(|way| way.iter().find_map(name_of)).collect()
}

fn compile_table(group: &ProcessGroup, index: usize, faults: &mut Vec<RuleFault>) -> GroupRule {
    let mut compile = |conditions: &Conditions, alternative: Option<usize>| {
        let mut compiled = Vec::new();
        for (key, wanted, test) in tests(conditions) {
            match test {
                Ok(test) => compiled.push(Arc::new(Condition { key, wanted, test })),
                Err(problem) => {
                    let place = RulePlace::Condition { group: index, alternative, key };
                    faults.push(RuleFault { name: group.name.clone(), place, problem });
                }
            }
        }
        let may_be_empty = alternative.is_none() && !group.any.is_empty();
        if *conditions == Conditions::default() && !may_be_empty {
            let place = RulePlace::Conditions { group: index, alternative };
            let problem = RuleProblem::NoConditions;
            faults.push(RuleFault { name: group.name.clone(), place, problem });
        }
        compiled
    };
    let own = compile(&group.all, None);
    let alternatives = group.any.iter().enumerate();
    let alternatives = alternatives.map(|(index, way)| compile(way, Some(index))).collect();
    GroupRule::new(&group.name, own, alternatives)
}

/// What a condition's key and value were compiled to.
type Compiled = (ConditionKey, String, Result<Test, RuleProblem>);

fn tests(conditions: &Conditions) -> Vec<Compiled> {
    let Conditions { process_name, exe, cmdline, user, systemd_unit, cgroup, container, env, gpu } =
        conditions;
    let mut tests = Vec::new();
    let mut add = |key, value: &Option<String>, compile: fn(&str) -> Result<Test, RuleProblem>| {
        if let Some(value) = value {
            let test = if value.is_empty() { Err(RuleProblem::Empty) } else { compile(value) };
            tests.push((key, value.clone(), test));
        }
    };
    let name = |name: &str| Ok(Test::ProcessName(ProcessName::new(name)));
    add(ConditionKey::ProcessName, process_name, name);
    add(ConditionKey::User, user, |user| compile_user(user).map(Test::User));
    add(ConditionKey::Exe, exe, |glob| compile_path_glob(glob).map(Test::Exe));
    add(ConditionKey::SystemdUnit, systemd_unit, |glob| {
        compile_name_glob(glob).map(Test::SystemdUnit)
    });
    add(ConditionKey::Cgroup, cgroup, |glob| compile_path_glob(glob).map(Test::Cgroup));
    add(ConditionKey::Container, container, |id| compile_container(id).map(Test::Container));
    add(ConditionKey::Cmdline, cmdline, |pattern| compile_regex(pattern).map(Test::Cmdline));
    for (variable, value) in env {
        let test = match variable.is_empty() || variable.contains('=') {
            true => Err(RuleProblem::VariableName),
            false => compile_name_glob(value)
                .map(|value| Test::Env { variable: variable.clone(), value }),
        };
        tests.push((ConditionKey::Env(variable.clone()), value.clone(), test));
    }
    if let Some(gpu) = gpu {
        tests.push((ConditionKey::Gpu, gpu.to_string(), Ok(Test::Gpu(*gpu))));
    }
    tests
}

fn compile_user(user: &str) -> Result<Uid, RuleProblem> {
    if let Ok(uid) = user.parse() {
        return Ok(Uid::from_raw(uid));
    }
    match User::from_name(user) {
        Ok(Some(found)) => Ok(found.uid),
        Ok(None) => Err(RuleProblem::UnknownUser { user: user.to_owned() }),
        Err(errno) => Err(RuleProblem::UserLookup { user: user.to_owned(), errno }),
    }
}

/// Over a path: `*` and `?` stay within one part of it, `**` does not.
fn compile_path_glob(pattern: &str) -> Result<GlobMatcher, RuleProblem> {
    compile_glob(GlobBuilder::new(pattern).literal_separator(true))
}

/// Over a name or a value, in which a `/` is as good as a letter. A backslash is one too: the
/// names of systemd's units are full of them.
fn compile_name_glob(pattern: &str) -> Result<GlobMatcher, RuleProblem> {
    compile_glob(GlobBuilder::new(pattern).literal_separator(false).backslash_escape(false))
}

fn compile_glob(builder: &GlobBuilder<'_>) -> Result<GlobMatcher, RuleProblem> {
    match builder.build() {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(RuleProblem::Glob {
            pattern: error.glob().unwrap_or_default().to_owned(),
            message: error.kind().to_string(),
        }),
    }
}

fn compile_container(id: &str) -> Result<String, RuleProblem> {
    const SHORTEST: usize = 12;
    let fits = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    if id.len() >= SHORTEST && id.bytes().all(fits) {
        Ok(id.to_owned())
    } else {
        Err(RuleProblem::ContainerId { id: id.to_owned() })
    }
}

fn compile_regex(pattern: &str) -> Result<Regex, RuleProblem> {
    /// The compiled program's size in bytes.
    const LIMIT: usize = 10 << 20;
    RegexBuilder::new(pattern).size_limit(LIMIT).build().map_err(|error| {
        // `regex` says where the fault is in a drawing only; its own parser says it in numbers.
        let parsed = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern);
        let (offset, message) = match parsed {
            Err(regex_syntax::Error::Parse(fault)) => {
                (fault.span().start.offset, fault.kind().to_string())
            }
            Err(regex_syntax::Error::Translate(fault)) => {
                (fault.span().start.offset, fault.kind().to_string())
            }
            Ok(_) => return RuleProblem::RegexTooLarge { limit: LIMIT },
            Err(_) => (0, error.to_string()),
        };
        let position = pattern.get(..offset).unwrap_or_default().chars().count() + 1;
        RuleProblem::Regex { pattern: pattern.to_owned(), position, message }
    })
}
