//! Figures over time, in steps of three grains, for the times that a reader may choose.

use std::collections::VecDeque;

use crate::time_text::Millis;

/// How fine a series is, and how far it reaches back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grain {
    /// The time of a step in ms.
    pub step: Millis,
    /// Number of steps that are kept.
    pub kept: usize,
}

/// The grains, the finest first: an hour of minutes, a day of five minutes, a week of hours.
pub const GRAINS: [Grain; 3] = [
    Grain {
        step: 60_000,
        kept: 60,
    },
    Grain {
        step: 300_000,
        kept: 288,
    },
    Grain {
        step: 3_600_000,
        kept: 168,
    },
];

/// A time up to now that a reader may choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    /// 15 minutes.
    Quarter,
    /// An hour.
    #[default]
    Hour,
    /// 24 hours.
    Day,
    /// Seven days.
    Week,
}

impl Span {
    /// All of them, the shortest first.
    pub const ALL: [Span; 4] = [Span::Quarter, Span::Hour, Span::Day, Span::Week];

    /// Returns its word in addresses.
    pub fn word(self) -> &'static str {
        match self {
            Span::Quarter => "15m",
            Span::Hour => "1h",
            Span::Day => "24h",
            Span::Week => "7d",
        }
    }

    /// Returns its words for people.
    pub fn words(self) -> &'static str {
        match self {
            Span::Quarter => "15 min",
            Span::Hour => "1 h",
            Span::Day => "24 h",
            Span::Week => "7 days",
        }
    }

    /// Returns the one of this word.
    pub fn of(word: &str) -> Option<Span> {
        Span::ALL.into_iter().find(|span| span.word() == word)
    }

    /// Returns the index of its grain.
    fn grain_index(self) -> usize {
        match self {
            Span::Quarter | Span::Hour => 0,
            Span::Day => 1,
            Span::Week => 2,
        }
    }

    /// Returns its grain.
    pub fn grain(self) -> Grain {
        GRAINS.get(self.grain_index()).copied().unwrap_or(GRAINS[0])
    }

    /// Returns the number of its steps.
    pub fn steps(self) -> usize {
        match self {
            Span::Quarter => 15,
            _ => self.grain().kept,
        }
    }
}

/// The steps of a span, the newest last. The newest is the last one that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View<T> {
    /// The begin of the first step, in Unix ms.
    pub first: Millis,
    /// The time of a step in ms.
    pub step: Millis,
    /// The steps, of which some may be unknown.
    pub values: Vec<Option<T>>,
}

impl<T> View<T> {
    /// Creates a view of a span at a time, in which nothing is known.
    pub fn empty(span: Span, now: Millis) -> View<T> {
        let (step, count) = (span.grain().step, span.steps());
        View {
            first: (now / step).saturating_sub(count as u64) * step,
            step,
            values: std::iter::repeat_with(|| None).take(count).collect(),
        }
    }

    /// Returns the steps that are known, with the begin of each in Unix ms.
    pub fn known(&self) -> impl Iterator<Item = (Millis, &T)> {
        let begins = (0u64..).map(|i| self.first + i * self.step);
        let steps = begins.zip(&self.values);
        steps.filter_map(|(at, value)| Some((at, value.as_ref()?)))
    }
}

/// The steps of one grain, the newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series<T> {
    /// The number of the newest step since the Unix epoch.
    newest: u64,
    steps: VecDeque<T>,
}

impl<T: Copy + Default> Series<T> {
    /// Creates a series of these steps, of which the last one has this number.
    pub fn of(newest: u64, steps: impl Iterator<Item = T>) -> Series<T> {
        Series {
            newest,
            steps: steps.collect(),
        }
    }

    /// Returns the number of the newest step.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Returns the steps, the newest last.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.steps.iter()
    }

    /// Returns the step of this number for a change. Adds empty steps for those between.
    fn step(&mut self, number: u64, kept: usize) -> Option<&mut T> {
        if self.steps.is_empty() || number > self.newest + kept as u64 {
            self.steps.clear();
            self.steps.push_back(T::default());
            self.newest = number;
        }
        while self.newest < number {
            self.newest += 1;
            self.steps.push_back(T::default());
            if self.steps.len() > kept {
                self.steps.pop_front();
            }
        }
        // A clock that was set back adds to the newest step.
        self.steps.back_mut()
    }

    /// Returns the step of this number, if it is known.
    fn get(&self, number: u64) -> Option<T> {
        let back = usize::try_from(self.newest.checked_sub(number)?).ok()?;
        let index = self.steps.len().checked_sub(back + 1)?;
        self.steps.get(index).copied()
    }
}

/// The steps of all grains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past<T>(pub [Series<T>; 3]);

impl<T: Copy + Default> Past<T> {
    /// Changes the steps of a time.
    pub fn change(&mut self, at: Millis, change: impl Fn(&mut T)) {
        for (series, grain) in self.0.iter_mut().zip(GRAINS) {
            if let Some(step) = series.step(at / grain.step, grain.kept) {
                change(step);
            }
        }
    }

    /// Returns the steps of a span that are over.
    pub fn view(&self, span: Span, now: Millis) -> View<T> {
        let mut view = View::empty(span, now);
        if let Some(series) = self.0.get(span.grain_index()) {
            for (number, value) in (view.first / view.step..).zip(&mut view.values) {
                *value = series.get(number);
            }
        }
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_shows_what_is_over_and_leaves_out_what_is_unknown() {
        let mut past: Past<u32> = Past::default();
        let minute = GRAINS[0].step;
        let begin = 60_000;
        for at in [0, 0, 2] {
            past.change((begin + at) * minute + 7, |count| *count += 1);
        }
        let view = past.view(Span::Quarter, (begin + 2) * minute + 8);
        assert_eq!((view.first, view.values.len()), ((begin - 13) * minute, 15));
        // The third minute is not over yet, and nothing is known of those before the first.
        let known: Vec<_> = view
            .known()
            .map(|(at, n)| (at / minute - begin, *n))
            .collect();
        assert_eq!(known, [(0, 2), (1, 0)]);
        let view = past.view(Span::Week, (begin + 60) * minute);
        assert_eq!(view.values.last(), Some(&Some(3)));
        assert_eq!(view.known().count(), 1);
    }

    #[test]
    fn a_series_is_bounded() {
        let mut past: Past<u32> = Past::default();
        for at in 0..1000 {
            past.change(at * GRAINS[1].step, |count| *count += 1);
        }
        let lengths = past.0.each_ref().map(|series| series.steps.len());
        assert_eq!(lengths, [60, 288, 84]);
        // A long time without samples.
        past.change(100_000 * GRAINS[2].step, |count| *count = 9);
        assert!(past.0.iter().all(|series| series.steps.len() == 1));
    }
}
