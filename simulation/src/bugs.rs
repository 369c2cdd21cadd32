//! Seeded bugs: each makes a primary, its log or its replies differ from what was asked for
//! in one verb or option. The simulation must find each of them, by the rule that is about
//! it (`tests/seeded_bugs.rs`). None of them is in the queue itself.

use dq_queue::message::after::OnFail;
use dq_queue::message::{Choices, RareChoices};
use dq_queue::op::{NackKind, Paused, Send, Sent};
use dq_queue::queue::inspect::find::Search;
use dq_queue::settings::Breaker;
use dq_queue::{Done, Op};

/// A bug, as the ways in which it changes what happens.
#[derive(Debug, Clone, Copy)]
pub struct Bug {
    /// What is wrong, in a few words.
    pub name: &'static str,
    /// Part of the sentence by which the rule says so that must find it.
    pub finds: &'static str,
    /// Changes the operation that the primary does.
    pub does: fn(&mut Op<'static>),
    /// An operation that the primary does first, unasked.
    pub first: fn(&Op<'static>) -> Option<Op<'static>>,
    /// Changes the reply, given what was asked for.
    pub replies: fn(&Op<'static>, &mut Done),
    /// Changes the operation that is logged.
    pub logs: fn(&mut Op<'static>),
    /// Changes what is searched for.
    pub searches: fn(&mut Search<'_>),
}

/// No bug.
const NONE: Bug = Bug {
    name: "none",
    finds: "",
    does: |_| {},
    first: |_| None,
    replies: |_, _| {},
    logs: |_| {},
    searches: |_| {},
};

/// A primary that does something else than it was asked for.
const fn does(name: &'static str, finds: &'static str, does: fn(&mut Op<'static>)) -> Bug {
    Bug {
        name,
        finds,
        does,
        ..NONE
    }
}

/// A log that lacks something of what the primary did.
const fn logs(name: &'static str, logs: fn(&mut Op<'static>)) -> Bug {
    Bug {
        name,
        finds: "the replica differs",
        logs,
        ..NONE
    }
}

/// A search that passes over a condition.
const fn searches(name: &'static str, searches: fn(&mut Search<'_>)) -> Bug {
    Bug {
        name,
        finds: "finds",
        searches,
        ..NONE
    }
}

/// All seeded bugs.
pub const BUGS: &[Bug] = &[
    // NACK
    does(
        "a snooze counts as a failure",
        "attempts and failures",
        snooze_fails,
    ),
    does("a snooze forgets its delay", "was nacked for", |op| {
        change_kind(op, |kind| match kind {
            NackKind::Snooze(_) => NackKind::Snooze(1),
            kind => kind,
        });
    }),
    does(
        "SILENT counts as a failure",
        "attempts and failures",
        |op| {
            change_kind(op, |kind| match kind {
                NackKind::Silent => NackKind::Delay(0),
                kind => kind,
            });
        },
    ),
    does("FATAL leaves retries", "was rejected and lives", |op| {
        change_kind(op, |kind| match kind {
            NackKind::Fatal => NackKind::Delay(0),
            kind => kind,
        });
    }),
    does("a nack does not pause", "was kept back", no_pause),
    Bug {
        first: |op| match op {
            Op::Nack {
                pause: Some(pause), ..
            } if pause.of == Paused::Queue => Some(Op::Pause {
                group: None,
                ms: Some(pause.ms),
            }),
            _ => None,
        },
        ..does(
            "a pause by a nack shortens another",
            "was kept back",
            no_pause,
        )
    },
    does("a nack leaves no note", "the note that was left", |op| {
        if let Op::Nack { note, .. } = op {
            *note = None;
        }
    }),
    logs("the log lacks the note of a nack", |op| {
        if let Op::Nack { note, .. } = op {
            *note = None;
        }
    }),
    logs("the log lacks the pause of a nack", no_pause),
    logs("the log has a snooze as a failure", snooze_fails),
    // TOUCH, GRACE, the end of a connection
    does(
        "TOUCH leaves no note",
        "the note that was left",
        no_touch_note,
    ),
    logs("the log lacks the note of a TOUCH", no_touch_note),
    does("GRACE is passed over", "is to end at", no_grace),
    does("GRACE extends leases", "is to end at", |op| {
        if let Op::Grace { ms, receipts } = op {
            *op = Op::Touch {
                ms: *ms,
                receipts: std::mem::take(receipts),
                note: None,
            };
        }
    }),
    logs("the log lacks GRACE", no_grace),
    does(
        "the end of a connection ends no lease",
        "has not been ended",
        |op| {
            if matches!(op, Op::EndLeases { .. }) {
                *op = Op::Tick;
            }
        },
    ),
    // ACK
    does("RESULTS are mixed up", "does not have its result", |op| {
        if let Some(results) = results_of(op) {
            results.reverse();
        }
    }),
    does("RESULTS are lost", "does not have its result", |op| {
        if let Some(results) = results_of(op) {
            results.clear();
        }
    }),
    logs("the log lacks RESULTS", |op| {
        if let Some(results) = results_of(op) {
            results.clear();
        }
    }),
    // ACKSEND
    Bug {
        replies: |op, done| {
            if let (Op::AckSend(_), Done::AckSent(Some(sent))) = (op, done) {
                sent.push(Sent::Taken);
            }
        },
        ..does(
            "ACKSEND leaves out its last message",
            "not sent for its id",
            |op| {
                if let Op::AckSend(ack_send) = op {
                    ack_send.sends.pop();
                }
            },
        )
    },
    does(
        "ACKSEND sends without an ack",
        "has not acked as many",
        |op| {
            if let Op::AckSend(ack_send) = op {
                ack_send.receipt = None;
            }
        },
    ),
    does(
        "ACKSEND of a stale receipt sends",
        "its receipt is stale",
        |op| {
            if let Op::AckSend(ack_send) = op {
                ack_send.receipt = None;
            }
        },
    ),
    does(
        "ACKSEND loses its result",
        "does not have its result",
        |op| {
            if let Op::AckSend(ack_send) = op {
                ack_send.result = None;
            }
        },
    ),
    logs("the log lacks the last message of ACKSEND", |op| {
        if let Op::AckSend(ack_send) = op {
            ack_send.sends.pop();
        }
    }),
    // TOKEN
    does("TOKEN is passed over", "were repeated, not", |op| {
        if let Op::Fetch(fetch) = op {
            fetch.to_mut().token = None;
        }
    }),
    does("any TOKEN repeats", "were repeated, not", |op| {
        if let Op::Fetch(fetch) = op {
            if let Some(token) = &mut fetch.to_mut().token {
                *token = b"same".as_slice().into();
            }
        }
    }),
    logs("the log lacks TOKEN", |op| {
        if let Op::Fetch(fetch) = op {
            fetch.to_mut().token = None;
        }
    }),
    // BREAKER
    does("a breaker never opens", "a breaker is closed after", |op| {
        if let Op::Alter(changes) = op {
            changes.breaker = changes.breaker.map(|_| None);
        }
    }),
    does(
        "a breaker opens one failure late",
        "a breaker is closed after",
        |op| {
            change_breaker(op, |breaker| breaker.failures += 1);
        },
    ),
    does(
        "a breaker opens one failure early",
        "by too few failures",
        |op| {
            change_breaker(op, |breaker| {
                breaker.failures = (breaker.failures - 1).max(1)
            });
        },
    ),
    does(
        "a breaker counts failures of half the window",
        "a breaker is closed after",
        |op| {
            change_breaker(op, |breaker| breaker.per = breaker.per.div_ceil(2));
        },
    ),
    does(
        "a breaker closes in half the time",
        "a breaker is open from",
        |op| {
            change_breaker(op, |breaker| breaker.open = breaker.open.div_ceil(2));
        },
    ),
    does(
        "a breaker opens for no longer the second time",
        "a breaker is open from",
        |op| {
            change_breaker(op, |breaker| breaker.max = breaker.open);
        },
    ),
    Bug {
        first: close_breaker,
        ..does(
            "an open breaker delivers",
            "delivered by an open breaker",
            |_| {},
        )
    },
    Bug {
        first: close_breaker,
        ..does(
            "a half-open breaker has two probes",
            "let out beside a probe",
            |_| {},
        )
    },
    logs("the log lacks BREAKER", |op| {
        if let Op::Alter(changes) = op {
            changes.breaker = None;
        }
    }),
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
    // FIND
    does("FIND leaves out its last message", "has left", |op| {
        if let Op::FindDo { seqs, .. } = op {
            seqs.pop();
        }
    }),
    logs("the log lacks the last message of FIND", |op| {
        if let Op::FindDo { seqs, .. } = op {
            seqs.pop();
        }
    }),
    searches("FIND passes over ID", |search| search.id = None),
    searches("FIND passes over TYPE", |search| search.label = None),
    searches("FIND passes over GROUP", |search| search.group = None),
    searches("FIND passes over BATCH", |search| search.batch = None),
    searches("FIND passes over HEADER", |search| search.header = None),
    searches("FIND passes over ERROR", |search| search.error = None),
    searches("FIND passes over PAYLOAD", |search| search.payload = None),
    searches("FIND passes over SINCE", |search| search.since = None),
    searches("FIND passes over UNTIL", |search| search.until = None),
    searches("FIND includes UNTIL", |search| {
        search.until = search.until.map(|until| until + 1)
    }),
    searches("FIND passes over REV", |search| search.reverse = false),
];

fn change_kind(op: &mut Op<'static>, change: fn(NackKind) -> NackKind) {
    if let Op::Nack { kind, .. } = op {
        *kind = change(*kind);
    }
}

fn snooze_fails(op: &mut Op<'static>) {
    change_kind(op, |kind| match kind {
        NackKind::Snooze(ms) => NackKind::Delay(ms),
        kind => kind,
    });
}

fn no_pause(op: &mut Op<'static>) {
    if let Op::Nack { pause, .. } = op {
        *pause = None;
    }
}

fn no_touch_note(op: &mut Op<'static>) {
    if let Op::Touch { note, .. } = op {
        *note = None;
    }
}

fn no_grace(op: &mut Op<'static>) {
    if matches!(op, Op::Grace { .. }) {
        *op = Op::Tick;
    }
}

fn results_of<'o>(op: &'o mut Op<'static>) -> Option<&'o mut Vec<std::borrow::Cow<'static, [u8]>>> {
    match op {
        Op::Fetch(fetch) => Some(&mut fetch.to_mut().results),
        Op::AckEach { results, .. } => Some(results),
        _ => None,
    }
}

fn change_breaker(op: &mut Op<'static>, change: fn(&mut Breaker)) {
    if let Op::Alter(changes) = op {
        if let Some(Some(breaker)) = &mut changes.breaker {
            change(breaker);
        }
    }
}

/// Closes the breaker of the group that a FETCH names.
fn close_breaker(op: &Op<'static>) -> Option<Op<'static>> {
    match op {
        Op::Fetch(fetch) => fetch.group.as_ref().map(|group| Op::Resume {
            group: Some(group.clone()),
        }),
        _ => None,
    }
}

fn sends_of<'o>(op: &'o mut Op<'static>) -> &'o mut [Send<'static>] {
    match op {
        Op::Send(send) => std::slice::from_mut(send),
        Op::AckSend(ack_send) => &mut ack_send.sends,
        _ => &mut [],
    }
}

fn choices(op: &mut Op<'static>, change: impl Fn(&mut Choices)) {
    sends_of(op)
        .iter_mut()
        .for_each(|send| change(&mut send.choices));
}

fn rare(op: &mut Op<'static>, change: fn(&mut RareChoices)) {
    choices(op, |choices| choices.change_rare(change));
}

fn no_retain(op: &mut Op<'static>) {
    rare(op, |rare| rare.retain = None);
}

fn no_expire_at(op: &mut Op<'static>) {
    rare(op, |rare| rare.expire_at = None);
}

fn no_max_wait(op: &mut Op<'static>) {
    rare(op, |rare| rare.max_wait = None);
}

fn no_if_group(op: &mut Op<'static>) {
    sends_of(op)
        .iter_mut()
        .for_each(|send| send.if_group = false);
}

fn no_batch(op: &mut Op<'static>) {
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

fn no_after(op: &mut Op<'static>) {
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

fn on_fail(op: &mut Op<'static>, from: OnFail, to: OnFail) {
    choices(op, |choices| {
        if let Some(after) = choices.after_mut().filter(|after| after.on_fail == from) {
            after.on_fail = to;
        }
    });
}

fn has_after(send: &Send<'static>) -> bool {
    let batching = send.choices.batching();
    batching.is_some_and(|batching| batching.after.is_some())
}
