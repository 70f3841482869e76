//! Process groups: from the rules of the configuration to the processes that a pass monitors.
//!
//! A monitored name stands for the `[[process_group]]` table of that name; without a table it is
//! a process name. Rules are compiled once, with all their faults reported together, and then
//! applied to every process that `/proc` shows.
//!
//! - A process belongs to one group at most: the first in the order of `monitored_pg_names` whose
//!   conditions hold, so that nothing is counted twice.
//! - Conditions are asked in the order of what their answer costs ([`ConditionKey`]). Where every
//!   group names its processes, all others are dismissed after one small read.
//! - Warpgauge itself, kernel threads and processes that have ended are never matched.
//! - A condition whose file cannot be read neither holds nor fails. A process that meets all
//!   others is left out and counted in [`Resolution::skipped`].

mod compile;
mod condition;
mod explain;
mod facts;
mod process;
mod process_name;
mod resolve;
mod rule_fault;
mod unreadable;

pub use compile::Rules;
pub use condition::ConditionKey;
pub use explain::{
    ConditionExplanation, Explanation, Found, GroupExplanation, GroupOutcome, Subject,
};
pub use process::{Details, Process};
pub use resolve::{Group, Resolution};
pub use rule_fault::{RuleFault, RulePlace, RuleProblem};
pub use unreadable::{Skipped, Unreadable};
