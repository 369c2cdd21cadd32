//! The notes that this server keeps of a queue in one of its keys.

use dq_queue::detached::Ties;
use dq_queue::{Millis, Moment};

/// Notes of this server on a queue. They are neither replicated nor saved, and go with the queue
/// when its key is renamed or moved. A copy begins without any but `cut`.
#[derive(Debug, Default)]
pub struct Notes {
    /// When the timer will next check the queue, in Unix ms. `None` if that is not known yet.
    pub wake: Option<Millis>,
    /// When payloads of the queue are to be packed next, in Unix ms, if that is noted.
    pub packed_at: Option<Millis>,
    /// Fire times before this (Unix ms) were missed while the queue was on its way here, for example
    /// in a dump.
    pub arrival: Millis,
    /// The term of the server in which the salt of generated ids was drawn. 0 means in none: the
    /// queue was loaded from elsewhere or from an older copy.
    pub salt_term: u64,
    /// The messages that the queue may be able to give, as last noted. 0 means nothing.
    pub gives: u64,
    /// The last term of the server in which the queue has changed.
    pub changed_term: u64,
    /// The ties to other keys that were cut when the queue came, and when, until that is replicated.
    pub cut: Option<(Ties, Moment)>,
}

impl Notes {
    /// The clock of the queue was set back to `to` (Unix ms).
    pub fn clock_was_cut(&mut self, to: Millis) {
        self.arrival = self.arrival.min(to);
    }
}
