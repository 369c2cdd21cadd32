//! The seeded bugs, verb by verb.

use super::edits::*;
use super::{begins, does, logs, logs_before, searches, Bug};
use dq_queue::message::after::OnFail;
use dq_queue::op::{NackKind, Paused, Sent};
use dq_queue::{Done, Op};

/// All seeded bugs.
pub const BUGS: &[Bug] = &[
    // Clocks and standstills
    begins("spans lose time with the lead", "ms left, has", |before| {
        before.cut = before.cut.saturating_sub(7);
    }),
    begins("the lead of a clock is kept", "ms left, has", |before| {
        before.cut = 0;
    }),
    begins("no lease is spared", "until", |before| before.spare = 0),
    begins(
        "leases are spared for too short a time",
        "until",
        |before| {
            before.spare = before.spare.saturating_sub(5);
        },
    ),
    logs_before("the log lacks the cut of a lead", |before| before.cut = 0),
    logs_before("the log lacks that leases were spared", |before| {
        before.spare = 0;
    }),
    logs_before("the log lets schedules fire that wait", |before| {
        before.without_fires = false;
    }),
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
        if let Op::Grace { ms, receipts, .. } = op {
            *op = Op::Touch {
                ms: *ms,
                receipts: std::mem::take(receipts),
                note: None,
            };
        }
    }),
    logs("the log lacks GRACE", no_grace),
    logs("the log lacks the backoff of a closed connection", |op| {
        if let Op::EndLeases { backs_off, .. } | Op::Grace { backs_off, .. } = op {
            *backs_off = false;
        }
    }),
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
    // SENDS
    does("SENDS is passed over", "to a closed queue", no_sends),
    does(
        "schedules fire in a closed queue",
        "fired in a closed queue",
        no_sends,
    ),
    logs("the log lacks SENDS", no_sends),
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
    searches("FIND passes over PARENT", |search| search.parent = None),
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
