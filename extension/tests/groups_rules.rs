//! What is wrong with rules: everything at once, each with its place.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use warpgauge::config::Config;
use warpgauge::config::process_group::{Conditions, ProcessGroup};
use warpgauge::groups::{ConditionKey, RuleFault, RulePlace, RuleProblem, Rules};

fn none() -> Conditions {
    Conditions::default()
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn table(name: &str, all: Conditions) -> ProcessGroup {
    ProcessGroup { name: name.to_owned(), all, any: Vec::new() }
}

fn faults(tables: &[ProcessGroup]) -> Vec<RuleFault> {
    Rules::compile(tables, &[]).unwrap_err()
}

/// The only fault of one condition.
fn problem(conditions: Conditions) -> RuleProblem {
    let mut faults = faults(&[table("g", conditions)]);
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.remove(0).problem
}

#[test]
fn all_faults_of_all_tables_come_at_once_with_their_places() {
    let bad_exe = Conditions { exe: text("/opt/[a"), ..none() };
    let bad_regex = Conditions { cmdline: text("train("), gpu: Some(true), ..none() };
    let bad_env = Conditions { env: [("RANK".to_owned(), "{0".to_owned())].into(), ..none() };
    let tables = [
        table("sound", Conditions { process_name: text("python3"), ..none() }),
        ProcessGroup { name: "trainer".into(), all: bad_exe, any: vec![bad_env, bad_regex] },
        table("idle", none()),
        table("sound", Conditions { process_name: text("julia"), ..none() }),
    ];
    let monitored = ["sound".to_owned(), String::new()];
    let faults = Rules::compile(&tables, &monitored).unwrap_err();
    let at = |alternative, key| RulePlace::Condition { group: 1, alternative, key };
    let places: Vec<_> = faults.iter().map(|fault| (fault.name.as_str(), &fault.place)).collect();
    let wanted = [
        ("trainer", &at(None, ConditionKey::Exe)),
        ("trainer", &at(Some(0), ConditionKey::Env("RANK".into()))),
        ("trainer", &at(Some(1), ConditionKey::Cmdline)),
        ("idle", &RulePlace::Conditions { group: 2, alternative: None }),
        ("sound", &RulePlace::Name { group: 3 }),
        ("", &RulePlace::Monitored { index: 1 }),
    ];
    assert_eq!(places, wanted);
    let said: Vec<_> = faults.iter().map(RuleFault::to_string).collect();
    assert_eq!(
        said[2],
        "process_group[1].any[1].cmdline: not a regular expression: unclosed group at character 6 of \
         `train(`"
    );
    assert_eq!(
        said[4],
        "process_group[3].name: process_group[0] has the same name; rename one of them, or join them \
         with `any`"
    );
    assert_eq!(faults[1].key(), "process_group[1].any[0].env.RANK");
    assert_eq!(faults[3].key(), "process_group[2]");
    assert_eq!(said[5], "monitored_pg_names: an empty name; give the group a name");
}

#[test]
fn a_regular_expression_s_fault_has_its_position_in_characters() {
    let position = |pattern: &str| match problem(Conditions { cmdline: text(pattern), ..none() }) {
        RuleProblem::Regex { position, pattern: kept, .. } => {
            assert_eq!(kept, pattern);
            position
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(position("*"), 1);
    assert_eq!(position("läuft*["), 7);
    assert_eq!(position("a{3,1}"), 2);
    assert_eq!(position(r"train\q"), 6);
    assert_eq!(position(r"\p{NoSuchScript}"), 1);
}

#[test]
fn a_regular_expression_that_would_eat_the_memory_is_refused() {
    let pattern = Conditions { cmdline: text(r"(\w{1000}){1000}"), ..none() };
    assert!(matches!(problem(pattern), RuleProblem::RegexTooLarge { .. }));
}

#[test]
fn a_pattern_may_look_for_bytes_that_are_no_text() {
    let pattern = Conditions { cmdline: text(r"(?-u:\xff)"), ..none() };
    Rules::compile(&[table("g", pattern)], &[]).unwrap();
}

#[test]
fn an_unknown_user_is_named_and_a_number_is_not_looked_up() {
    let user = |user: &str| Conditions { user: text(user), ..none() };
    let unknown = "no-such-user-here";
    let wanted = RuleProblem::UnknownUser { user: unknown.to_owned() };
    assert_eq!(problem(user(unknown)), wanted);
    Rules::compile(&[table("g", user("4000000000"))], &[]).unwrap();
    Rules::compile(&[table("g", user("root"))], &[]).unwrap();
    // Beyond 32 bits it is no number of a user.
    assert!(matches!(problem(user("4294967296")), RuleProblem::UnknownUser { .. }));
}

#[test]
fn what_would_match_nothing_or_everything_is_a_fault() {
    assert_eq!(problem(none()), RuleProblem::NoConditions);
    for conditions in [
        Conditions { process_name: text(""), ..none() },
        Conditions { exe: text(""), ..none() },
        Conditions { cmdline: text(""), ..none() },
        Conditions { user: text(""), ..none() },
        Conditions { systemd_unit: text(""), ..none() },
        Conditions { cgroup: text(""), ..none() },
        Conditions { container: text(""), ..none() },
    ] {
        assert_eq!(problem(conditions), RuleProblem::Empty);
    }
    let empty_alternative = ProcessGroup { name: "g".into(), all: none(), any: vec![none()] };
    let place = RulePlace::Conditions { group: 0, alternative: Some(0) };
    assert_eq!(faults(&[empty_alternative])[0].place, place);
}

#[test]
fn an_empty_value_of_a_variable_is_a_value() {
    let env = |name: &str| Conditions { env: [(name.to_owned(), String::new())].into(), ..none() };
    Rules::compile(&[table("g", env("DEBUG"))], &[]).unwrap();
    assert_eq!(problem(env("")), RuleProblem::VariableName);
    assert_eq!(problem(env("A=B")), RuleProblem::VariableName);
}

#[test]
fn a_container_needs_twelve_digits_of_its_id() {
    let container = |id: &str| Conditions { container: text(id), ..none() };
    Rules::compile(&[table("g", container("3f5ab9d1c0e8"))], &[]).unwrap();
    for id in ["3f5ab9d1c0e", "trainer-container", "3F5AB9D1C0E8", "docker://3f5ab9d1c0e8"] {
        assert!(matches!(problem(container(id)), RuleProblem::ContainerId { .. }), "{id}");
    }
}

#[test]
fn a_table_without_a_name_is_a_fault() {
    let conditions = Conditions { process_name: text("x"), ..none() };
    let faults = faults(&[table("", conditions)]);
    assert_eq!(faults[0].place, RulePlace::Name { group: 0 });
    assert_eq!(faults[0].problem, RuleProblem::EmptyName);
}

#[test]
fn a_fault_s_key_leads_to_its_line_in_the_configuration() {
    let text = "\
monitored_pg_names = [\"g\"]

[[process_group]]
name = \"g\"
any = [
    { cmdline = 'train' },
    { cmdline = 'serve(' },
]
";
    let (config, read_faults) = Config::parse(text);
    assert_eq!(read_faults, []);
    let faults = Rules::compile(&config.process_groups, &config.monitored_pg_names).unwrap_err();
    let located = config.locate(&faults[0].key(), faults[0].problem.to_string());
    assert_eq!(located.line, Some(7));
}
