//! The last samples of a queue. Rates and the chart of lateness are made of them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::queue::{Queue, Totals};
use crate::time_text::Millis;

/// Maximum number of samples that are kept: as many as the widest terminals have
/// columns.
pub const KEPT: usize = 300;

/// Time over which a rate is taken. Over less it jumps, and over more it lags.
const WINDOW: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
struct Point {
    at: Instant,
    totals: Totals,
    late: Millis,
    worst: Millis,
    waiting: u64,
    dead: u64,
}

/// The last samples of one queue.
#[derive(Debug, Clone, Default)]
pub struct History {
    points: VecDeque<Point>,
    /// The number of samples that were ever added.
    added: u64,
}

/// The figure that a line over the last samples shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Messages sent per second.
    Sent,
    /// Messages acked per second.
    Acked,
    /// Messages that are pending.
    Waiting,
    /// The age of the oldest due message in ms, or the lateness of a delivery if that
    /// was higher.
    Late,
    /// Messages that are dead.
    Dead,
}

/// Events per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Messages accepted.
    pub sent: f64,
    /// Deliveries.
    pub delivered: f64,
    /// Messages acked.
    pub acked: f64,
    /// Messages nacked.
    pub nacked: f64,
    /// Leases that ran out.
    pub timeouts: f64,
    /// Messages that died.
    pub deaths: f64,
}

impl Rates {
    /// Returns the sum of both.
    pub fn plus(&self, other: &Rates) -> Rates {
        Rates {
            sent: self.sent + other.sent,
            delivered: self.delivered + other.delivered,
            acked: self.acked + other.acked,
            nacked: self.nacked + other.nacked,
            timeouts: self.timeouts + other.timeouts,
            deaths: self.deaths + other.deaths,
        }
    }
}

impl History {
    /// Adds a sample, and keeps the last `kept`. If totals have shrunk, a new queue has
    /// the same name, and its history begins here.
    pub fn add(&mut self, at: Instant, queue: &Queue, kept: usize) {
        let worst = queue.lateness[2].unwrap_or(0);
        let mut late = queue.overdue().unwrap_or(0);
        if let Some(last) = self.points.back() {
            if queue.totals.sent < last.totals.sent
                || queue.totals.delivered < last.totals.delivered
            {
                self.points.clear();
            } else if worst > last.worst {
                // Between the two samples a message was delivered later than any before.
                late = late.max(worst);
            }
        }
        while self.points.len() >= kept.max(2) {
            self.points.pop_front();
        }
        self.added += 1;
        if self.points.len() == self.points.capacity() {
            // The room is doubled as usual, but not beyond the maximum: with very many
            // queues that is much memory.
            let room = (self.points.len() * 2).clamp(4, kept.max(4));
            self.points
                .reserve_exact(room.saturating_sub(self.points.len()));
        }
        self.points.push_back(Point {
            at,
            totals: queue.totals,
            late,
            worst,
            waiting: queue.pending(),
            dead: queue.count("dead"),
        });
    }

    /// Returns a figure of the last samples, the newest one last.
    pub fn line(&self, of: Line) -> Vec<f64> {
        let points = self.points.iter();
        match of {
            Line::Waiting => points.map(|point| point.waiting as f64).collect(),
            Line::Dead => points.map(|point| point.dead as f64).collect(),
            Line::Late => points.map(|point| point.late as f64).collect(),
            Line::Sent => self.per_second(|totals| totals.sent),
            Line::Acked => self.per_second(|totals| totals.acked),
        }
    }

    /// Returns the rate between each sample and the one before it.
    fn per_second(&self, count: fn(&Totals) -> u64) -> Vec<f64> {
        let pairs = self.points.iter().zip(self.points.iter().skip(1));
        pairs
            .map(|(before, after)| {
                let seconds = (after.at - before.at).as_secs_f64().max(0.05);
                count(&after.totals).saturating_sub(count(&before.totals)) as f64 / seconds
            })
            .collect()
    }

    /// Returns the number of samples that were ever added.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Returns the number of samples.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns the rates over the last seconds, or `None` before there are two samples.
    pub fn rates(&self) -> Option<Rates> {
        let (last, earlier) =
            self.points
                .iter()
                .rev()
                .fold((None, None), |(last, earlier), point| match last {
                    None => (Some(point), earlier),
                    Some(end) if earlier.is_none() || end.at - point.at <= WINDOW => {
                        (last, Some(point))
                    }
                    _ => (last, earlier),
                });
        let (last, earlier) = (last?, earlier?);
        let seconds = (last.at - earlier.at).as_secs_f64();
        // Two samples in quick succession, as after a key press, give no useful rate.
        if seconds < 0.1 {
            return None;
        }
        let per_second = |count: fn(&Totals) -> u64| {
            count(&last.totals).saturating_sub(count(&earlier.totals)) as f64 / seconds
        };
        Some(Rates {
            sent: per_second(|t| t.sent),
            delivered: per_second(|t| t.delivered),
            acked: per_second(|t| t.acked),
            nacked: per_second(|t| t.nacked),
            timeouts: per_second(|t| t.timeouts),
            deaths: per_second(|t| t.deaths),
        })
    }

