//! Messages that go to another queue when they die (DEADTO).

use crate::dead_letters::{DeadLetters, Letter, Moved, Stays, Trace, MAX_HOPS};
use crate::message::state::{Reason, StoredState};
use crate::message::{Header, Message};
use crate::op::{Done, Send};
use crate::queue::ends::Letters;
use crate::queue::ops::id_use::IdUse;
use crate::queue::Queue;
use crate::seeded::{seeded, settles_late, Bug};
use crate::settings::OnDead;
use crate::{GroupIx, Millis, Seq};

/// The headers that say how a message died. The headers of an earlier death are replaced.
const FROM: &[u8] = b"dead-from";
const REASON: &[u8] = b"dead-reason";
const ERROR: &[u8] = b"dead-error";
const ATTEMPTS: &[u8] = b"dead-attempts";
/// How many queues the message has gone through, from the second on.
const HOPS: &[u8] = b"dead-hops";

impl Queue {
    /// Whether a message that dies for this reason is to go to another queue.
    #[inline]
    pub(in crate::queue) fn sends_on(&self, reason: Reason) -> bool {
        let dead_to = self.state.settings.dead_to.as_ref();
        dead_to.is_some_and(|dead_to| dead_to.takes(reason))
    }

    /// Puts a message that has died on its way to another queue. It has no id and is no record until
    /// [`Queue::moved`].
    #[cold]
    pub(super) fn set_off(&mut self, seq: Seq, now: Millis) {
        self.state.store.with(seq, |message| {
            message.stored = StoredState::Leaving;
            message.extension_mut().ended_at = now;
            if message.signal().is_some() {
                message.change_left(|more| more.signal = None);
            }
        });
        if seeded(Bug::LetterRedriven) || seeded(Bug::LetterReplaced) {
            self.leave_record_of(seq, StoredState::Dead, now);
        }
        if !seeded(Bug::LetterReplaced) && !seeded(Bug::LetterKeepsId) {
            self.state.ids.remove(&self.state.store, seq);
        }
        let has_ties = self.has_ties(seq);
        let unsettled = self.unsettled_mut();
        if !seeded(Bug::LetterUnowed) {
            unsettled.leaving.push(seq);
        }
        unsettled.is_urgent |= has_ties;
    }

    /// Whether anything in this queue depends on whether a dead message goes to another queue.
    fn has_ties(&self, seq: Seq) -> bool {
        let message = self.state.store.get(seq);
        let holds = self.state.settings.on_dead == OnDead::Block;
        message.is_none_or(|message| message.rerun().is_some())
            || holds && message.is_some_and(|message| message.group.is_some())
            || self.batch_of(seq).is_some()
            || self.parent_of(seq).is_some()
    }

    /// The dead messages that are on their way to another queue, in the form in which they leave the
    /// key `from`. `None` if there are none.
    pub(super) fn letters(&self, from: &[u8]) -> Option<Letters> {
        let leaving = &self.state.seldom.unsettled.as_ref()?.leaving;
        if leaving.is_empty() {
            return None;
        }
        let messages = leaving
            .iter()
            .filter_map(|seq| Some((*seq, self.state.store.get(*seq)?)));
        let mut died: Vec<_> = messages.collect();
        died.sort_by_key(|(seq, message)| (message.ended_at(), *seq));
        let mut letters = Letters {
            to: self.dead_to_key(),
            letters: Vec::with_capacity(died.len()),
            stays: None,
        };
        for (seq, message) in died {
            match self.letter(seq, message, from) {
                Ok(letter) => letters.letters.push(letter),
                Err(why) => letters.stays = Some(why),
            }
        }
        Some(letters)
    }

    fn dead_to_key(&self) -> Box<[u8]> {
        let dead_to = self.state.settings.dead_to.as_ref();
        dead_to.map_or(Box::default(), |dead_to| dead_to.key.clone())
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
        let content = self.state.store.content(message);
        Ok(Letter {
            seq,
            id: self.id_with(seq, message, content).to_box(),
            payload: content.payload.bytes().into(),
            group: self.state.groups.name(message.group).map(Into::into),
            label: choices.and_then(|choices| choices.label.clone()),
            headers: headers.into(),
        })
    }

    /// Whether a message with this id could not be sent because the id is taken.
    pub fn is_taken(&self, id: &[u8], now: Millis) -> bool {
        matches!(self.id_use(id, &Send::plain(b""), now), IdUse::Taken)
    }

