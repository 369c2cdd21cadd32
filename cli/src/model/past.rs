//! What happened in the last week: in all queues together, in a bounded number of queues, and
//! the run times of a bounded number of their types.

use std::collections::BTreeMap;

use serde_json::Value;

use super::queue::{Queue, Totals};
use super::run_times::Run;
use super::series::{Past, Span, View};
use super::step::{line, past, RunStep, Step};
use crate::text::unhex;
use crate::time_text::Millis;

/// Maximum number of queues with a past of their own. Each takes some eleven kilobytes.
const QUEUES: usize = 500;

/// Maximum number of types of queues whose run times are kept. Each takes some eight kilobytes.
const TYPES: usize = 250;

/// The run times of a queue by type.
type Types = BTreeMap<Vec<u8>, Past<RunStep>>;

/// The past of all queues.
#[derive(Debug, Default)]
pub struct Pasts {
    /// All queues together.
    all: Past<Step>,
    queues: BTreeMap<Vec<u8>, Past<Step>>,
    /// The run times by queue and type.
    runs: BTreeMap<Vec<u8>, Types>,
    /// When the last message ended whose run time was taken, by queue.
    ended: BTreeMap<Vec<u8>, Millis>,
    /// The last counters of each queue.
    totals: BTreeMap<Vec<u8>, Totals>,
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Pasts {
    /// Adds new figures of queues. `waiting` and `late` are those of all queues.
    pub fn take(&mut self, at: Millis, fresh: &[Queue], waiting: u64, late: Millis) {
        let mut all = Step {
            waiting: small(waiting),
            late: small(late),
            ..Step::default()
        };
        for queue in fresh {
            let before = self.totals.get(&queue.name).copied();
            // It is unknown what happened before the program looked, or in an earlier queue of this
            // name.
            let before = before.filter(|before| before.sent <= queue.totals.sent);
            let since = |count: fn(&Totals) -> u64| match &before {
                Some(before) => small(count(&queue.totals).saturating_sub(count(before))),
                None => 0,
            };
            let step = Step {
                sent: since(|totals| totals.sent),
                acked: since(|totals| totals.acked),
                deaths: since(|totals| totals.deaths),
                waiting: small(queue.pending()),
                late: small(queue.overdue().unwrap_or(0)),
            };
            all.sent = all.sent.saturating_add(step.sent);
            all.acked = all.acked.saturating_add(step.acked);
            all.deaths = all.deaths.saturating_add(step.deaths);
            match self.totals.get_mut(&queue.name) {
                Some(totals) => *totals = queue.totals,
                None => {
                    self.totals.insert(queue.name.clone(), queue.totals);
                }
            }
            if let Some(past) = self.queues.get_mut(&queue.name) {
                past.change(at, |known| known.add(&step));
            } else if self.queues.len() < QUEUES && step != Step::default() {
                let past = self.queues.entry(queue.name.clone()).or_default();
                past.change(at, |known| known.add(&step));
            }
        }
        self.all.change(at, |known| known.add(&all));
    }

    /// Adds the run times of messages of a queue that have ended since the last ones. Those that
    /// were taken before are left out.
    pub fn take_runs(&mut self, at: Millis, queue: &[u8], runs: &[Run]) {
        let last = self.ended.get(queue).copied().unwrap_or(0);
        let room = TYPES.saturating_sub(self.runs.values().map(BTreeMap::len).sum());
        let mut added = 0;
        for run in runs.iter().filter(|run| run.ended > last) {
            let types = self.runs.entry(queue.to_vec()).or_default();
            if !types.contains_key(&run.kind) {
                if added == room {
                    continue;
                }
                added += 1;
            }
            let took = small(run.took);
            let past = types.entry(run.kind.clone()).or_default();
            past.change(at, |known| {
                known.count = known.count.saturating_add(1);
                known.sum = known.sum.saturating_add(took);
                known.longest = known.longest.max(took);
            });
        }
        self.runs.retain(|_, types| !types.is_empty());
        if let Some(newest) = runs.iter().map(|run| run.ended).max() {
            self.ended.insert(queue.to_vec(), newest.max(last));
        }
    }

    /// Drops queues that are gone.
    pub fn forget(&mut self, names: &[Vec<u8>]) {
        for name in names {
            self.totals.remove(name);
            self.queues.remove(name);
            self.runs.remove(name);
            self.ended.remove(name);
        }
    }

    /// Returns a span of a queue, or of all together.
    pub fn view(&self, queue: Option<&[u8]>, span: Span, now: Millis) -> View<Step> {
        let past = match queue {
            Some(name) => self.queues.get(name),
            None => Some(&self.all),
        };
        past.map_or_else(|| View::empty(span, now), |past| past.view(span, now))
    }

    /// Returns a span of the run times of a queue, by type. Those come first of which most is known.
    pub fn runs(&self, queue: &[u8], span: Span, now: Millis) -> Vec<(Vec<u8>, View<RunStep>)> {
        let types = self.runs.get(queue).into_iter().flatten();
        let views = types.map(|(kind, past)| (kind.clone(), past.view(span, now)));
        let mut views: Vec<_> = views.collect();
        let sum = |view: &View<RunStep>| view.known().map(|(_, step)| u64::from(step.count)).sum();
        views.sort_by_key(|(_, view)| std::cmp::Reverse::<u64>(sum(view)));
        views
    }

    /// Returns the queues of which something is known, those first to which most was sent in a span.
    pub fn busiest(&self, span: Span, now: Millis) -> Vec<&[u8]> {
        let sent = |past: &Past<Step>| {
            let view = past.view(span, now);
            view.known()
                .map(|(_, step)| u64::from(step.sent))
                .sum::<u64>()
        };
        let queues = self.queues.iter();
        let mut queues: Vec<_> = queues.map(|(name, past)| (sent(past), name)).collect();
        queues.sort_by_key(|(sent, name)| (std::cmp::Reverse(*sent), *name));
        queues.into_iter().map(|(_, name)| &name[..]).collect()
    }

    /// Returns the number of the newest step of five minutes.
    pub fn newest(&self) -> u64 {
        self.all.0[1].newest()
    }

    /// Returns the names of the queues that have a past, for `lines`.
    pub fn names(&self) -> Vec<Vec<u8>> {
        let names = self.queues.keys().chain(self.runs.keys());
        let mut names: Vec<Vec<u8>> = names.cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns the lines of JSON from which `read` reads a queue, or all together.
    pub fn lines(&self, queue: Option<&[u8]>) -> String {
        let past = match queue {
            Some(name) => self.queues.get(name),
            None => Some(&self.all),
        };
        let mut text = past.map_or_else(String::new, |past| line(queue, None, past));
        for (kind, past) in queue
            .and_then(|name| self.runs.get(name))
            .into_iter()
            .flatten()
        {
            text.push_str(&line(queue, Some(kind), past));
        }
        text
    }

    /// Parses the lines that `lines` has written. Lines that make no sense are passed over.
    pub fn read(text: &str) -> Pasts {
        let mut pasts = Pasts::default();
        let mut types = 0;
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let name = |field| match line.get(field)? {
                Value::Null => Some(None),
                name => Some(Some(unhex(name.as_str()?)?)),
            };
            match (name("queue"), name("type")) {
                (Some(None), Some(None)) => pasts.all = past(&line).unwrap_or_default(),
                (Some(Some(queue)), Some(None)) if pasts.queues.len() < QUEUES => {
                    pasts.queues.extend(past(&line).map(|known| (queue, known)));
                }
                (Some(Some(queue)), Some(Some(kind))) if types < TYPES => {
                    if let Some(known) = past(&line) {
                        types += 1;
                        pasts.runs.entry(queue).or_default().insert(kind, known);
                    }
                }
                _ => {}
            }
        }
        pasts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::series::GRAINS;

    const STEP: Millis = GRAINS[1].step;

    fn queue(name: &str, sent: u64) -> Queue {
        let mut queue = Queue {
            name: name.as_bytes().to_vec(),
            oldest_ready_age: Some(7),
            ..Queue::default()
        };
        queue.totals.sent = sent;
        queue.counts[1] = 3;
        queue
    }

    fn run(kind: &str, ended: Millis, took: Millis) -> Run {
        Run {
            kind: kind.as_bytes().to_vec(),
            ended,
            took,
        }
    }

    #[test]
    fn a_past_has_what_happened_since_it_was_watched() {
        let mut pasts = Pasts::default();
        pasts.take(0, &[queue("a", 100), queue("b", 5)], 6, 7);
        pasts.take(STEP / 2, &[queue("a", 110)], 6, 9);
        pasts.take(STEP * 3, &[queue("a", 111), queue("b", 6)], 5, 0);
        let sent = |name: Option<&[u8]>| {
            let view = pasts.view(name, Span::Day, STEP * 4);
            view.known().map(|(_, step)| step.sent).collect::<Vec<_>>()
        };
        assert_eq!(sent(Some(b"a")), [10, 0, 0, 1]);
        assert_eq!(sent(None), [10, 0, 0, 2]);
        let first = pasts.view(None, Span::Day, STEP * 4);
        assert_eq!(first.known().next().unwrap().1.late, 9);
        assert_eq!(pasts.busiest(Span::Day, STEP * 4), [b"a", b"b"]);
        // A new queue of the same name begins anew.
        pasts.take(STEP * 3, &[queue("a", 2)], 5, 0);
        let view = pasts.view(Some(b"a"), Span::Day, STEP * 4);
        assert_eq!(view.known().last().unwrap().1.sent, 1);
        pasts.forget(&[b"a".to_vec()]);
        assert_eq!(
            pasts.view(Some(b"a"), Span::Day, STEP * 4).known().count(),
            0
        );
    }

    #[test]
    fn a_run_time_is_taken_once() {
        let mut pasts = Pasts::default();
        pasts.take_runs(
            0,
            b"q",
            &[run("mail", 5, 100), run("mail", 6, 300), run("pdf", 6, 9)],
        );
        pasts.take_runs(STEP, b"q", &[run("mail", 6, 300), run("mail", 8, 7)]);
        let [(mail, view), (pdf, _)] = &pasts.runs(b"q", Span::Day, 2 * STEP)[..] else {
            panic!("two types");
        };
        assert_eq!((&mail[..], &pdf[..]), (&b"mail"[..], &b"pdf"[..]));
        let known: Vec<_> = view
            .known()
            .map(|(_, one)| (one.mean(), one.longest))
            .collect();
        assert_eq!(known, [(200, 300), (7, 7)]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_survives_a_file() {
        let mut pasts = Pasts::default();
        for step in 0..1000 {
            pasts.take(step * STEP, &[queue("a\u{ff}", step * 2)], 1, 2);
        }
        for n in 0..2000u64 {
            let name = format!("q{n:04}");
            pasts.take(1000 * STEP, &[queue(&name, 1)], 1, 2);
            pasts.take_runs(1000 * STEP, name.as_bytes(), &[run("", n + 1, n)]);
        }
        assert_eq!((pasts.queues.len(), pasts.runs.len()), (QUEUES, TYPES));
        let names = pasts.names();
        let of_queues: Vec<String> = names.iter().map(|name| pasts.lines(Some(name))).collect();
        let text = pasts.lines(None) + &of_queues.concat();
        let read = Pasts::read(&text);
        assert_eq!(
            (&read.all, &read.queues, &read.runs),
            (&pasts.all, &pasts.queues, &pasts.runs)
        );
        let damaged = text.replace("newest", "nonsense") + "{\n\x00";
        let read = Pasts::read(&damaged);
        assert_eq!((read.queues.len(), read.runs.len()), (0, 0));
    }
}