    /// Returns the lateness of the last samples as bars, in `columns` columns. The
    /// newest one is at the right.
    pub fn bars(&self, columns: usize) -> String {
        let shown = self.points.len().min(columns);
        let bars = self
            .points
            .iter()
            .skip(self.points.len() - shown)
            .map(|point| bar(point.late));
        " ".repeat(columns - shown).chars().chain(bars).collect()
    }
}

/// The meaning of the heights of the bars. Lateness can be milliseconds or hours, so the
/// steps are mostly by ten, and a bar means the same in every queue.
pub const LEGEND: &str = "▁ below 10ms  ▂ 10ms  ▃ 0.1s  ▄ 1s  ▅ 10s  ▆ 1min  ▇ 10min  █ 1h";

fn bar(late: Millis) -> char {
    const STEPS: [(Millis, char); 7] = [
        (10, '▁'),
        (100, '▂'),
        (1000, '▃'),
        (10_000, '▄'),
        (60_000, '▅'),
        (600_000, '▆'),
        (3_600_000, '▇'),
    ];
    let found = STEPS.iter().find(|(below, _)| late < *below);
    found.map_or('█', |(_, bar)| *bar)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(sent: u64, age: Option<Millis>, worst: Millis) -> Queue {
        Queue {
            totals: Totals {
                sent,
                ..Totals::default()
            },
            oldest_ready_age: age,
            lateness: [None, None, Some(worst)],
            ..Queue::default()
        }
    }

    #[test]
    fn rates_are_of_the_last_seconds() {
        let start = Instant::now();
        let mut history = History::default();
        history.add(start, &queue(0, None, 0), KEPT);
        assert_eq!(history.rates(), None);
        for second in 1..=10u64 {
            // 100 a second, then 10 a second.
            let sent = second.min(5) * 100 + second.saturating_sub(5) * 10;
            history.add(
                start + Duration::from_secs(second),
                &queue(sent, None, 0),
                KEPT,
            );
            if second == 5 {
                assert_eq!(history.rates().unwrap().sent, 100.0);
            }
        }
        assert_eq!(history.rates().unwrap().sent, 10.0);
    }

    #[test]
    fn a_long_interval_still_gives_rates() {
        let start = Instant::now();
        let mut history = History::default();
        history.add(start, &queue(0, None, 0), KEPT);
        history.add(start + Duration::from_secs(60), &queue(600, None, 0), KEPT);
        assert_eq!(history.rates().unwrap().sent, 10.0);
    }

    #[test]
    fn a_new_queue_of_the_same_name_has_a_new_history() {
        let start = Instant::now();
        let mut history = History::default();
        history.add(start, &queue(1000, None, 0), KEPT);
        history.add(start + Duration::from_secs(1), &queue(3, None, 0), KEPT);
        assert_eq!(history.rates(), None);
        assert_eq!(history.bars(3), "  ▁");
    }

    #[test]
    fn bars_show_the_oldest_ready_message_and_the_worst_delivery() {
        let start = Instant::now();
        let mut history = History::default();
        for (i, (age, worst)) in [
            (None, 0),
            (Some(50), 0),
            (None, 2000),
            (None, 2000),
            (Some(7_200_000), 2000),
        ]
        .into_iter()
        .enumerate()
        {
            history.add(
                start + Duration::from_secs(i as u64),
                &queue(0, age, worst),
                KEPT,
            );
        }
        assert_eq!(history.bars(5), "▁▂▄▁█");
        assert_eq!(history.bars(2), "▁█");
        assert_eq!(history.bars(7), "  ▁▂▄▁█");
    }

    #[test]
    fn no_more_is_kept_than_can_be_seen() {
        let start = Instant::now();
        let mut history = History::default();
        for i in 0..1000 {
            history.add(start + Duration::from_secs(i), &queue(i, None, 0), KEPT);
        }
        assert_eq!(history.points.len(), KEPT);
    }

    #[test]
    fn lines_show_rates_and_counts() {
        let start = Instant::now();
        let mut history = History::default();
        for (second, sent) in [(0, 0), (2, 10), (3, 10)] {
            let mut queue = queue(sent, Some(7), 0);
            queue.counts[6] = sent;
            history.add(start + Duration::from_secs(second), &queue, 9);
        }
        assert_eq!(history.line(Line::Sent), [5.0, 0.0]);
        assert_eq!(history.line(Line::Acked), [0.0, 0.0]);
        assert_eq!(history.line(Line::Dead), [0.0, 10.0, 10.0]);
        assert_eq!(history.line(Line::Late), [7.0, 7.0, 7.0]);
    }
}
