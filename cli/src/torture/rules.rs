//! The promises, as rules over a history. Where the order of two moments is in doubt, the harmless order is assumed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::actors::RETRIES;
use super::history::{Answer, Delivery, History, Kind, Ms, Verdict};

/// How far the clock of the queue and that of this program may drift apart in a round.
const DRIFT: Ms = 20.0;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The name of the rule.
    pub rule: &'static str,
    /// The history so far.
    pub words: String,
    /// The messages that it is about.
    pub ids: Vec<String>,
}

/// Returns every broken promise.
pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let view = View::of(history);
    let rules: [(&'static str, Rule); 9] = [
        ("nothing_lost", nothing_lost),
        ("refused_is_nothing", refused_is_nothing),
        ("no_hole", no_hole),
        ("not_early", not_early),
        ("one_holder", one_holder),
        ("group_order", group_order),
        ("ack_is_final", ack_is_final),
        ("attempts_exact", attempts_exact),
        ("same_state", same_state),
    ];
    for (name, rule) in rules {
        rule(&view, &mut |words, ids| {
            found.push(Violation {
                rule: name,
                words,
                ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            });
        });
    }
    found
}

type Rule = fn(&View, &mut dyn FnMut(String, &[&str]));

/// A history with its indexes.
struct View<'a> {
    h: &'a History,
    by_id: BTreeMap<&'a str, Vec<&'a Delivery>>,
    by_group: BTreeMap<&'a str, Vec<&'a Delivery>>,
    verdicts: HashMap<i64, Vec<&'a Verdict>>,
}

