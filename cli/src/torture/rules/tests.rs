use super::*;
use crate::torture::history::{End, Send, Window};

/// Two messages of a group and one of none, each sent, delivered and acked; the last one fails once before.
fn good() -> History {
    let mut history = History::default();
    for (n, (id, group)) in [("p-1", Some("g")), ("p-2", Some("g")), ("p-3", None)]
        .into_iter()
        .enumerate()
    {
        let at = n as Ms * 10.0;
        history.sends.push(Send {
            id: id.to_owned(),
            group: group.map(str::to_owned),
            number: n as u64 + 1,
            delay: 0.0,
            begin: at,
            end: at + 1.0,
            answer: Answer::Done,
            tries: 1,
            sure: false,
        });
        history.ends.insert(id.to_owned(), end("finished", 0));
    }
    history.deliveries = vec![
        delivery("p-1", Some("g"), 1, 1),
        delivery("p-2", Some("g"), 2, 1),
        delivery("p-3", None, 3, 1),
        delivery("p-3", None, 4, 2),
    ];
    history.verdicts = vec![
        verdict(Kind::Ack, "p-1", 1),
        verdict(Kind::Ack, "p-2", 2),
        verdict(Kind::Nack, "p-3", 3),
        verdict(Kind::Ack, "p-3", 4),
    ];
    history
}

fn end(state: &str, failures: u64) -> End {
    End {
        state: state.to_owned(),
        failures,
        reason: "retries".to_owned(),
    }
}

/// The delivery of this receipt: asked at 100 ms for each receipt.
fn delivery(id: &str, group: Option<&str>, receipt: i64, attempt: i64) -> Delivery {
    let begin = receipt as Ms * 100.0;
    Delivery {
        id: id.to_owned(),
        group: group.map(str::to_owned),
        receipt,
        attempt,
        begin,
        end: begin + 1.0,
        lease: 1000.0,
        at: receipt * 100,
        due: 0,
        intact: true,
        sure: false,
    }
}

/// The verdict on this receipt, 50 ms after its delivery.
fn verdict(kind: Kind, id: &str, receipt: i64) -> Verdict {
    let begin = receipt as Ms * 100.0 + 50.0;
    Verdict {
        kind,
        id: id.to_owned(),
        receipt,
        begin,
        end: begin + 1.0,
        count: Some(1),
        sure: false,
    }
}

/// A failure at 5,000 ms, which may undo everything since `from`.
fn window(from: Ms) -> Window {
    Window {
        from,
        at: 5000.0,
        to: 5100.0,
    }
}

fn broken(edit: impl Fn(&mut History)) -> Vec<&'static str> {
    let mut history = good();
    edit(&mut history);
    let mut rules: Vec<_> = check(&history).into_iter().map(|v| v.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn a_good_history_breaks_no_rule() {
    assert_eq!(check(&good()), []);
}

#[test]
fn each_rule_finds_what_it_is_for() {
    type Edit = fn(&mut History);
    let cases: [(&str, Edit); 15] = [
        ("nothing_lost", |h| {
            h.sends[1].id = "p-9".to_owned();
            h.ends.insert("p-2".to_owned(), end("finished", 0));
        }),
        ("nothing_lost", |h| {
            h.ends.get_mut("p-2").unwrap().state = "ready".to_owned()
        }),
        ("nothing_lost", |h| h.verdicts[1].kind = Kind::Nack),
        ("nothing_lost", |h| h.deliveries[1].intact = false),
        ("refused_is_nothing", |h| {
            h.sends[2].answer = Answer::Refused
        }),
        ("no_hole", |h| {
            h.windows.push(window(0.0));
            h.ends.remove("p-1");
        }),
        ("not_early", |h| h.sends[2].delay = 800.0),
        ("not_early", |h| h.deliveries[2].due = 301),
        ("one_holder", |h| {
            h.verdicts[2].count = None;
            h.verdicts[2].begin = 500.0;
        }),
        ("one_holder", |h| h.verdicts[0].begin = 250.0),
        ("one_holder", |h| h.verdicts[2].begin = 450.0),
        ("group_order", |h| {
            (h.deliveries[0].id, h.deliveries[1].id) = ("p-2".to_owned(), "p-1".to_owned());
        }),
        ("ack_is_final", |h| h.verdicts[2].kind = Kind::Ack),
        ("attempts_exact", |h| h.deliveries[3].attempt = 3),
        ("attempts_exact", |h| {
            h.ends.insert("p-3".to_owned(), end("dead", 2));
        }),
    ];
    for (number, (rule, edit)) in cases.into_iter().enumerate() {
        let found = broken(edit);
        assert!(
            found.contains(&rule),
            "case {number}: {rule} is not in {found:?}"
        );
    }
    assert_eq!(
        broken(|h| h.differences.push("p-1 is gone".to_owned())),
        ["same_state"]
    );
}

#[test]
fn a_failure_may_undo_what_no_replica_has() {
    let undo = |h: &mut History| {
        h.windows.push(window(15.0));
        h.ends.remove("p-3");
        h.deliveries.truncate(2);
        h.verdicts.truncate(2);
    };
    assert_eq!(broken(undo), [] as [&str; 0]);
    let sure = broken(|h| {
        undo(h);
        h.sends[2].sure = true;
    });
    assert_eq!(sure, ["nothing_lost"]);
    let early = broken(|h| {
        undo(h);
        h.windows[0].from = 30.0;
    });
    assert_eq!(early, ["nothing_lost"]);
}

#[test]
fn a_lost_answer_of_a_fetch_may_cost_an_attempt() {
    let late = |h: &mut History| h.deliveries[0].attempt = 2;
    assert_eq!(broken(late), ["attempts_exact"]);
    let slow = broken(|h| {
        late(h);
        h.slow.push((0.0, 90.0));
    });
    assert_eq!(slow, [] as [&str; 0]);
}
