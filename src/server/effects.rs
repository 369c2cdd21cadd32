//! APPLY: what an acknowledgement does to keys that hold no queue.
//!
//! Everything is checked first, in the order of docs/commands.md. Then the message is acknowledged,
//! and only if its receipt was current the plain commands run. The log entries of both are one
//! command, so a replica or a torn log has all or nothing.

use crate::redis::acl::may_call;
use crate::redis::spec::{Access, Positions};
use crate::redis::{clock, faults, memory, Context, Failure, Name, OwnedName, Reply};
use dq_queue::args::{Parsed, Words};
use dq_queue::codec::effect::encode;
use dq_queue::effect::refusal::Keys;
use dq_queue::effect::{
    self, acknowledge, Apply, Condition, Effect, Holds, Is, Outcome, Outcomes, Repeat, Server, Verb,
};
use dq_queue::quote::quote;
use dq_queue::{Millis, Receipt};
use smallvec::SmallVec;

use super::clock::now;
use super::commit::{change_up_to_date, settle_begun};

const IN_BLOCK: &str =
    "ERR APPLY cannot be used in MULTI or a script on this server, because a power failure in the \
     middle of a block could cost what is written later (docs/engines.md)";

/// An acknowledgement with effects.
pub struct Applying<'a, 'k> {
    /// The queue.
    pub key: Name<'k>,
    /// The receipt of the delivery that it ends.
    pub receipt: Receipt,
    /// The effects and conditions.
    pub apply: &'a Apply<'a>,
    /// The keys of the effects, and then those of the conditions.
    pub names: Vec<Name<'k>>,
    /// The keys besides the queue's that the command itself changes.
    pub changed: Vec<&'k [u8]>,
}

impl<'a, 'k> Applying<'a, 'k> {
    /// The effects of a command that ends the delivery with this receipt. `name` finds a key by its
    /// word.
    pub fn new(
        key: Name<'k>,
        receipt: Receipt,
        apply: &'a Apply<'a>,
        name: impl Fn(usize) -> Option<Name<'k>>,
    ) -> Applying<'a, 'k> {
        let effects = apply.effects.iter().map(|effect| effect.at);
        let conditions = apply.conditions.iter().map(|condition| condition.at);
        Applying {
            key,
            receipt,
            apply,
            names: effects.chain(conditions).filter_map(name).collect(),
            changed: Vec::new(),
        }
    }

