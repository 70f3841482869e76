//! What can be wrong with the rules, and where, so that the configuration's reader can point at
//! the line.

use std::fmt;

use nix::errno::Errno;

use super::ConditionKey;

/// One fault of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFault {
    /// The name of the group, as written.
    pub name: String,
    /// Where in the configuration.
    pub place: RulePlace,
    /// What is wrong there.
    pub problem: RuleProblem,
}

impl std::error::Error for RuleFault {}

/// Where a fault is. All indices count from 0 in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RulePlace {
    /// An entry of `monitored_pg_names`.
    Monitored {
        /// Index of the entry.
        index: usize,
    },
    /// The key `name` of a table.
    Name {
        /// Index of the `[[process_group]]`.
        group: usize,
    },
    /// A set of conditions as a whole.
    Conditions {
        /// Index of the `[[process_group]]`.
        group: usize,
        /// Index in its `any`; `None` is the table itself.
        alternative: Option<usize>,
    },
    /// One condition.
    Condition {
        /// Index of the `[[process_group]]`.
        group: usize,
        /// Index in its `any`; `None` is the table itself.
        alternative: Option<usize>,
        /// The condition's key.
        key: ConditionKey,
    },
}

/// What is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleProblem {
    /// A group's name or a monitored name is empty.
    #[error("an empty name; give the group a name")]
    EmptyName,
    /// Two tables have the same name.
    #[error(
        "process_group[{first}] has the same name; rename one of them, or join them with `any`"
    )]
    DuplicateName {
        /// Index of the table that had the name first.
        first: usize,
    },
    /// A set without a condition.
    #[error(
        "no condition, so nothing would match; add one such as `cmdline`, or leave the table out \
         to match processes by the group's name"
    )]
    NoConditions,
    /// A value that is empty although it has to say something.
    #[error("empty; give a value or remove the key")]
    Empty,
    /// Not a regular expression.
    #[error("not a regular expression: {message} at character {position} of `{pattern}`")]
    Regex {
        /// The pattern, as written.
        pattern: String,
        /// Where it goes wrong, in characters counted from 1.
        position: usize,
        /// What is wrong.
        message: String,
    },
    /// A regular expression that would take too much memory.
    #[error("the regular expression needs more than {limit} bytes; make its repetitions smaller")]
    RegexTooLarge {
        /// What it may need, in bytes.
        limit: usize,
    },
    /// Not a glob.
    #[error("not a glob: {message} in `{pattern}`")]
    Glob {
        /// The pattern, as written.
        pattern: String,
        /// What is wrong.
        message: String,
    },
    /// The user data base has no such user.
    #[error(
        "there is no user `{user}` on this machine; use the number if the user is known elsewhere only"
    )]
    UnknownUser {
        /// The name, as written.
        user: String,
    },
    /// The user data base gave no answer.
    #[error("user `{user}` could not be looked up ({}); use the number", errno.desc())]
    UserLookup {
        /// The name, as written.
        user: String,
        /// What the system said.
        errno: Errno,
    },
    /// Not a container id.
    #[error(
        "`{id}` is no container id; expected at least its first 12 hexadecimal digits, as \
         `docker ps` shows them"
    )]
    ContainerId {
        /// The id, as written.
        id: String,
    },
    /// Not the name of an environment variable.
    #[error("not a variable's name; it must be neither empty nor hold `=`")]
    VariableName,
}

impl RuleFault {
    /// The path of the key in the configuration, such as `process_group[1].any[0].cmdline`, as
    /// [`crate::config::Config::locate`] takes it.
    pub fn key(&self) -> String {
        let set = |group: &usize, alternative: &Option<usize>| match alternative {
            Some(alternative) => format!("process_group[{group}].any[{alternative}]"),
            None => format!("process_group[{group}]"),
        };
        match &self.place {
            RulePlace::Monitored { .. } => "monitored_pg_names".to_owned(),
            RulePlace::Name { group } => format!("process_group[{group}].name"),
            RulePlace::Conditions { group, alternative } => set(group, alternative),
            RulePlace::Condition { group, alternative, key } => {
                format!("{}.{key}", set(group, alternative))
            }
        }
    }
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key(), self.problem)
    }
}