    /// Removes the dead messages that have gone to another queue, and remembers their new places.
    /// A message that has gone holds its group no longer. Those that were on their way and have not
    /// gone are dead from now on.
    pub(in crate::queue) fn moved(&mut self, moved: &Moved, now: Millis) -> Done {
        let to = self.dead_to_key();
        let unsettled = self.state.seldom.unsettled_mut();
        let mut leaving = unsettled.map_or(Vec::new(), |all| std::mem::take(&mut all.leaving));
        let mut letters = self.state.seldom.dead_letters.take().unwrap_or_default();
        let mut count = 0;
        leaving.sort_unstable();
        for (seq, new_id) in &moved.gone {
            let Ok(at) = leaving.binary_search(seq) else {
                continue;
            };
            leaving.remove(at);
            if let Some(trace) = self.trace_of(*seq, &to, new_id.as_deref()) {
                letters.remember(trace);
                self.part(*seq, now);
                count += 1;
            }
        }
        letters.moved += count;
        letters.stays = match (moved.stays, count) {
            (Some(stays), _) => Some((stays, now)),
            (None, 0) => letters.stays,
            (None, _) => None,
        };
        self.state.seldom.dead_letters = (*letters != DeadLetters::default()).then_some(letters);
        leaving.into_iter().for_each(|seq| self.stay(seq, now));
        if let Some(all) = self.state.seldom.unsettled_mut() {
            all.is_urgent = !all.reports.is_empty();
        }
        self.changed();
        Done::Count(count)
    }

    /// Removes a message that is no longer in this queue. What waits for the end of its run is sent
    /// next.
    fn part(&mut self, seq: Seq, now: Millis) {
        let group = self.state.store.get(seq).map_or(GroupIx::NONE, |m| m.group);
        if !seeded(Bug::LetterTakesRerun) {
            self.part_with_rerun(seq);
        }
        if !seeded(Bug::LetterKeepsHold) {
            self.unhold(seq, group);
        }
        if settles_late() && self.is_at(seq, StoredState::Dead) {
            self.leave_record(seq);
        }
        self.forget(seq);
        self.refresh(group, now, self.join(now));
    }

    /// Keeps a message that could not leave as a dead one. Whatever has its id, or waits for the end
    /// of its run, replaces it.
    fn stay(&mut self, seq: Seq, now: Millis) {
        let Some(message) = self.state.store.get(seq) else {
            return;
        };
        let died_at = message.ended_at();
        let is_replaced = match self.state.store.given_id(seq) {
            Some(id) => message.rerun().is_some() || self.find(id.as_bytes()).is_some(),
            None => message.rerun().is_some(),
        };
        if is_replaced {
            self.part(seq, now);
        } else {
            self.state
                .store
                .with(seq, |message| message.stored = StoredState::Dead);
            self.state.ids.insert(&self.state.store, seq);
            if !seeded(Bug::LetterStaysNowhere) {
                self.leave_record_of(seq, StoredState::Dead, died_at);
            }
        }
    }

    /// Keeps all messages that are on their way to another queue as dead ones. For a copy of the
    /// queue, which owes nothing.
    pub(in crate::queue) fn stay_all(&mut self, now: Millis) {
        let unsettled = self.state.seldom.unsettled_mut();
        let leaving = unsettled.map_or(Vec::new(), |all| std::mem::take(&mut all.leaving));
        leaving.into_iter().for_each(|seq| self.stay(seq, now));
    }

    fn trace_of(&self, seq: Seq, to: &[u8], new_id: Option<&[u8]>) -> Option<Trace> {
        let message = self.state.store.get(seq)?;
        let reason = message.texts().and_then(|texts| texts.reason);
        Some(Trace {
            id: self.id_of(seq, message).to_box(),
            to: to.into(),
            new_id: new_id.map(Into::into),
            reason: reason.unwrap_or(Reason::Retries),
            at: message.ended_at(),
        })
    }

    /// The reason why a dead message that was to go to another queue is still here, and the key of
    /// that queue.
    pub(in crate::queue) fn why_it_stays(&self, message: &Message) -> Option<(Stays, &[u8])> {
        let dead_to = self.state.settings.dead_to.as_ref()?;
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
        self.state.seldom.dead_letters.as_deref()
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
