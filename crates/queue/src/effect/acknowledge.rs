//! An acknowledgement with effects: everything is checked, then the message is acknowledged, and
//! then the effects are done. All of that is one command of the log.

use super::refusal::{refusal, Keys};
use super::{Apply, Condition, Effect, Holds, Outcome, Repeat, Verb};
use crate::seeded::{seeded, Bug};
use crate::Millis;

const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// The replies of plain commands, in the order of the effects. `None` where a key had nothing, or
/// where the server has refused an effect, which it should not.
pub type Outcomes = Vec<Option<Outcome>>;

/// The server on which a message is acknowledged, for [`acknowledge`].
pub trait Server: Keys {
    /// Its errors.
    type Failure: From<String>;

    /// Brings the queue up to date. Returns whether the receipt is current.
    ///
    /// # Errors
    /// The key holds no queue, or an effect names a key that the command changes anyway.
    fn begin(&mut self) -> Result<bool, Self::Failure>;

    /// Checks that the user may run each plain command.
    ///
    /// # Errors
    /// The first that the user may not run.
    fn check_rights(&mut self) -> Result<(), Self::Failure>;

    /// Whether a condition holds.
    fn does_hold(&mut self, condition: &Condition<'_>) -> bool;

    /// Whether the server has reached `maxmemory`.
    fn is_full(&self) -> bool;

    /// The time of its clock, in Unix ms.
    fn now(&self) -> Millis;

    /// Does an effect by its plain command, on a key that holds `found` now. Returns the reply of
    /// that; `None` for null, and where the command was refused.
    fn run(&mut self, effect: &Effect<'_>, found: Holds, repeat: &Repeat<'_>) -> Option<Outcome>;

    /// Adds an effect to the command of the log.
    fn log(&mut self, effect: &Effect<'_>, repeat: &Repeat<'_>);
}

/// Acknowledges a message by `finish`, which returns `None` if the receipt is stale, and then does
/// the effects. Returns what came of both, or `None` if the receipt is stale: then nothing was done.
///
/// # Errors
/// Something is not allowed, or cannot be done on the keys as they are. Then nothing was done, and
/// `finish` has not run.
pub fn acknowledge<S: Server, T>(
    apply: &Apply<'_>,
    server: &mut S,
    finish: impl FnOnce(&mut S) -> Result<Option<T>, S::Failure>,
) -> Result<Option<(Outcomes, T)>, S::Failure> {
    let is_current = server.begin()?;
    server.check_rights()?;
    if !is_current {
        if seeded(Bug::StaleWrites) {
            do_all(apply, server);
        }
        return Ok(None);
    }
    let mut conditions = apply.conditions.iter();
    if let Some(at) = conditions.position(|condition| !server.does_hold(condition)) {
        if seeded(Bug::ConditionComesLate) {
            finish(server)?;
        }
        return Err(format!("CONDITION {} does not hold", at + 1).into());
    }
    if server.is_full() && apply.effects.iter().any(|effect| effect.verb.grows()) {
        return Err(OOM.to_owned().into());
    }
    if let Some((at, why)) = refusal(&apply.effects, server) {
        return Err(format!("{} {}", why.code(), at + 1).into());
    }
    let Some(finished) = finish(server)? else {
        return Ok(None);
    };
    Ok(Some((do_all(apply, server), finished)))
}

/// Does the effects, and adds them to the log.
fn do_all<S: Server>(apply: &Apply<'_>, server: &mut S) -> Outcomes {
    // Replicas and replays do not look at a clock, so all effects are done at one time.
    let now = i64::try_from(server.now()).unwrap_or(i64::MAX);
    let outcomes = apply.effects.iter().map(|effect| {
        let found = server.holds(effect);
        let is_new = found == Holds::Nothing && !seeded(Bug::ExpiredKeyStays);
        let repeat = Repeat::of(effect, now, is_new);
        let outcome = server.run(effect, found, &repeat)?;
        let (repeat, outcome) = match (effect.verb, outcome) {
            (Verb::XAdd, Outcome::Text(id)) => (repeat.with_id(&id), Outcome::Text(id)),
            (Verb::ZIncrBy, Outcome::Text(score)) => (repeat, Outcome::Score(score)),
            (_, outcome) => (repeat, outcome),
        };
        if !seeded(Bug::EffectUnlogged) {
            server.log(effect, &repeat);
        }
        Some(outcome)
    });
    outcomes.collect()
}
