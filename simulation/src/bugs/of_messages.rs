//! The seeded bugs of the options of messages.

use super::edits::*;
use super::{does, logs, Bug, NONE};
use dq_queue::message::after::OnFail;
use dq_queue::op::{NackKind, Sent};
use dq_queue::{Done, Op};

/// The bugs, option by option.
pub const BUGS: &[Bug] = &[
    Bug {
        name: "the log lacks effects of an acknowledgement",
        finds: "the plain keys differ",
        forgets_effects: true,
        ..NONE
    },
    // RETAIN
    does("RETAIN is passed over", "despite its RETAIN", no_retain),
    does("RETAIN is too long", "is there after", |op| {
        rare(op, |rare| {
            rare.retain = rare.retain.map(|ms| if ms == 0 { 0 } else { ms + 500 })
        });
    }),
    does("RETAIN is too short", "is gone before", |op| {
        rare(op, |rare| {
            rare.retain = rare.retain.map(|ms| ms.div_ceil(2))
        });
    }),
    logs("the log lacks RETAIN", no_retain),
    // EXPIREAT
    does(
        "EXPIREAT is passed over",
        "has not expired at",
        no_expire_at,
    ),
    does("EXPIREAT is late", "has not expired at", |op| {
        rare(op, |rare| rare.expire_at = rare.expire_at.map(|at| at + 20));
    }),
    does("EXPIREAT is early", ", before ", |op| {
        rare(op, |rare| rare.expire_at = rare.expire_at.map(|at| at - 20));
    }),
    logs("the log lacks EXPIREAT", no_expire_at),
    // MAXWAIT
    does("MAXWAIT is passed over", "ends a row", no_max_wait),
    does("MAXWAIT counts twice", "ends a row", |op| {
        rare(op, |rare| rare.max_wait = rare.max_wait.map(|ms| 2 * ms));
    }),
    logs("the log lacks MAXWAIT", no_max_wait),
    // MAXTIMEOUTS
    does("MAXTIMEOUTS is passed over", "lives after", no_max_timeouts),
    does("MAXTIMEOUTS is one too few", "died of", |op| {
        rare(op, |rare| {
            rare.max_timeouts = rare
                .max_timeouts
                .map(|most| if most > 1 { most - 1 } else { most });
        });
    }),
    logs("the log lacks MAXTIMEOUTS", no_max_timeouts),
    // ERRORS
    does("ERRORS is passed over", "failed attempts", no_errors),
    does("ERRORS is one too many", "failed attempts", |op| {
        rare(op, |rare| rare.errors = rare.errors.map(|most| most + 1));
    }),
    logs("the log lacks ERRORS", no_errors),
    // PARK, SIGNAL
    does("PARK is passed over", "was to be parked until", no_park),
    does(
        "PARK of a SEND is passed over",
        "was to be parked until",
        no_park_of_send,
    ),
    does("PARK forgets its FOR", "was to be parked until", |op| {
        change_kind(op, |kind| match kind {
            NackKind::Park(_) => NackKind::Park(Default::default()),
            kind => kind,
        });
    }),
    does(
        "a signal is passed over",
        "does not have its signal",
        no_signal,
    ),
    logs("the log lacks the PARK of a nack", no_park),
    logs("the log lacks the PARK of a SEND", no_park_of_send),
    logs("the log lacks a signal", no_signal),
    // CHILDREN, PARENT
    does("CHILDREN is passed over", "its children", no_children),
    does(
        "the end of a child is passed over",
        "what it was told",
        no_count,
    ),
    does(
        "a parent waits for one child too few",
        "its children",
        |op| {
            rare(op, |rare| {
                if let Some(children) = rare.kin.as_mut().and_then(|kin| kin.children.as_mut()) {
                    children.total = children.total.saturating_sub(1).max(1);
                }
            });
        },
    ),
    logs("the log lacks CHILDREN", no_children),
    logs("the log lacks PARENT", no_parent),
    logs("the log lacks what a parent has counted", no_count),
    // RERUN
    does(
        "RERUN is passed over",
        "does not wait for the end of a run",
        no_rerun,
    ),
    does(
        "a run is followed by another payload",
        "does not wait for the end of a run",
        |op| match op {
            Op::Send(send) if send.rerun => {
                send.payloads = smallvec::smallvec![b"another" as &[u8]]
            }
            _ => {}
        },
    ),
    logs("the log lacks RERUN", no_rerun),
    // IFGROUP
    does("IFGROUP is passed over", "to an empty group", no_if_group),
    Bug {
        replies: |op, done| match op {
            Op::Send(send) if send.if_group => {
                *done = Done::Sent([Sent::NoGroup].into_iter().collect())
            }
            _ => {}
        },
        ..does("IFGROUP never holds", "has not found its group", |op| {
            if matches!(op, Op::Send(send) if send.if_group) {
                *op = Op::Tick;
            }
        })
    },
    // BATCH, AFTER, ONFAIL
    does("BATCH is passed over", "is not in its batch", no_batch),
    does(
        "AFTER is passed over",
        "does not wait for its batch",
        no_after,
    ),
    does("HOLD is GO", "a batch", |op| {
        on_fail(op, OnFail::Hold, OnFail::Go)
    }),
    does("GO is HOLD", "a batch", |op| {
        on_fail(op, OnFail::Go, OnFail::Hold)
    }),
    does("DIE is HOLD", "a batch", |op| {
        on_fail(op, OnFail::Die, OnFail::Hold)
    }),
    does("HOLD is DIE", "of its batch", |op| {
        on_fail(op, OnFail::Hold, OnFail::Die)
    }),
    Bug {
        first: |op| match op {
            Op::Send(send) if has_after(send) => Some(Op::Send(send.clone())),
            _ => None,
        },
        ..does(
            "what is held is released twice",
            "messages were sent",
            |_| {},
        )
    },
    logs("the log lacks BATCH", no_batch),
    logs("the log lacks AFTER", no_after),
    logs("the log lacks ONFAIL", |op| {
        on_fail(op, OnFail::Die, OnFail::Hold)
    }),
];
