//! The rules for each state and for each step.

pub mod queue;
pub mod state;
pub mod step;

/// A rule that is broken: its name, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The rule. Faults of one rule are reported once.
    pub rule: &'static str,
    /// A sentence that says what is wrong.
    pub text: String,
}

impl Fault {
    /// A fault of a rule.
    pub fn new(rule: &'static str, text: impl Into<String>) -> Fault {
        let text = text.into();
        Fault { rule, text }
    }
}