    fn effects(&self) -> impl Iterator<Item = (&'a Effect<'a>, Name<'k>)> + '_ {
        self.apply.effects.iter().zip(self.names.iter().copied())
    }

    fn conditions(&self) -> impl Iterator<Item = (&'a Condition<'a>, Name<'k>)> + '_ {
        let names = self.names.iter().copied().skip(self.apply.effects.len());
        self.apply.conditions.iter().zip(names)
    }

    /// Acknowledges by `finish`, which returns `None` if the receipt is stale, and applies the
    /// effects. Returns what came of both, or `None` if the receipt is stale: then nothing was
    /// done.
    ///
    /// Errors: something is not allowed, or cannot be done on the keys as they are. Then nothing
    /// was done, and `finish` has not run.
    pub fn run<T>(
        &self,
        ctx: &mut Context,
        finish: impl FnOnce(&mut Context) -> Result<Option<T>, Failure>,
    ) -> Result<Option<(Outcomes, T)>, Failure> {
        if ctx.is_in_block() && !ctx.survives_torn_blocks() {
            return Err(IN_BLOCK.into());
        }
        let collects = ctx.begin_to_collect();
        let mut running = Running { ctx, of: self };
        let result = acknowledge(self.apply, &mut running, |running| finish(running.ctx));
        if collects {
            running.ctx.replicate_collected();
        }
        result
    }

    /// Brings the queue up to date. Returns whether the receipt is current.
    ///
    /// Errors: the key holds another type, or an effect names a key that the command changes
    /// anyway.
    fn check_queue(&self, ctx: &mut Context) -> Result<bool, Failure> {
        let moment = now();
        change_up_to_date(ctx, self.key, None, |_| moment, settle_begun)?;
        let opened = ctx.open_read(self.key)?;
        let queue = opened.get();
        let at = queue.map_or(moment.ms(), |queue| queue.time(moment));
        let ends = queue.map(|queue| queue.keys_of_end(self.receipt, at));
        let ends: Vec<&[u8]> = ends.into_iter().flatten().collect();
        for (number, (effect, name)) in self.effects().enumerate() {
            let key = name.bytes();
            if key == self.key.bytes() || self.changed.contains(&key) || ends.contains(&key) {
                let (number, key) = (number + 1, quote(effect.key));
                return Err(format!(
                    "ERR APPLY {number} names {key}, which this command changes anyway"
                )
                .into());
            }
        }
        Ok(queue.is_some_and(|queue| queue.is_current(self.receipt, at)))
    }

    /// Checks that the user may run each plain command on its key.
    fn check_rights(&self, ctx: &Context) -> Result<(), Failure> {
        let user = ctx.user_name();
        let may = |name: &str, key: Name<'_>, words: &[&[u8]]| {
            let name = OwnedName::new(name.as_bytes());
            let words: SmallVec<[_; 4]> = words.iter().map(|word| OwnedName::new(word)).collect();
            let call = [name.name(), key].into_iter();
            let call: SmallVec<[_; 4]> = call.chain(words.iter().map(OwnedName::name)).collect();
            may_call(&user, &call)
        };
        for (at, (effect, key)) in self.effects().enumerate() {
            // Rights do not depend on what XADD adds, but on the number of words.
            let entry: [&[u8]; 3] = [b"*", b"f", b"v"];
            let words = match effect.verb {
                Verb::XAdd => &entry[..],
                _ => &effect.words,
            };
            if !may(effect.verb.name(), key, words) {
                let at = at + 1;
                return Err(format!(
                    "NOPERM {at} this user has no permissions to run {} on that key",
                    effect.verb.name()
                )
                .into());
            }
        }
        for (at, (condition, key)) in self.conditions().enumerate() {
            let command = match condition.is {
                Is::Equal(_) => "GET",
                Is::There | Is::Missing => "EXISTS",
            };
            if !may(command, key, &[]) {
                let at = at + 1;
                return Err(format!(
                    "NOPERM IF {at} this user has no permissions to run {command} on that key"
                )
                .into());
            }
        }
        Ok(())
    }
}

/// Whether a condition holds.
fn holds(ctx: &mut Context, condition: &Condition<'_>, name: Name<'_>) -> bool {
    match condition.is {
        Is::There => ctx.look_at(name) != Holds::Nothing,
        Is::Missing => ctx.look_at(name) == Holds::Nothing,
        Is::Equal(text) => ctx.has_text(name, text),
    }
}

/// Repeats an effect of the log on this server.
///
/// Error: the key holds a queue, or the server refuses the command.
pub fn repeat(ctx: &mut Context, key: Name<'_>, effect: &Repeat<'_>) -> Result<(), String> {
    if ctx.look_at(key) == Holds::Queue {
        return Err("the key of an effect holds a queue".into());
    }
    if effect.is_new {
        // It has expired at the primary, which may not be seen here.
        ctx.run_plain::<&[u8]>(b"DEL", key, &[])
            .map_err(|why| why.0)?;
    }
    let Some((command, words)) = effect.words.split_first() else {
        return Ok(());
    };
    let done = ctx.run_plain(command, key, words);
    done.map(|_| ()).map_err(|why| why.0)
}

/// Writes what the plain commands have replied.
pub fn write(reply: Reply<'_>, outcomes: &[Option<Outcome>]) {
    reply.array(outcomes.len());
    for outcome in outcomes {
        match outcome {
            Some(Outcome::Done) => reply.status(c"OK"),
            Some(Outcome::Integer(number)) => reply.integer(*number),
            Some(Outcome::Text(text)) => reply.bulk(text),
            Some(Outcome::Score(text)) => reply.double_text(text),
            None => reply.null(),
        }
    }
}

/// The positions of the keys of effects and conditions among the arguments after the name of a
/// command, and the access to each. `read` finds what the words behind the key apply. None where
/// they are not valid: then the command does nothing.
pub fn keys_in<'w>(
    words: &'w [&'w [u8]],
    read: impl FnOnce(Words<'w>) -> Parsed<Option<Box<Apply<'w>>>>,
) -> Positions {
    // Most commands apply nothing, so their arguments need not be read.
    let may_apply = |word: &&[u8]| word.eq_ignore_ascii_case(b"APPLY");
    if !words.iter().any(may_apply) {
        return Positions::new();
    }
    let found = read(Words::new(words.get(1..).unwrap_or_default()));
    let apply = found.ok().flatten();
    apply.map(|apply| keys_of(&apply)).unwrap_or_default()
}

