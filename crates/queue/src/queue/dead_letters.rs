//! Messages that go to another queue when they die (DEADTO).

use crate::dead_letters::{DeadLetters, Letter, Moved, Stays, Trace, MAX_HOPS};
use crate::message::state::{Reason, StoredState};
use crate::message::{Header, Message};
use crate::op::{Done, Send};
use crate::queue::ops::id_use::IdUse;
use crate::queue::Queue;
use crate::{GroupIx, Millis, Seq, IS_SMALL};

/// The headers that say how a message died. The headers of an earlier death are replaced.
const FROM: &[u8] = b"dead-from";
const REASON: &[u8] = b"dead-reason";
const ERROR: &[u8] = b"dead-error";
const ATTEMPTS: &[u8] = b"dead-attempts";
/// How many queues the message has gone through, from the second on.
const HOPS: &[u8] = b"dead-hops";

impl Queue {
    /// Notes that a message is to go to another queue if the queue has DEADTO.
    #[inline]
    pub(super) fn note_death(&mut self, seq: Seq, reason: Reason) {
        if let Some(dead_to) = &self.settings.dead_to {
            if dead_to.takes(reason) {
                self.effects.told_mut().moving.push(seq);
            }
        }
    }

    /// The number of dead messages that the present operation sends to another queue. They do not
    /// count as records that are kept.
    #[inline]
    pub(super) fn moving(&self) -> u64 {
        let told = self.effects.told.as_ref();
        told.map_or(0, |told| told.moving.len() as u64)
    }

    /// Counts dead messages that are to go as kept records from now on, so the queue may have too
    /// many of those.
    #[cold]
    pub(super) fn count_moving(&mut self) {
        if self.moving() > 0 {
            self.wake_by(0);
        }
    }

    /// Whether a slice should end because it has many messages for other keys.
    #[inline]
    pub fn tells_many(&self) -> bool {
        const MANY: usize = if IS_SMALL { 4 } else { 128 };
        let told = self.effects.told.as_ref();
        told.is_some_and(|told| {
            told.moving.len() >= MANY
                || told.children.len() >= MANY
                || told.transitions.len() >= 2 * MANY
        })
    }

    /// Whether the last change has left messages for other keys.
    #[inline]
    pub fn tells(&self) -> bool {
        let told = self.effects.told.as_ref();
        told.is_some_and(|told| {
            !told.moving.is_empty() || !told.transitions.is_empty() || !told.children.is_empty()
        })
    }

    /// The messages with these numbers that are still dead, in the form in which they go to
    /// another queue from the key `from`; and the reason why others do not go.
    pub fn letters(&self, seqs: &[Seq], from: &[u8]) -> (Vec<Letter>, Option<Stays>) {
        let mut seqs = seqs.to_vec();
        seqs.sort_unstable();
        seqs.dedup();
        let mut stays = None;
        let mut letters = Vec::with_capacity(seqs.len());
        let mut died = Vec::with_capacity(seqs.len());
        for seq in seqs {
            let message = self.store.get(seq);
            let Some(message) = message.filter(|found| found.stored == StoredState::Dead) else {
                continue;
            };
            match self.letter(seq, message, from) {
                Ok(letter) => {
                    died.push((message.ended_at(), letters.len()));
                    letters.push(Some(letter));
                }
                Err(why) => stays = Some(why),
            }
        }
        // The messages go in the order in which they died.
        died.sort_unstable();
        let in_order = died.into_iter();
        let in_order = in_order.filter_map(|(_, at)| letters.get_mut(at)?.take());
        (in_order.collect(), stays)
    }

    fn letter(&self, seq: Seq, message: &Message, from: &[u8]) -> Result<Letter, Stays> {
        let choices = message.choices();
        let own: &[Header] = choices.map_or(&[], |choices| &choices.headers);
        let hops = hops(own) + 1;
        if hops > MAX_HOPS {
            return Err(Stays::Hops);
        }
        let texts = message.texts();
        let reason = texts.and_then(|texts| texts.reason);
        let mut headers: Vec<Header> = own
            .iter()
            .filter(|(field, _)| ![FROM, REASON, ERROR, ATTEMPTS, HOPS].contains(&&**field))
            .cloned()
            .collect();
        let mut add = |field: &[u8], value: &[u8]| headers.push((field.into(), value.into()));
        add(FROM, from);
        add(REASON, reason.map_or("", Reason::name).as_bytes());
        if let Some(error) = texts.and_then(|texts| texts.error.as_deref()) {
            add(ERROR, error);
        }
        let attempts = message.history.attempt();
        add(ATTEMPTS, attempts.to_string().as_bytes());
        if hops > 1 {
            add(HOPS, hops.to_string().as_bytes());
        }
        let content = self.store.content(message);
        Ok(Letter {
            seq,
            id: self.id_with(seq, message, content).to_box(),
            payload: content.payload.into(),
            group: self.groups.name(message.group).map(Into::into),
            label: choices.and_then(|choices| choices.label.clone()),
            headers: headers.into(),
        })
    }

