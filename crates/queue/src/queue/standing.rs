//! Who stands in line, and where: kept in step with what each has to give.
//!
//! A place in the line is known by its time also where that was not worked off
//! yet: a group knows the places that time will give it, and the ungrouped
//! messages stand where the first of them fell due.

use super::Queue;
use crate::backlog::Pending;
use crate::group::{Group, GroupIx};
use crate::line::{Join, LineKey, Places};
use crate::op::Happened;
use crate::order_key::OrderKey;
use crate::settings::OnRetry;
use crate::state::Place;
use crate::{Millis, NEVER};

/// Where more messages of a group have failed, they are not looked through to
/// tell when it can give again.
const MANY_FAILED: usize = 64;

impl Queue {
    /// Brings a group's place in the line up to date with what it can give.
    /// Call it after every change to what it has, holds or may.
    pub(super) fn refresh(&mut self, ix: GroupIx, now: Millis, join: Join) {
        if !ix.is_some() {
            return self.refresh_plain(now, join);
        }
        self.heed_purges(ix);
        let Some(group) = self.groups.get(ix) else {
            return;
        };
        let line = group.line(ix);
        // What time brings late is no reason to forget what came after it.
        let now = now.max(line.map_or(0, |key| key.join.time));
        let head = self.group_head(group, now);
        // A place that time has given is taken, worked off already or not.
        let given = group.given_place(ix, now);
        let had = given.or(line);
        let has = head.map(|head| {
            let joined = LineKey {
                priority: head.priority(),
                join,
                seq: head.seq(),
                group: ix,
            };
            match had {
                Some(key) if key.priority == joined.priority && key.join != join => key,
                _ => joined,
            }
        });
        let wake = self.group_wake(group, now);
        let expected = self.expected_of(ix, group, has);
        self.stand(ix, has, expected);
        self.count_as_ready(ix, has.is_some());
        if let Some(group) = self.groups.get_mut(ix) {
            if given.is_some() || line.map(|key| key.priority) != has.map(|key| key.priority) {
                group.set_turn(0);
            }
            group.displaced = false;
        }
        if line != has {
            if let Some(key) = line {
                self.line.remove(&key);
            }
            if let Some(key) = has {
                self.line.insert(key, ());
            }
        }
        self.groups.wake_at(ix, wake);
        if let Some(at) = wake {
            self.note(at);
        }
        self.groups.settle(ix);
    }

    /// The places in the line that time gives to a group that stands as `has`,
    /// as far as that can be told.
    pub(super) fn expected_of(&self, ix: GroupIx, group: &Group, has: Option<LineKey>) -> Places {
        let mut places = Places::new();
        let mut stands = has;
        while let Some(at) = match stands {
            None => self.opening(group),
            Some(key) => self.overtaking(group, key),
        } {
            let Some(head) = self.next_in_group(group, at).filter(|_| at != NEVER) else {
                break;
            };
            let place = LineKey {
                priority: head.priority(),
                join: Join::by_time(at),
                seq: head.seq(),
                group: ix,
            };
            places.push(place);
            stands = Some(place);
        }
        places
    }

    /// When a group that stands in line gives a message first that takes it to
    /// another line, one that goes before.
    fn overtaking(&self, group: &Group, stands: LineKey) -> Option<Millis> {
        let Pending { fresh, failed } = self.pending(group);
        let firsts = fresh.first().into_iter().chain(failed.first());
        if firsts.map(OrderKey::priority).min()? >= stands.priority {
            return None;
        }
        let bound = OrderKey::start_of(stands.priority);
        let failed = match self.settings.on_retry {
            // What has failed goes first, whatever comes.
            OnRetry::Block if !failed.is_empty() => return None,
            _ => failed.earliest_before(&bound),
        };
        let fresh = fresh.earliest_before(&bound);
        fresh.into_iter().chain(failed).min()
    }

    /// From when on a group that cannot give yet can, if only time keeps it.
    fn opening(&self, group: &Group) -> Option<Millis> {
        if self.is_held_by_dead(group) || group.batch_count() >= self.concurrency(group) {
            return None;
        }
        let Pending { fresh, failed } = self.pending(group);
        let fresh = fresh.earliest();
        let due = match self.settings.on_retry {
            _ if failed.is_empty() => fresh?,
            OnRetry::Skip => fresh.into_iter().chain(failed.earliest()).min()?,
            // Where very many have failed, each that is promoted is a reason to
            // look at the group again.
            OnRetry::Block if failed.len() > MANY_FAILED => return None,
            OnRetry::Block => failed.times().max()?,
        };
        Some(due.max(group.opens_at()))
    }

    /// Finds the places in the line that time gives to a group that was made as
    /// a whole.
    pub(super) fn expect_next(&mut self, ix: GroupIx) {
        if let Some(group) = self.groups.get(ix) {
            let places = match group.displaced {
                true => Places::new(),
                false => self.expected_of(ix, group, group.line(ix)),
            };
            self.expect(ix, places);
        }
    }

    /// Notes the places in the line that time gives to a group.
    fn expect(&mut self, ix: GroupIx, places: Places) {
        let line = self.groups.get(ix).and_then(|group| group.line(ix));
        self.stand(ix, line, places);
    }

    /// Notes where a group stands in the line, and the places that time gives it.
    fn stand(&mut self, ix: GroupIx, line: Option<LineKey>, expected: Places) {
        let Some(group) = self.groups.get_mut(ix) else {
            return;
        };
        let before: Places = group.expected(ix).collect();
        group.stand_at(line, &expected);
        if before == expected {
            return;
        }
        for key in before {
            self.expected.remove(&key);
        }
        for key in expected {
            self.expected.insert(key);
            self.note(key.join.time);
        }
    }

