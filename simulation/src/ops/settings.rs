//! Draws the options of a queue and of its groups.

use super::{one_of, Ops};
use dq_queue::settings::OnRetry::{Alone, Block, Skip};
use dq_queue::settings::{Backoff, Breaker, Changes, Fair, OnDead, Rate};

impl Ops<'_> {
    pub(super) fn backoff(&mut self) -> Backoff {
        let ms = self.ms();
        *one_of(
            self.rng,
            &[Backoff::Fixed(ms), Backoff::Linear(ms), Backoff::Exp(ms)],
        )
    }

    pub(super) fn rate(&mut self) -> Rate {
        Rate {
            count: self.rng.u64(1..8),
            per: self.some_ms(),
        }
    }

    pub(super) fn breaker(&mut self) -> Breaker {
        let open = self.some_ms();
        Breaker {
            failures: self.rng.u64(1..4),
            per: self.some_ms() * *one_of(self.rng, &[1, 10]),
            open,
            max: open * self.rng.u64(1..5),
        }
    }

    /// Draws changes of some options of a queue.
    pub fn changes(&mut self) -> Changes {
        Changes {
            lease: self.maybe(3, Self::some_ms),
            retries: self.maybe(4, |a| a.rng.i64(-1..4)),
            backoff: self.maybe(4, Self::backoff),
            max_backoff: self.maybe(5, Self::ms),
            jitter: self.maybe(5, |a| a.rng.u8(0..=100)),
            ttl: self.maybe(6, Self::ms),
            retain: self.maybe(3, Self::ms),
            retain_count: self.maybe(5, |a| a.rng.u64(0..20)),
            dead_retain: self.maybe(4, Self::ms),
            dead_count: self.maybe(5, |a| a.rng.u64(0..20)),
            dedup: self.maybe(4, Self::ms),
            max_len: self.maybe(8, |a| a.rng.u64(0..2 * a.profile.size)),
            max_bytes: self.maybe(8, |a| a.rng.u64(0..30 * a.profile.size)),
            max_running: self.maybe(6, |a| a.rng.u64(0..10)),
            rate: self.maybe(6, |a| a.maybe(2, Self::rate)),
            group_concurrency: self.maybe(4, |a| a.rng.u64(1..4)),
            on_retry: self.maybe(4, |a| *one_of(a.rng, &[Skip, Skip, Block, Alone])),
            on_dead: self.maybe(4, |a| *one_of(a.rng, &[OnDead::Block, OnDead::Continue])),
            breaker: self.maybe(3, |a| a.maybe(2, Self::breaker)),
            max_timeouts: self.maybe(3, |a| a.rng.u64(0..4)),
            errors: self.maybe(3, |a| a.rng.u8(0..4)),
            closed: self.maybe(3, |a| a.rng.u8(0..4) == 0),
            dead_to: None,
            events: None,
            events_len: None,
            compress: self.maybe(2, |a| a.rng.u8(0..3) > 0),
            fair: self.maybe(2, |a| *one_of(a.rng, &Fair::ALL)),
        }
    }
}
