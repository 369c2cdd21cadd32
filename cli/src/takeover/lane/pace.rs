//! The pace of an import: how fast it goes.

use std::time::Duration;

use crate::takeover::stop::Stop;

/// How fast an import goes.
pub trait Pace {
    /// Returns how many jobs the next batch has.
    fn size(&mut self) -> usize;
    /// Notes that jobs have gone, and waits if they went too fast.
    fn went(&mut self, jobs: u64);
    /// Returns what says that it is to end.
    fn stop(&self) -> &Stop;
    /// Returns the shortest time between two deletes from a claim list.
    fn settle(&self) -> Duration;
}