/// The positions of the keys of effects and conditions among the arguments after the name.
pub fn keys_of(apply: &Apply<'_>) -> Positions {
    let effects = apply.effects.iter().map(|effect| {
        let access = match effect.verb.access() {
            effect::Access::Update => Access::Update,
            effect::Access::ReadUpdate => Access::ReadUpdate,
            effect::Access::Insert => Access::Insert,
            effect::Access::Delete => Access::Delete,
        };
        (effect.at + 1, access)
    });
    let conditions = apply.conditions.iter().map(|condition| {
        let access = match condition.is {
            Is::Equal(_) => Access::Read,
            Is::There | Is::Missing => Access::Measure,
        };
        (condition.at + 1, access)
    });
    effects.chain(conditions).collect()
}

/// An acknowledgement that runs.
struct Running<'c, 'a, 'k> {
    ctx: &'c mut Context,
    of: &'c Applying<'a, 'k>,
}

impl<'k> Running<'_, '_, 'k> {
    fn name(&self, effect: &Effect<'_>) -> Option<Name<'k>> {
        let mut effects = self.of.effects();
        effects
            .find(|(one, _)| one.at == effect.at)
            .map(|(_, name)| name)
    }

    fn ask(&mut self, effect: &Effect<'_>, command: &[u8], words: &[&[u8]]) -> Option<Vec<u8>> {
        let name = self.name(effect)?;
        self.ctx.ask(command, name, words)
    }
}

impl Keys for Running<'_, '_, '_> {
    fn holds(&mut self, effect: &Effect<'_>) -> Holds {
        let name = self.name(effect);
        name.map_or(Holds::Nothing, |name| self.ctx.look_at(name))
    }

    fn number(&mut self, effect: &Effect<'_>) -> Option<Vec<u8>> {
        let name = self.name(effect)?;
        Some(self.ctx.number_of(name)?.into_vec())
    }

    fn field(&mut self, effect: &Effect<'_>, field: &[u8]) -> Option<Vec<u8>> {
        self.ask(effect, b"HGET", &[field])
    }

    fn score(&mut self, effect: &Effect<'_>, member: &[u8]) -> Option<f64> {
        let text = self.ask(effect, b"ZSCORE", &[member])?;
        effect::refusal::double(&text)
    }

    fn last_id(&mut self, effect: &Effect<'_>) -> Option<(u64, u64)> {
        let name = self.name(effect)?;
        self.ctx
            .look_at_stream(name)
            .ok()
            .map(|stream| stream.greatest())
    }
}

impl Server for Running<'_, '_, '_> {
    type Failure = Failure;

    fn begin(&mut self) -> Result<bool, Failure> {
        self.of.check_queue(self.ctx)
    }

    fn check_rights(&mut self) -> Result<(), Failure> {
        self.of.check_rights(self.ctx)
    }

    fn does_hold(&mut self, condition: &Condition<'_>) -> bool {
        let mut conditions = self.of.conditions();
        let found = conditions.find(|(one, _)| one.at == condition.at);
        found.is_some_and(|(_, name)| holds(self.ctx, condition, name))
    }

    fn is_full(&self) -> bool {
        memory::is_full()
    }

    fn now(&self) -> Millis {
        clock::now_ms()
    }

    /// All that the server could refuse was checked before. If it refuses nevertheless, that is
    /// counted and logged.
    fn run(&mut self, effect: &Effect<'_>, found: Holds, repeat: &Repeat<'_>) -> Option<Outcome> {
        let name = self.name(effect)?;
        let (command, words) = repeat.words.split_first()?;
        let done = match found {
            Holds::Queue => Err("the key holds a queue now".to_owned()),
            _ => {
                let done = self.ctx.run_plain(command, name, words);
                done.map_err(|why| why.0)
            }
        };
        done.unwrap_or_else(|why| {
            let (verb, key) = (effect.verb.name(), quote(name.bytes()));
            faults::internal_error(&format!("{verb} of {key} was not applied: {why}"));
            None
        })
    }

    fn log(&mut self, effect: &Effect<'_>, repeat: &Repeat<'_>) {
        if let (Some(name), true) = (self.name(effect), self.ctx.needs_log_entries()) {
            let mut bytes = Vec::new();
            encode(repeat, &mut bytes);
            self.ctx.replicate(name, &bytes);
        }
    }
}
