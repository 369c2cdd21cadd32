//! The words of a shape, and how they are brought into their order.

use crate::{Millis, Receipt, Seq, NEVER};

/// A word of a shape before times and numbers are brought into their order.
#[derive(Debug, Clone, Copy)]
enum Word {
    Plain(u64),
    Seq(Seq),
    Receipt(Receipt),
    Ticket(u64),
    Time(Millis),
}

/// The words of a shape so far.
pub(super) struct Writer {
    words: Vec<Word>,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer {
            words: Vec::with_capacity(128),
        }
    }

    pub(super) fn plain(&mut self, n: impl Into<u64>) {
        self.words.push(Word::Plain(n.into()));
    }

    pub(super) fn seq(&mut self, seq: Seq) {
        self.words.push(Word::Seq(seq));
    }

    pub(super) fn receipt(&mut self, receipt: Receipt) {
        self.words.push(Word::Receipt(receipt));
    }

    pub(super) fn ticket(&mut self, ticket: u64) {
        self.words.push(Word::Ticket(ticket));
    }

    pub(super) fn time(&mut self, at: Millis) {
        self.words.push(Word::Time(at));
    }

    pub(super) fn len(&mut self, len: usize) {
        self.plain(len as u64);
    }

    pub(super) fn optional_time(&mut self, at: Option<Millis>) {
        self.plain(at.is_some());
        self.time(at.unwrap_or(0));
    }

    pub(super) fn text(&mut self, text: &[u8]) {
        self.len(text.len());
        for chunk in text.chunks(8) {
            let word = chunk
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.plain(word);
        }
    }

    pub(super) fn optional_text(&mut self, text: Option<&[u8]>) {
        self.plain(text.is_some());
        self.text(text.unwrap_or_default());
    }

    pub(super) fn debug(&mut self, value: &impl std::fmt::Debug) {
        self.text(format!("{value:?}").as_bytes());
    }

    /// The words with times as seen from `now` and numbers by their order.
    pub(super) fn finish(self, now: Millis, past: Millis) -> Vec<u64> {
        let line = now.saturating_sub(past);
        let of = |pick: fn(Word) -> Option<u64>| {
            let mut all: Vec<u64> = self.words.iter().filter_map(|word| pick(*word)).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let seqs = of(|word| match word {
            Word::Seq(seq) => Some(seq),
            _ => None,
        });
        let receipts = of(|word| match word {
            Word::Receipt(receipt) => Some(receipt),
            _ => None,
        });
        let tickets = of(|word| match word {
            Word::Ticket(ticket) => Some(ticket),
            _ => None,
        });
        let times = of(|word| match word {
            Word::Time(at) => Some(at),
            _ => None,
        });
        // 0 says that there is none, so it stays.
        let rank = |all: &[u64], n: u64| match n {
            0 => 0,
            n => all.partition_point(|other| *other < n) as u64 + 1,
        };
        let told = self.words.iter().map(|word| match *word {
            Word::Plain(n) => n,
            Word::Seq(seq) => rank(&seqs, seq),
            Word::Receipt(receipt) => rank(&receipts, receipt),
            Word::Ticket(ticket) => rank(&tickets, ticket),
            Word::Time(at @ (0 | NEVER)) => at,
            Word::Time(at) if at >= line => at.wrapping_sub(now) ^ 1 << 62,
            Word::Time(at) => rank(&times, at) | 1 << 61,
        });
        told.collect()
    }
}
