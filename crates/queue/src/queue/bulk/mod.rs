//! Operations on many messages: PURGE and REDRIVE.
//!
//! `plan.rs` divides one into slices, `sources.rs` tells what the next slice goes
//! through, and `removal/` removes messages.

mod plan;
pub(super) mod removal;
pub(super) mod sources;

pub use plan::{Plan, Step};
