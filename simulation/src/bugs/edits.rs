//! The changes of operations by the seeded bugs.

use dq_queue::message::after::OnFail;
use dq_queue::message::{Choices, RareChoices};
use dq_queue::op::{NackKind, Send};
use dq_queue::settings::Breaker;
use dq_queue::Op;

pub(super) fn change_kind(op: &mut Op<'static>, change: fn(NackKind) -> NackKind) {
    if let Op::Nack { kind, .. } = op {
        *kind = change(*kind);
    }
}

pub(super) fn snooze_fails(op: &mut Op<'static>) {
    change_kind(op, |kind| match kind {
        NackKind::Snooze(ms) => NackKind::Delay(ms),
        kind => kind,
    });
}

pub(super) fn no_pause(op: &mut Op<'static>) {
    if let Op::Nack { pause, .. } = op {
        *pause = None;
    }
}

pub(super) fn no_touch_note(op: &mut Op<'static>) {
    if let Op::Touch { note, .. } = op {
        *note = None;
    }
}

pub(super) fn no_grace(op: &mut Op<'static>) {
    if matches!(op, Op::Grace { .. }) {
        *op = Op::Tick;
    }
}

pub(super) fn results_of<'o>(
    op: &'o mut Op<'static>,
) -> Option<&'o mut Vec<std::borrow::Cow<'static, [u8]>>> {
    match op {
        Op::Fetch(fetch) => Some(&mut fetch.to_mut().results),
        Op::AckEach { results, .. } => Some(results),
        _ => None,
    }
}

pub(super) fn change_breaker(op: &mut Op<'static>, change: fn(&mut Breaker)) {
    if let Op::Alter(changes) = op {
        if let Some(Some(breaker)) = &mut changes.breaker {
            change(breaker);
        }
    }
}

pub(super) fn no_sends(op: &mut Op<'static>) {
    if let Op::Alter(changes) = op {
        changes.closed = None;
    }
}

/// Closes the breaker of the group that a FETCH names.
pub(super) fn close_breaker(op: &Op<'static>) -> Option<Op<'static>> {
    match op {
        Op::Fetch(fetch) => fetch.group.as_ref().map(|group| Op::Resume {
            group: Some(group.clone()),
        }),
        _ => None,
    }
}

pub(super) fn sends_of<'o>(op: &'o mut Op<'static>) -> &'o mut [Send<'static>] {
    match op {
        Op::Send(send) => std::slice::from_mut(send),
        Op::AckSend(ack_send) => &mut ack_send.sends,
        _ => &mut [],
    }
}

pub(super) fn choices(op: &mut Op<'static>, change: impl Fn(&mut Choices)) {
    sends_of(op)
        .iter_mut()
        .for_each(|send| change(&mut send.choices));
}

pub(super) fn rare(op: &mut Op<'static>, change: fn(&mut RareChoices)) {
    choices(op, |choices| choices.change_rare(change));
}

pub(super) fn no_retain(op: &mut Op<'static>) {
    rare(op, |rare| rare.retain = None);
}

pub(super) fn no_expire_at(op: &mut Op<'static>) {
    rare(op, |rare| rare.expire_at = None);
}

pub(super) fn no_max_wait(op: &mut Op<'static>) {
    rare(op, |rare| rare.max_wait = None);
}

pub(super) fn no_max_timeouts(op: &mut Op<'static>) {
    rare(op, |rare| rare.max_timeouts = None);
}

pub(super) fn no_errors(op: &mut Op<'static>) {
    rare(op, |rare| rare.errors = None);
}

pub(super) fn no_if_group(op: &mut Op<'static>) {
    sends_of(op)
        .iter_mut()
        .for_each(|send| send.if_group = false);
}

pub(super) fn no_batch(op: &mut Op<'static>) {
    rare(op, |rare| {
        let batching = rare
            .batching
            .take()
            .filter(|batching| batching.after.is_some());
        rare.batching = batching.map(|mut batching| {
            batching.batch = None;
            batching
        });
    });
}

pub(super) fn no_after(op: &mut Op<'static>) {
    rare(op, |rare| {
        let batching = rare
            .batching
            .take()
            .filter(|batching| batching.batch.is_some());
        rare.batching = batching.map(|mut batching| {
            batching.after = None;
            batching
        });
    });
}

pub(super) fn on_fail(op: &mut Op<'static>, from: OnFail, to: OnFail) {
    choices(op, |choices| {
        if let Some(after) = choices.after_mut().filter(|after| after.on_fail == from) {
            after.on_fail = to;
        }
    });
}

pub(super) fn has_after(send: &Send<'static>) -> bool {
    let batching = send.choices.batching();
    batching.is_some_and(|batching| batching.after.is_some())
}

pub(super) fn no_rerun(op: &mut Op<'static>) {
    if let Op::Send(send) = op {
        send.rerun = false;
    }
}

pub(super) fn no_children(op: &mut Op<'static>) {
    rare(op, |rare| {
        if let Some(kin) = &mut rare.kin {
            kin.children = None;
        }
    });
}

pub(super) fn no_parent(op: &mut Op<'static>) {
    rare(op, |rare| {
        if let Some(kin) = &mut rare.kin {
            kin.parent = None;
        }
    });
}

pub(super) fn no_count(op: &mut Op<'static>) {
    if let Op::Children(counted) = op {
        counted.of.clear();
    }
}

pub(super) fn no_park(op: &mut Op<'static>) {
    change_kind(op, |kind| match kind {
        NackKind::Park(_) => NackKind::Silent,
        kind => kind,
    });
}

pub(super) fn no_park_of_send(op: &mut Op<'static>) {
    rare(op, |rare| {
        if let Some(batching) = &mut rare.batching {
            batching.park = None;
        }
        rare.batching = rare.batching.take().filter(|b| b.is_of_batches());
    });
}

pub(super) fn no_signal(op: &mut Op<'static>) {
    if matches!(op, Op::Signal { .. }) {
        *op = Op::Tick;
    }
}
