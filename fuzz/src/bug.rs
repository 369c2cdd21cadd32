//! Seeded bugs: each makes the code around the queue do one step wrong, which a target must find in
//! the committed inputs (`scripts/fuzz.sh --stable`). No bug is in the queue itself.

use std::sync::OnceLock;

/// A seeded bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The log does not say that the lead of a queue's clock was cut.
    LostCut,
    /// The log does not say that leases were spared after a standstill.
    LostSpare,
    /// Entries with more steps than a slice can take are taken.
    AnySteps,
}

/// The bug that the environment names (DQ_FUZZ_BUG).
///
/// # Panics
/// There is no bug of that name.
pub fn seeded() -> Option<Bug> {
    static SEEDED: OnceLock<Option<Bug>> = OnceLock::new();
    *SEEDED.get_or_init(|| {
        let name = std::env::var("DQ_FUZZ_BUG").ok()?;
        Some(match name.as_str() {
            "lost-cut" => Bug::LostCut,
            "lost-spare" => Bug::LostSpare,
            "any-steps" => Bug::AnySteps,
            _ => panic!("DQ_FUZZ_BUG names no seeded bug: {name}"),
        })
    })
}
