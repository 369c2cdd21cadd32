//! The mixture of operations of a cluster.

use super::one_of;
use dq_queue::Millis;

/// The mixture of operations of a cluster.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Number of different ids that clients choose.
    pub ids: u32,
    /// Number of different groups.
    pub groups: u32,
    /// Maximum messages of one command.
    pub batch: usize,
    /// Number of live messages above which half of the operations shorten the queue.
    pub size: u64,
    /// Upper bound of most times, in milliseconds.
    pub ms: Millis,
    /// One in this number of messages names limits; one in eight times as many operations
    /// sets one.
    pub limits: u32,
}

impl Profile {
    /// Draws a profile. Most are small, so that operations meet the same messages
    /// and groups. One in eight is large, so that work has to be done in slices.
    pub fn random(rng: &mut fastrand::Rng) -> Profile {
        let large = rng.u8(0..8) == 0;
        Profile {
            ids: rng.u32(2..30),
            groups: rng.u32(1..12),
            batch: if large { 400 } else { 5 },
            size: if large { 900 } else { rng.u64(5..80) },
            ms: *one_of(rng, &[20, 60, 60, 1000]),
            limits: *one_of(rng, &[1, 2, 4, 16]),
        }
    }
}
