//! Checks of the parts of a snapshot: the conditions for each part alone.

use super::group_part::GroupPart;
use super::{Checked, SavedPosition, Term, Whole};
use crate::collections::rate_window::RateWindow;
use crate::groups::breaker::{Circuit, Phase};
use crate::limits::{self, ensure, exact, name, MAX_FAILURES};
use crate::message::body::Content;
use crate::message::history::History;
use crate::message::kin::Wait;
use crate::message::packing::Payload;
use crate::message::rerun::Rerun;
use crate::message::state::StoredState;
use crate::message::Message;
use crate::schedule::Schedule;
use crate::settings::{Clock, Rate};
use crate::{GroupIx, Millis, Queue, Receipt, Seq, MAX_EXACT, NEVER};

/// Checks the part that exists once.
pub fn whole(whole: &Whole) -> Checked {
    let numbers = [whole.last, whole.next_seq, whole.last_receipt];
    numbers.into_iter().try_for_each(exact)?;
    ensure(
        whole.next_seq > 0,
        "the number of the next message must be at least 1",
    )?;
    ensure(
        matches!(whole.clock, Clock::Server) || whole.clock == Clock::Manual(whole.last),
        "a manual clock must show the last time of its queue",
    )?;
    time_or_never(whole.paused_until)?;
    counted(&whole.window, whole.settings.rate, whole.last)?;
    whole
        .plain_position
        .map_or(Ok(()), |at| position(at, whole.next_seq))
}

/// Checks a group.
pub fn group(part: &GroupPart, next_seq: Seq, last: Millis) -> Checked {
    if let Some(settings) = &part.settings {
        [settings.weight, settings.concurrency]
            .into_iter()
            .try_for_each(exact)?;
        settings.rate.map_or(Ok(()), limits::rate)?;
        counted(&settings.window, settings.rate, last)?;
        ensure(
            **settings != Default::default(),
            "a group has settings that are all defaults",
        )?;
    }
    time_or_never(part.paused_until)?;
    for (seq, id) in &part.held_by {
        ensure(
            *seq < next_seq,
            "a group is held by a message that was never sent",
        )?;
        name(id)?;
    }
    exact(part.turn)?;
    part.wake.map_or(Ok(()), exact)?;
    part.line.map_or(Ok(()), |at| position(at, next_seq))
}

/// Checks the breaker of a group or of the ungrouped messages.
pub fn breaker(circuit: &Circuit, queue: &Queue) -> Checked {
    ensure(
        queue.state.settings.breaker.is_some(),
        "there is a breaker, but the queue has no BREAKER",
    )?;
    ensure(
        circuit.cause() < queue.state.next_seq,
        "a breaker was opened by a message that was never sent",
    )?;
    match circuit.phase() {
        Phase::Closed(failures) => {
            ensure(
                (1..MAX_FAILURES as usize).contains(&failures.len()),
                "a closed breaker must remember 1 to 999 failures",
            )?;
            let in_order = failures.iter().zip(failures.iter().skip(1));
            ensure(
                in_order.into_iter().all(|(a, b)| a <= b)
                    && failures.back().is_none_or(|at| *at <= queue.state.last),
                "the failures of a breaker must be in order, and none in the future",
            )
        }
        Phase::Open { until, length } => exact(*until).and_then(|()| limits::positive(*length)),
        Phase::HalfOpen { length, .. } => limits::positive(*length),
    }
}

/// Checks that the probe of a breaker, if there is one, runs and is of this group.
pub fn probe(queue: &Queue, circuit: Option<&Circuit>, group: GroupIx) -> Checked {
    let Some(seq) = circuit.and_then(Circuit::probe) else {
        return Ok(());
    };
    let is_of_group = |m: &Message| match group.is_some() {
        true => m.group == group,
        false => queue.state.groups.name(m.group).is_none(),
    };
    let runs = |m: &Message| m.stored == StoredState::Running && is_of_group(m);
    ensure(
        queue.state.store.get(seq).is_some_and(runs),
        "the probe of a breaker must be a running message of its group",
    )
}

/// Checks a schedule.
pub fn schedule(schedule: &Schedule, next_seq: Seq) -> Checked {
    let template = &schedule.template;
    template.group.as_deref().map_or(Ok(()), name)?;
    limits::choices(&template.choices)?;
    let times = [schedule.next_at, schedule.last_at];
    times.into_iter().flatten().try_for_each(exact)?;
    if let Some(extras) = &schedule.extras {
        limits::schedule(&extras.limits)?;
        extras.paused.map_or(Ok(()), exact)?;
        ensure(
            extras.paused.is_none() || schedule.next_at.is_none(),
            "a schedule that is paused must not fire",
        )?;
    }
    ensure(
        schedule.last_seq.is_none_or(|seq| seq < next_seq),
        "a schedule names a message that was never sent",
    )
}

