//! The seeded bugs of clocks, of workers, of the rules of a queue and of searches.

use super::edits::*;
use super::{begins, does, logs, logs_before, searches, Bug};
use dq_queue::op::{NackKind, Paused, Sent};
use dq_queue::{Done, Op};

/// The bugs, verb by verb.
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
    logs("the log lacks the end of a connection", |op| {
        if matches!(op, Op::EndLeases { .. }) {
            *op = Op::Tick;
        }
    }),
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
        "a breaker counts failures of a tenth of the window",
        "a breaker is closed after",
        |op| {
            change_breaker(op, |breaker| breaker.per = breaker.per.div_ceil(10));
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