    /// Lets the due messages of a group count as ready in the queue, or no longer.
    fn count_as_ready(&mut self, ix: GroupIx, counted: bool) {
        let Some(group) = self.groups.get_mut(ix) else {
            return;
        };
        if group.counted == counted {
            return;
        }
        group.counted = counted;
        let count = group.backlog.all().count_at(Place::Due);
        let bytes = group.backlog.bytes_at(Place::Due);
        if !counted {
            self.uncount_ready(count, bytes);
        } else if count > 0 {
            self.grouped_ready += count;
            self.grouped_ready_bytes += bytes;
            self.effects.happened.add(Happened::READY);
        }
    }

    /// Gives a group the place in the line that time has given it by `now`.
    pub(super) fn admit(&mut self, ix: GroupIx, now: Millis) {
        self.heed_purges(ix);
        if let Some(key) = self
            .groups
            .get(ix)
            .and_then(|group| group.given_place(ix, now))
        {
            self.refresh(ix, key.join.time, key.join);
            self.effects.changed = true;
            // That it cannot give after all would be a mistake of ours; it must
            // not be asked for ever.
            if self
                .groups
                .get(ix)
                .is_some_and(|group| group.given_place(ix, now).is_some())
            {
                self.expect(ix, Places::new());
            }
        }
    }

    fn refresh_plain(&mut self, now: Millis, join: Join) {
        // What time brings late is no reason to forget what came after it.
        let now = now.max(self.last);
        // Who joins in this very moment stands by what is first at its end.
        let joins = |key: &LineKey| key.join == join && join.time == now;
        let stands = self.plain_line.filter(|key| !joins(key));
        self.plain_line = self.plain_place(stands, now, join);
    }

    /// Where the ungrouped messages stand at `now`: where they stood, or, where
    /// what they give first has another priority, as they join now.
    pub(super) fn plain_place(
        &self,
        stood: Option<LineKey>,
        now: Millis,
        join: Join,
    ) -> Option<LineKey> {
        let head = self.waiting.plain.head(now)?;
        Some(LineKey::of_plain(head, stood, join))
    }

    /// What a group would give next at `now`, if it can give anything.
    pub(super) fn group_head(&self, group: &Group, now: Millis) -> Option<OrderKey> {
        if group.is_paused(now)
            || self.is_held_by_dead(group)
            || group.batch_count() >= self.concurrency(group)
            || group.allowance(now) == 0
        {
            return None;
        }
        self.next_in_group(group, now)
    }

    /// What comes next in the order of a group at `now`, limits aside.
    pub(super) fn next_in_group(&self, group: &Group, now: Millis) -> Option<OrderKey> {
        let Pending { fresh, failed } = self.pending(group);
        let fresh = || fresh.first_due(now);
        if failed.is_empty() {
            return fresh();
        }
        match self.settings.on_retry {
            OnRetry::Block if self.waits_for_retry(group, now) => None,
            OnRetry::Block => failed.first(),
            OnRetry::Skip => match (failed.first_due(now), fresh()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }

    /// Whether any of those that have failed still waits for its backoff.
    pub(super) fn waits_for_retry(&self, group: &Group, now: Millis) -> bool {
        let failed = self.pending(group).failed;
        !failed.ahead.is_empty() && failed.times().any(|due| due > now)
    }

    /// Batches of a group that may be leased at once.
    pub(super) fn concurrency(&self, group: &Group) -> u64 {
        match group.ext().settings.as_ref().map_or(0, |s| s.concurrency) {
            0 => self.settings.group_concurrency,
            own => own,
        }
    }

    /// When a group's pause or limit ends, if that is what it waits for.
    fn group_wake(&self, group: &Group, now: Millis) -> Option<Millis> {
        if let Some(until) = group.ext().paused_until {
            return Some(until);
        }
        let (rate, window) = group.rate()?;
        let next = window.next_free(rate, now);
        (next > now && !self.pending(group).is_empty()).then_some(next)
    }

    /// Whether a group can give at `now`.
    pub(super) fn can_group_give(&self, ix: GroupIx, now: Millis) -> bool {
        self.groups
            .get(ix)
            .is_some_and(|group| self.group_head(group, now).is_some())
    }

    /// In a burst that is still being worked off, groups may be able to give
    /// without having joined the line yet: the one that would be first in it
    /// joins now.
    pub(super) fn admit_first(&mut self, now: Millis) {
        while let Some(key) = self.expected.first(now) {
            if self.line.first().is_some_and(|(first, ())| first < key) {
                return;
            }
            self.admit(key.group, now);
        }
    }

    /// Where the ungrouped messages stand: what has fallen due without having
    /// been worked off joined the line when it did.
    pub(super) fn plain_key(&self, now: Millis) -> Option<LineKey> {
        let head = self.waiting.plain.head(now)?;
        let join = Join::by_time(head.1);
        Some(LineKey::of_plain(head, self.plain_line, join))
    }

    /// Lets the ungrouped messages stand where they do at `now`, worked off or
    /// not.
    pub(super) fn admit_plain(&mut self, now: Millis) {
        let stands = self.plain_key(now.max(self.last));
        // It is seen in a snapshot, so that a replica must hear of it.
        self.effects.changed |= stands != self.plain_line;
        self.plain_line = stands;
    }
}