/// Checks the id and payload of a message.
pub fn content(content: Content) -> Checked {
    content.id.map_or(Ok(()), |id| name(id.id().as_bytes()))?;
    if let Payload::Packed(packed) = content.payload {
        // It cannot be damaged later: nothing else has to check that.
        ensure(packed.unpack().is_some(), "a packed payload is damaged")?;
    }
    ensure(
        u32::try_from(content.payload.len()).is_ok(),
        "a payload must be at most 2^32-1 bytes long",
    )
}

/// Checks a message with its lease.
pub fn message(message: &Message, term: Option<Term>, last_receipt: Receipt) -> Checked {
    let stored = message.stored;
    let is_parked = message.is_parked();
    match is_parked {
        true => time_or_never(Some(message.due))?,
        false => exact(message.due)?,
    }
    exact(message.sent_at)?;
    if is_parked {
        exact(message.held_since())?;
    } else if stored == StoredState::Held {
        let (failures, attempt) = (message.failures(), message.history.attempt());
        ensure(
            (message.after().is_some() || message.is_held_by_children())
                && failures == 0
                && attempt == 0,
            "a held message must have AFTER or CHILDREN, and neither attempts nor failures",
        )?;
    }
    if message.history == History::None {
        return ensure(
            matches!(stored, StoredState::Delayed | StoredState::Due),
            "a message without a history must be delayed or due",
        );
    }
    message.choices().map_or(Ok(()), limits::choices)?;
    if let Some(ext) = message.extension() {
        exact(ext.due_at)?;
        exact(ext.score_base)?;
        exact(ext.ttl_base)?;
        ensure(
            ext.timeouts <= ext.failures,
            "a message has more timeouts than failures",
        )?;
    }
    for at in [message.started_at(), message.first_started_at()] {
        ensure(
            at == NEVER || at <= MAX_EXACT,
            "a time must be at most 2^53-1",
        )?;
    }
    ensure(
        match stored {
            StoredState::Delayed => !message.has_failed(),
            StoredState::Retry => message.has_failed(),
            _ => true,
        },
        "a delayed message must not have failed, and a message in retry must have",
    )?;
    ensure(
        match stored.is_ended() {
            true => message.ended_at() <= MAX_EXACT,
            false => message.ended_at() == NEVER,
        },
        "a message must have an end time if it has ended, and otherwise none",
    )?;
    if let Some(children) = message.children() {
        ensure(
            stored == StoredState::Held || children.wait != Wait::Now && !children.dies,
            "children hold a message that is not held",
        )?;
        ensure(
            children.wait != Wait::Now || children.dies || !children.have_ended(),
            "children hold a message though they have ended",
        )?;
    }
    if let Some(signal) = message.left().and_then(|left| left.signal()) {
        exact(signal.during)?;
        ensure(!stored.is_ended(), "a message that has ended has a signal")?;
    }
    if let Some(rerun) = message.rerun() {
        self::rerun(rerun)?;
        ensure(
            stored == StoredState::Running || stored.is_dead(),
            "what waits for the end of a run must be with a running message, or a dead one",
        )?;
    }
    let receipt = message.receipt();
    ensure(
        match (stored, term) {
            (StoredState::Running, Some(term)) => {
                (1..=last_receipt).contains(&receipt)
                    && (1..=receipt).contains(&term.batch)
                    && term.until <= MAX_EXACT
                    && message.history.attempt() > 0
            }
            (StoredState::Running, None) => false,
            (_, term) => receipt == 0 && term.is_none(),
        },
        "a message must have a valid lease if it is running, and otherwise none",
    )
}

/// Checks a message that waits for the end of a run.
fn rerun(rerun: &Rerun) -> Checked {
    exact(rerun.first_at)?;
    limits::choices(&rerun.choices)?;
    rerun.group.as_deref().map_or(Ok(()), name)?;
    content(Content {
        id: None,
        payload: Payload::Plain(&rerun.payload),
    })
}

fn position(at: SavedPosition, next_seq: Seq) -> Checked {
    exact(at.time)?;
    exact(at.rank)?;
    ensure(
        at.seq < next_seq,
        "a position in the ready line is of a message that was never sent",
    )
}

fn time_or_never(at: Option<Millis>) -> Checked {
    match at {
        None | Some(NEVER) => Ok(()),
        Some(at) => exact(at),
    }
}

fn counted(window: &RateWindow, rate: Option<Rate>, last: Millis) -> Checked {
    ensure(
        rate.is_some() || window.is_empty(),
        "deliveries are counted, but there is no RATE",
    )?;
    self::window(window, last)
}

/// Checks the times of the deliveries of a window. Their counts are bounded where they are read.
pub fn window(window: &RateWindow, last: Millis) -> Checked {
    let mut before = None;
    for (at, _) in window.given() {
        ensure(
            before < Some(at) && at <= last,
            "the deliveries that RATE counts must be in order, and none in the future",
        )?;
        before = Some(at);
    }
    Ok(())
}