impl<'a> View<'a> {
    fn of(h: &'a History) -> View<'a> {
        let mut deliveries: Vec<&Delivery> = h.deliveries.iter().collect();
        deliveries.sort_by_key(|d| d.receipt);
        let mut by_id = BTreeMap::<&str, Vec<&Delivery>>::new();
        let mut by_group = BTreeMap::<&str, Vec<&Delivery>>::new();
        for d in deliveries {
            by_id.entry(&d.id).or_default().push(d);
            if let Some(group) = &d.group {
                by_group.entry(group).or_default().push(d);
            }
        }
        View {
            h,
            by_id,
            by_group,
            verdicts: h.by_receipt(),
        }
    }

    fn undone(&self, d: &Delivery) -> bool {
        self.h.undone(d.begin, d.end, d.sure)
    }

    fn verdicts(&self, d: &Delivery) -> &[&Verdict] {
        self.verdicts.get(&d.receipt).map_or(&[], Vec::as_slice)
    }

    /// Until when the message was surely leased: until its lease ends at the earliest, or somebody settles it.
    fn held_until(&self, d: &Delivery) -> Ms {
        let settled = self.verdicts(d).iter().map(|v| v.begin);
        settled.fold(d.begin + d.lease - DRIFT, Ms::min)
    }

    /// Whether a verdict surely had its effect, for good.
    fn holds(&self, v: &Verdict) -> bool {
        v.count == Some(1) && !self.h.undone(v.begin, v.end, v.sure)
    }
}

fn nothing_lost(view: &View, found: &mut dyn FnMut(String, &[&str])) {
    for s in &view.h.sends {
        if s.answer == Answer::Done
            && !view.h.undone(s.begin, s.end, s.sure)
            && !view.h.ends.contains_key(&s.id)
        {
            found(format!("{} was confirmed and is gone", s.id), &[&s.id]);
        }
    }
    let asked = |id: &str| {
        view.h
            .verdicts
            .iter()
            .any(|v| v.id == id && v.kind == Kind::Ack)
    };
    let sent: HashSet<&str> = view.h.sends.iter().map(|s| s.id.as_str()).collect();
    for (id, end) in &view.h.ends {
        match end.state.as_str() {
            "finished" if !asked(id) => {
                found(
                    format!("{id} is finished though nobody has acked it"),
                    &[id],
                );
            }
            "finished" | "dead" => {}
            state => found(
                format!("{id} is still {state} though everything was done for it"),
                &[id],
            ),
        }
        if !sent.contains(id.as_str()) {
            found(format!("{id} was never sent"), &[id]);
        }
    }
    for d in view.h.deliveries.iter().filter(|d| !d.intact) {
        found(format!("{} came with another payload", d.id), &[&d.id]);
    }
}

fn refused_is_nothing(view: &View, found: &mut dyn FnMut(String, &[&str])) {
    for s in view.h.sends.iter().filter(|s| s.answer == Answer::Refused) {
        if view.h.ends.contains_key(&s.id) || view.by_id.contains_key(s.id.as_str()) {
            found(format!("{} was refused, and is there", s.id), &[&s.id]);
        }
    }
}

/// A failure takes the last calls, and never one before a call that stayed.
fn no_hole(view: &View, found: &mut dyn FnMut(String, &[&str])) {
    for w in &view.h.windows {
        let caught =
            view.h.sends.iter().filter(|s| {
                s.answer == Answer::Done && s.tries == 1 && s.end > w.from && s.end < w.at
            });
        let (stayed, lost): (Vec<_>, Vec<_>) =
            caught.partition(|s| view.h.ends.contains_key(&s.id));
        let Some(first) = lost.iter().min_by(|a, b| a.end.total_cmp(&b.end)) else {
            continue;
        };
        if let Some(later) = stayed.iter().find(|s| s.begin > first.end) {
            let words = format!(
                "{} was undone, and {}, which came later, was not",
                first.id, later.id
            );
            found(words, &[&first.id, &later.id]);
        }
    }
}

fn not_early(view: &View, found: &mut dyn FnMut(String, &[&str])) {
    let sends: HashMap<&str, Ms> = view
        .h
        .sends
        .iter()
        .map(|s| (s.id.as_str(), s.begin + s.delay))
        .collect();
    for d in &view.h.deliveries {
        let early = sends
            .get(d.id.as_str())
            .map_or(0.0, |due| due - DRIFT - d.end);
        if early > 0.0 || d.at < d.due {
            found(
                format!("{} was delivered before its due time", d.id),
                &[&d.id],
            );
        }
    }
}

fn one_holder(view: &View, found: &mut dyn FnMut(String, &[&str])) {
    for deliveries in view.by_id.values().chain(view.by_group.values()) {
        for pair in deliveries.windows(2) {
            let [a, b] = pair else { continue };
            if a.receipt == b.receipt && a.begin != b.begin {
                found(
                    format!("receipt {} was used twice", a.receipt),
                    &[&a.id, &b.id],
                );
            }
            if !view.undone(a) && b.end < view.held_until(a) {
                let words = format!("{} was given out while {} was leased", b.id, a.id);
                found(words, &[&a.id, &b.id]);
            }
        }
    }
    for v in view.h.verdicts.iter().filter(|v| v.count == Some(1)) {
        let later = view.by_id.get(v.id.as_str()).into_iter().flatten();
        for d in later.filter(|d| d.receipt > v.receipt && d.end < v.begin && !view.undone(d)) {
            let words = format!(
                "a stale receipt of {} worked after the delivery {}",
                v.id, d.receipt
            );
            found(words, &[&v.id]);
        }
    }
}

/// The producer of a group sends its messages one after the other, so they come in the order of their numbers, and a
/// failed one keeps its place.
fn group_order(view: &View, found: &mut dyn FnMut(String, &[&str])) {
    let numbers: HashMap<&str, u64> = view
        .h
        .sends
        .iter()
        .map(|s| (s.id.as_str(), s.number))
        .collect();
    for (group, deliveries) in &view.by_group {
        let mut last: Option<(&str, u64)> = None;
        for d in deliveries {
            let Some(number) = numbers.get(d.id.as_str()).copied() else {
                continue;
            };
            if let Some((id, _)) = last.filter(|(_, latest)| number < *latest) {
                let words = format!("{} of {group} came after {id}, which was sent later", d.id);
                found(words, &[&d.id, id]);
            }
            // A delivery that a failure has undone may come again later.
            if !view.undone(d) && last.is_none_or(|(_, latest)| number > latest) {
                last = Some((&d.id, number));
            }
        }
    }
}

fn ack_is_final(view: &View, found: &mut dyn FnMut(String, &[&str])) {
    let acks = view
        .h
        .verdicts
        .iter()
        .filter(|v| v.kind == Kind::Ack && view.holds(v));
    for v in acks {
        let again = view.by_id.get(v.id.as_str()).and_then(|all| all.last());
        if again.is_some_and(|d| d.receipt > v.receipt) {
            found(
                format!("{} was delivered again after its ack", v.id),
                &[&v.id],
            );
        }
        if view
            .h
            .ends
            .get(&v.id)
            .is_none_or(|end| end.state != "finished")
        {
            found(format!("{} was acked and is not finished", v.id), &[&v.id]);
        }
    }
}

fn attempts_exact(view: &View, found: &mut dyn FnMut(String, &[&str])) {
    for (id, deliveries) in &view.by_id {
        let mut last: Option<&Delivery> = None;
        for d in deliveries {
            let mut expected = match last {
                None => BTreeSet::from([1]),
                Some(last) => next_attempts(view, last),
            };
            // A FETCH whose answer was lost for longer than its lease has cost an attempt.
            let since = last.map_or(Ms::NEG_INFINITY, |last| last.begin);
            let slow = view
                .h
                .slow
                .iter()
                .filter(|(from, to)| *from < d.end && *to > since);
            let most = expected.last().copied().unwrap_or(1);
            expected.extend((most..).take(1 + slow.count()));
            if !expected.contains(&d.attempt) {
                let words = format!("{id} came as attempt {}, expected {expected:?}", d.attempt);
                found(words, &[id]);
            }
            last = Some(d);
        }
    }
    for (id, end) in view.h.ends.iter().filter(|(_, end)| end.state == "dead") {
        if end.failures != RETRIES + 1 || end.reason != "retries" {
            let words = format!(
                "{id} is dead after {} failures, reason {}",
                end.failures, end.reason
            );
            found(words, &[id]);
        }
    }
}

/// Returns what the attempt after this delivery may be.
fn next_attempts(view: &View, d: &Delivery) -> BTreeSet<i64> {
    let undone = view.undone(d);
    let unsure = view
        .verdicts(d)
        .iter()
        .any(|v| !view.holds(v) && v.count != Some(0));
    match undone || unsure {
        // The failure goes back to any earlier count.
        true => (1..=d.attempt + 1).collect(),
        // It was nacked, or its lease ran out.
        false => BTreeSet::from([d.attempt + 1]),
    }
}

fn same_state(view: &View, found: &mut dyn FnMut(String, &[&str])) {
    for words in &view.h.differences {
        found(words.clone(), &[]);
    }
}

#[cfg(test)]
mod tests;
