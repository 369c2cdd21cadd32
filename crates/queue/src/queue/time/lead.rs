//! The lead of a queue's clock: how far it is ahead of the clock of its server.
//!
//! A queue may have acted at times that the clock of its present server has not shown
//! yet: it comes from a server whose clock was ahead, or the clock of this one was set
//! back while it was down. Its clock must not go back, and must not stand still either.
//! So a small lead melts away at half speed, and a large one is cut: the clock of the
//! queue is set to that of the server, and everything in it moves so that nothing
//! happens early.

use std::collections::BTreeSet;

use crate::index::ready_line::{Position, Positions};
use crate::op::{Before, Effects, Moment};
use crate::queue::rebuild::set_back;
use crate::queue::Queue;
use crate::settings::Clock;
use crate::{GroupIx, Millis};

/// The largest lead that is kept and shrinks, in ms. A larger one is cut.
pub const MAX_LEAD: Millis = 60_000;

/// A clock that is ahead of the server's and runs at half its speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// The time that the clock of the queue showed at the beginning, in microseconds.
    from_us: u64,
    /// The time that the clock of the server showed then, in microseconds.
    since_us: u64,
}

impl Lead {
    /// The time that the clock of the queue shows, in microseconds, unless the server's
    /// has caught up.
    fn at(self, server_us: u64) -> u64 {
        let elapsed = server_us.saturating_sub(self.since_us);
        self.from_us.saturating_add(elapsed / 2)
    }
}

impl Queue {
    /// Whether the clock of the queue may be ahead of the server's at this moment. If not,
    /// the moment of the queue is that of the server.
    #[inline]
    pub fn may_be_ahead(&self, server: Moment) -> bool {
        self.notes.ahead.is_some() || server.ms() < self.state.last
    }

    /// The moment of this queue at a moment of the server: later if its clock is ahead.
    /// It serves calls that only read the queue.
    #[inline]
    pub fn moment(&self, server: Moment) -> Moment {
        match self.may_be_ahead(server) {
            true => self.moment_ahead(server),
            false => server,
        }
    }

    #[cold]
    fn moment_ahead(&self, server: Moment) -> Moment {
        let last_us = self.state.last.saturating_mul(1000);
        let ahead = self.notes.ahead.as_ref();
        let ahead = ahead.map_or(0, |lead| lead.at(server.us));
        match self.state.clock {
            Clock::Manual(_) => server,
            Clock::Server => Moment {
                us: server.us.max(ahead).max(last_us),
                ..server
            },
        }
    }

    /// The time of this queue (Unix ms) at a moment of the server. For those who only
    /// read the queue.
    #[inline]
    pub fn time(&self, server: Moment) -> Millis {
        self.now(self.moment(server))
    }

    /// Like [`Queue::moment`], and from now on the clock of the queue goes at half
    /// speed if it is ahead, until the server's has caught up.
    #[inline]
    pub fn follow(&mut self, server: Moment) -> Moment {
        match self.may_be_ahead(server) {
            true => self.follow_ahead(server),
            false => server,
        }
    }

    #[cold]
    fn follow_ahead(&mut self, server: Moment) -> Moment {
        let moment = self.moment_ahead(server);
        let shown = self.notes.ahead.as_ref();
        let shown = shown.map_or(0, |lead| lead.at(server.us));
        if moment.us <= server.us {
            self.notes.ahead = None;
        } else if shown < moment.us {
            self.notes.ahead = Some(Box::new(Lead {
                from_us: moment.us,
                since_us: server.us,
            }));
        }
        moment
    }

    /// Forgets since when the clock of the queue has been ahead of the server's. It goes on from the
    /// latest time at which the queue has acted: another server says when that is, and the clock of
    /// this one may have been set since.
    pub fn forget_lead(&mut self) {
        self.notes.ahead = None;
    }

    /// The lead of the queue's clock over the server's, in ms.
    pub fn lead(&self, server: Moment) -> Millis {
        self.moment(server).ms().saturating_sub(server.ms())
    }

    /// When the clock of the server shows the moment at which this queue's shows
    /// `time`, both in Unix ms. Not too early.
    pub fn server_time(&self, time: Millis) -> Millis {
        let Some(lead) = self.notes.ahead.as_deref() else {
            return time;
        };
        let to_come = time.saturating_mul(1000).saturating_sub(lead.from_us);
        let slowed = lead.since_us.saturating_add(to_come.saturating_mul(2));
        time.min(slowed.div_ceil(1000))
    }

    /// Makes the changes that time demands before an operation at `moment`, besides
    /// processing due events.
    pub fn prepare(&mut self, before: &Before, moment: Moment) {
        if before.cut > 0 {
            self.cut_lead(before.cut, moment.ms());
        }
        if before.spare > 0 {
            self.spare_leases(before.spare);
        }
    }

    /// Sets the clock back by `by` ms, to `now` (Unix ms). Spans of time that have begun
    /// keep their rest. Points of time stay, so a message that was due at a point which
    /// is in the future again is no longer due. Receipts only grow nevertheless. A manual
    /// clock stays. O(n log n).
    pub fn cut_lead(&mut self, by: Millis, now: Millis) {
        if self.state.clock != Clock::Server {
            return;
        }
        let moved = self.groups_with_points();
        let were_due = self.noted_due();
        // A queue that cannot be rebuilt is damaged already. Its clock then stands still.
        let Ok(rebuilt) = set_back(self, by, now, &moved) else {
            return;
        };
        let moved = moved.iter().filter_map(|ix| self.state.groups.get(*ix));
        let mut moved: Vec<_> = moved
            .map(|group| (group.name.clone(), group.is_hidden()))
            .collect();
        moved.sort_unstable();
        let before = std::mem::replace(self, rebuilt);
        self.notes.watched = before.notes.watched;
        self.notes.garbage = before.notes.garbage;
        self.notes.effects = Effects {
            changed: true,
            visible: true,
            ..before.notes.effects
        };
        self.note_no_longer_due(&were_due, now);
        self.state.ticket += 1;
        let priority = |position: Option<Position>| position.map(|at| at.priority);
        if priority(self.state.plain_position) != priority(before.state.plain_position) {
            self.state.plain_position = self.place_plain(None, now, self.join(now));
        }
        for (name, is_hidden) in moved {
            let found = match is_hidden {
                true => self.state.groups.find_hidden(&name),
                false => self.state.groups.find(&name),
            };
            if let Some(ix) = found {
                // The messages that it could deliver count as of now, not as of their due times.
                self.set_position(ix, None, Positions::new());
                self.refresh(ix, now, self.join(now));
            }
        }
    }

    /// The groups with a pending message that is due at a point of time, so that the
    /// order of their messages may change when the clock is set back.
    fn groups_with_points(&self) -> BTreeSet<GroupIx> {
        let messages = self.state.store.iter().map(|(_, message)| message);
        messages
            .filter(|message| message.is_due_at_point() && message.stored.is_pending())
            .map(|message| message.group)
            .filter(|group| group.is_some())
            .collect()
    }
}
