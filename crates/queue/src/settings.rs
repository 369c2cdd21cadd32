//! What a queue is told once and holds for all its messages.

use super::Millis;

/// How the wait after a failed delivery grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// Always this long.
    Fixed(Millis),
    /// This long for each failure so far.
    Linear(Millis),
    /// This long, doubled with each failure after the first.
    Exp(Millis),
}

/// At most `count` deliveries in any window of `per` milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Deliveries per window, at least 1.
    pub count: u64,
    /// Length of the window, at least 1 ms.
    pub per: Millis,
}

/// Whether a group waits behind a failed message of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRetry {
    /// The failed message stays the head of its group.
    Block,
    /// The group goes on without it.
    Skip,
}

/// Whether a group goes on when a message of it dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDead {
    /// It goes on.
    Continue,
    /// It is held until someone has decided about the dead message.
    Block,
}

/// Whose time a queue follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The server's clock.
    Server,
    /// Its own, moved by hand; it stands at this time.
    Manual(Millis),
}

/// The options of a queue. A value of 0 means "none" where the option is a
/// limit or a time to keep something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a consumer has, in ms; at least 1.
    pub lease: Millis,
    /// Failures that are forgiven; -1 for all.
    pub retries: i64,
    /// Wait after a nack.
    pub backoff: Backoff,
    /// Longest such wait, in ms; 0 for no cap.
    pub max_backoff: Millis,
    /// Random spread of that wait, in percent, 0 to 100.
    pub jitter: u8,
    /// Life of a message after its due time, in ms; 0 for no end.
    pub ttl: Millis,
    /// How long finished and cancelled records are kept, in ms; 0 keeps none.
    pub retain: Millis,
    /// How many of them are kept; 0 for no limit.
    pub retain_count: u64,
    /// How long dead ones are kept, in ms; 0 for ever.
    pub dead_retain: Millis,
    /// How many dead ones are kept; 0 for all.
    pub dead_count: u64,
    /// How long an id stays taken after its message has ended well, in ms.
    pub dedup: Millis,
    /// Most messages pending and running; 0 for no limit.
    pub max_len: u64,
    /// Most payload bytes of those; 0 for no limit.
    pub max_bytes: u64,
    /// Most messages leased at once; 0 for no limit.
    pub max_running: u64,
    /// Limit of deliveries, if any.
    pub rate: Option<Rate>,
    /// Batches of one group leased at once; at least 1.
    pub group_concurrency: u64,
    /// What a failed message does to its group.
    pub on_retry: OnRetry,
    /// What a dead message does to its group.
    pub on_dead: OnDead,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            lease: 30_000,
            retries: 3,
            backoff: Backoff::Fixed(0),
            max_backoff: 0,
            jitter: 0,
            ttl: 0,
            retain: 0,
            retain_count: 10_000,
            dead_retain: 0,
            dead_count: 0,
            dedup: 0,
            max_len: 0,
            max_bytes: 0,
            max_running: 0,
            rate: None,
            group_concurrency: 1,
            on_retry: OnRetry::Block,
            on_dead: OnDead::Continue,
        }
    }
}

/// Options to change; `None` leaves one as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// See [`Settings::lease`].
    pub lease: Option<Millis>,
    /// See [`Settings::retries`].
    pub retries: Option<i64>,
    /// See [`Settings::backoff`].
    pub backoff: Option<Backoff>,
    /// See [`Settings::max_backoff`].
    pub max_backoff: Option<Millis>,
    /// See [`Settings::jitter`].
    pub jitter: Option<u8>,
    /// See [`Settings::ttl`].
    pub ttl: Option<Millis>,
    /// See [`Settings::retain`].
    pub retain: Option<Millis>,
    /// See [`Settings::retain_count`].
    pub retain_count: Option<u64>,
    /// See [`Settings::dead_retain`].
    pub dead_retain: Option<Millis>,
    /// See [`Settings::dead_count`].
    pub dead_count: Option<u64>,
    /// See [`Settings::dedup`].
    pub dedup: Option<Millis>,
    /// See [`Settings::max_len`].
    pub max_len: Option<u64>,
    /// See [`Settings::max_bytes`].
    pub max_bytes: Option<u64>,
    /// See [`Settings::max_running`].
    pub max_running: Option<u64>,
    /// See [`Settings::rate`]; `Some(None)` removes the limit.
    pub rate: Option<Option<Rate>>,
    /// See [`Settings::group_concurrency`].
    pub group_concurrency: Option<u64>,
    /// See [`Settings::on_retry`].
    pub on_retry: Option<OnRetry>,
    /// See [`Settings::on_dead`].
    pub on_dead: Option<OnDead>,
}

impl Settings {
    /// These settings with the changes made to them.
    pub fn with(&self, changes: &Changes) -> Settings {
        Settings {
            lease: changes.lease.unwrap_or(self.lease),
            retries: changes.retries.unwrap_or(self.retries),
            backoff: changes.backoff.unwrap_or(self.backoff),
            max_backoff: changes.max_backoff.unwrap_or(self.max_backoff),
            jitter: changes.jitter.unwrap_or(self.jitter),
            ttl: changes.ttl.unwrap_or(self.ttl),
            retain: changes.retain.unwrap_or(self.retain),
            retain_count: changes.retain_count.unwrap_or(self.retain_count),
            dead_retain: changes.dead_retain.unwrap_or(self.dead_retain),
            dead_count: changes.dead_count.unwrap_or(self.dead_count),
            dedup: changes.dedup.unwrap_or(self.dedup),
            max_len: changes.max_len.unwrap_or(self.max_len),
            max_bytes: changes.max_bytes.unwrap_or(self.max_bytes),
            max_running: changes.max_running.unwrap_or(self.max_running),
            rate: changes.rate.unwrap_or(self.rate),
            group_concurrency: changes.group_concurrency.unwrap_or(self.group_concurrency),
            on_retry: changes.on_retry.unwrap_or(self.on_retry),
            on_dead: changes.on_dead.unwrap_or(self.on_dead),
        }
    }
}
