//! The beginning of each change of the queue: its clock, and leases that are spared. And servers
//! whose clocks are wrong.

use super::Cluster;
use crate::oracle::Spans;
use dq_queue::codec::log_entry::LogEntry;
use dq_queue::op;
use dq_queue::queue::MAX_LEAD;
use dq_queue::{Millis, Op};

const SECOND_US: u64 = 1_000_000;
const DAY_US: u64 = 86_400 * SECOND_US;
/// Leases are spared for at most this, in ms.
const MOST_SPARED: Millis = 30;

impl Cluster {
    /// Draws the time of the clock of a new primary. It may be ahead of the one before, or behind,
    /// by seconds or days.
    pub(super) fn draw_clock(&mut self) {
        let passed = self.rng.u64(1_000..3_000_000);
        let has_schedules = self.primary.schedules().len() > 0;
        // Receipts that were lost with the last entries of the log must be below the clock's time.
        let has_lost = self.primary.last_receipt() < self.issued;
        self.us = match self.rng.u8(0..8) {
            _ if has_lost => self.us.max(self.issued) + passed,
            0 => self.us - self.rng.u64(0..60 * SECOND_US),
            1 => self.us - self.rng.u64(60 * SECOND_US..3 * DAY_US),
            // A schedule would make up for hundreds of thousands of fires.
            2 if !has_schedules => self.us + self.rng.u64(0..3 * DAY_US),
            _ => self.us + passed,
        };
    }

    /// Brings the clock of the queue into line with that of its new primary. A large lead is cut,
    /// which is recorded.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(super) fn arrive(&mut self) -> Result<(), String> {
        let server = self.server_moment();
        let ahead = self.primary.follow(server);
        let lead = ahead.ms().saturating_sub(server.ms());
        if lead <= MAX_LEAD {
            return Ok(());
        }
        self.event("the lead of the clock is cut");
        let spans = Spans::of(&self.primary, ahead.ms());
        let cut = self.with_bug_before(
            op::Before {
                cut: lead,
                ..op::Before::default()
            },
            |bug| bug.begins,
        );
        self.primary.prepare(&cut, server);
        let done = self.primary.apply(&Op::Tick, server);
        done.map_err(|error| format!("a tick was refused: {error:?}"))?;
        spans.check(&self.primary, server.ms())?;
        let logged = self.with_bug_before(cut, |bug| bug.logs_before);
        self.primary.take_effects();
        self.record(&LogEntry::of(server, logged, None, &Op::Tick), &[], false)
    }

    /// Spares the leases that are over in some cases, like after a standstill of the server.
    pub(super) fn spare(&mut self, now: Millis) -> op::Before {
        let is_over = self.primary.has_lease_before(now + 1);
        if !is_over || self.is_manual() || self.rng.u8(0..16) > 0 {
            return op::Before::default();
        }
        let spare = now + self.rng.u64(1..MOST_SPARED);
        let asked = op::Before {
            spare,
            ..op::Before::default()
        };
        let before = self.with_bug_before(asked, |bug| bug.begins);
        let moment = self.moment();
        self.primary.prepare(&before, moment);
        self.oracle.spare(spare);
        before
    }

    fn is_manual(&self) -> bool {
        matches!(self.primary.clock(), dq_queue::settings::Clock::Manual(_))
    }

    /// The changes before an operation as the seeded bug alters them, if there is one.
    pub(super) fn with_bug_before(
        &self,
        mut before: op::Before,
        part: fn(&crate::bugs::Bug) -> fn(&mut op::Before),
    ) -> op::Before {
        if let Some(bug) = &self.bug {
            part(bug)(&mut before);
        }
        before
    }
}