    /// Whether a message with this id could not be sent because the id is taken.
    pub fn is_taken(&self, id: &[u8], now: Millis) -> bool {
        matches!(self.id_use(id, &Send::plain(b""), now), IdUse::Taken)
    }

    /// Removes the dead messages that have gone to another queue, and remembers their new places.
    /// A message that has gone holds its group no longer. The messages that stay are kept as dead
    /// ones.
    pub(super) fn moved(&mut self, moved: &Moved, now: Millis) -> Done {
        let to: Box<[u8]> = match &self.settings.dead_to {
            Some(dead_to) => dead_to.key.clone(),
            None => Box::default(),
        };
        let mut letters = self.dead_letters.take().unwrap_or_default();
        let mut count = 0;
        for (seq, new_id) in &moved.gone {
            let Some((trace, group)) = self.trace_of(*seq, &to, new_id.as_deref()) else {
                continue;
            };
            letters.remember(trace);
            self.part_with_rerun(*seq);
            self.leave_record(*seq);
            self.unhold(*seq, group);
            self.forget(*seq);
            self.refresh(group, now, self.join(now));
            count += 1;
        }
        letters.moved += count;
        letters.stays = match (moved.stays, count) {
            (Some(stays), _) => Some((stays, now)),
            (None, 0) => letters.stays,
            (None, _) => None,
        };
        self.dead_letters = (*letters != DeadLetters::default()).then_some(letters);
        self.replace_those_that_stay(now);
        // The messages that stay count as records from now on, and batches may have ended. The
        // timer looks after that: this operation must not let further messages die.
        self.close_batches();
        self.wake_by(0);
        self.changed();
        Done::Count(count)
    }

    fn trace_of(&self, seq: Seq, to: &[u8], new_id: Option<&[u8]>) -> Option<(Trace, GroupIx)> {
        let message = self.store.get(seq)?;
        if message.stored != StoredState::Dead {
            return None;
        }
        let reason = message.texts().and_then(|texts| texts.reason);
        let trace = Trace {
            id: self.id_of(seq, message).to_box(),
            to: to.into(),
            new_id: new_id.map(Into::into),
            reason: reason.unwrap_or(Reason::Retries),
            at: message.ended_at(),
        };
        Some((trace, message.group))
    }

    /// The reason why a dead message that was to go to another queue is still here, and the key of
    /// that queue.
    pub(super) fn why_it_stays(&self, message: &Message) -> Option<(Stays, &[u8])> {
        let dead_to = self.settings.dead_to.as_ref()?;
        let reason = message.texts().and_then(|texts| texts.reason)?;
        if !dead_to.takes(reason) {
            return None;
        }
        let own = message.choices();
        let is_last = own.is_some_and(|choices| hops(&choices.headers) >= MAX_HOPS);
        let (stays, at) = self.dead_letters()?.stays?;
        match is_last {
            true => Some((Stays::Hops, &dead_to.key)),
            false if message.ended_at() <= at => Some((stays, &dead_to.key)),
            false => None,
        }
    }

    /// The state of messages that were to go to another queue.
    pub fn dead_letters(&self) -> Option<&DeadLetters> {
        self.dead_letters.as_deref()
    }
}

/// How many queues a message with these headers has gone through.
fn hops(headers: &[Header]) -> u64 {
    let value = |name: &[u8]| headers.iter().rev().find(|(field, _)| **field == *name);
    if value(FROM).is_none() {
        return 0;
    }
    let told = value(HOPS).and_then(|(_, value)| std::str::from_utf8(value).ok());
    // A sender may have written the header, so it may say anything.
    let told = told.and_then(|told| told.parse::<u64>().ok());
    told.map_or(1, |told| told.min(MAX_HOPS))
}
