//! The options of a message that few messages have. They are read into a box of their own, so that a
//! message without them pays nothing.

use std::num::NonZeroU64;

use super::option::{exclude, flag, once, OptionWord};
use super::scope::Scope;
use super::words::{instead, ANY, ERRORS, MS, SOME, SOME_MS};
use super::{Parsed, Words};
use crate::message::after::{After, Batching, Counts, OnFail, Park};
use crate::message::kin::{Children, Kin, Parent};
use crate::message::limited::{Limited, MAX_LIMITS};
use crate::message::RareChoices;
use crate::op::DedupId;
use crate::quote::quote;
use crate::Millis;

/// The properties of the other options that [`RareOptions`] must know.
pub struct Others {
    /// Whether REPLACE is given.
    pub replace: bool,
    /// Whether the message has a group.
    pub group: bool,
    /// Whether TTL is given.
    pub ttl: bool,
}

/// The rare options that have been read so far.
#[derive(Default)]
pub struct RareOptions<'a> {
    /// Whether RERUN is given.
    pub rerun: bool,
    /// Whether IFGROUP is given.
    pub if_group: bool,
    /// The value of DEDUPID.
    pub dedup: Option<Box<DedupId>>,
    choices: RareChoices,
    batch: Option<&'a [u8]>,
    after: Option<&'a [u8]>,
    on_fail: Option<OnFail>,
    limits: Option<Box<[Box<[u8]>]>>,
    cost: Option<u64>,
    park: bool,
    park_for: Option<Millis>,
    parent: Option<(&'a [u8], &'a [u8])>,
    on_dead: Option<OnFail>,
    children: Option<u64>,
}

impl<'a> RareOptions<'a> {
    /// Reads the value of `option` from `words`.
    ///
    /// Errors: this is not an option of a message in this scope, it is given
    /// twice, or its value is not valid.
    #[cold]
    pub fn read(
        &mut self,
        scope: Scope,
        option: &OptionWord<'a>,
        words: &mut Words<'a>,
    ) -> Parsed<()> {
        let what = option.name();
        let choices = &mut self.choices;
        match what {
            "RERUN" if scope.id => flag(&mut self.rerun, what),
            "DEDUPID" if scope.id => {
                let (name, ms) = (words.name(what)?, words.number(what, SOME_MS)?);
                let name = name.into();
                once(&mut self.dedup, what, Box::new(DedupId { name, ms }))
            }
            "RETAIN" => once(&mut choices.retain, what, words.number(what, MS)?),
            "EXPIREAT" if scope.due => once(&mut choices.expire_at, what, words.number(what, MS)?),
            "MAXWAIT" => once(&mut choices.max_wait, what, words.number(what, MS)?),
            "MAXTIMEOUTS" => once(&mut choices.max_timeouts, what, words.number(what, ANY)?),
            "ERRORS" => once(&mut choices.errors, what, words.number(what, ERRORS)?),
            "IFGROUP" => flag(&mut self.if_group, what),
            "BATCH" => once(&mut self.batch, what, words.name(what)?),
            "AFTER" => once(&mut self.after, what, words.name(what)?),
            "ONFAIL" => once(&mut self.on_fail, what, on_fail(words, what)?),
            "LIMITS" => once(&mut self.limits, what, limit_names(words, what)?),
            "COST" => once(&mut self.cost, what, words.number(what, ANY)?),
            "PARK" => flag(&mut self.park, what),
            "FOR" => once(&mut self.park_for, what, words.number(what, SOME_MS)?),
            "PARENT" if scope.kin => {
                let parent = (words.key(what)?, words.name(what)?);
                once(&mut self.parent, what, parent)
            }
            "ONDEAD" if scope.kin => once(&mut self.on_dead, what, on_fail(words, what)?),
            "CHILDREN" if scope.kin => once(&mut self.children, what, words.number(what, SOME)?),
            _ => Err(option.unknown()),
        }
    }

    /// The values of BATCH, AFTER, ONFAIL and PARK, if any is given.
    ///
    /// Errors: ONFAIL is given without AFTER or FOR without PARK, or AFTER names the BATCH.
    fn batching(&self) -> Parsed<Option<Box<Batching>>> {
        if self.on_fail.is_some() && self.after.is_none() {
            return Err("ERR ONFAIL needs AFTER".into());
        }
        let park = park(self.park, self.park_for)?;
        if self.batch.is_none() && self.after.is_none() && park.is_none() {
            return Ok(None);
        }
        let after = self.after.map(|batch| After {
            batch: batch.into(),
            on_fail: self.on_fail.unwrap_or_default(),
            counts: Counts::default(),
        });
        let batching = Batching {
            batch: self.batch.map(Into::into),
            after,
            park,
        };
        match batching.is_after_itself() {
            true => Err("ERR AFTER and BATCH name the same batch".into()),
            false => Ok(Some(Box::new(batching))),
        }
    }

    /// The values of PARENT, ONDEAD and CHILDREN, if any is given.
    ///
    /// Errors: ONDEAD is given without PARENT.
    fn kin(&self) -> Parsed<Option<Box<Kin>>> {
        if self.on_dead.is_some() && self.parent.is_none() {
            return Err("ERR ONDEAD needs PARENT".into());
        }
        if self.parent.is_none() && self.children.is_none() {
            return Ok(None);
        }
        let parent = self.parent.map(|(key, id)| Parent {
            key: key.into(),
            id: id.into(),
            on_dead: self.on_dead.unwrap_or_default(),
        });
        let children = self.children.map(|total| Box::new(Children::new(total)));
        Ok(Some(Box::new(Kin { parent, children })))
    }

    /// Makes the rare choices of a message. `None` if all of them have their defaults.
    ///
    /// Errors: two options exclude each other, or an option needs another one.
    #[cold]
    pub fn choices(&mut self, others: &Others) -> Parsed<Option<Box<RareChoices>>> {
        if self.rerun && !others.replace {
            return Err("ERR RERUN needs REPLACE".into());
        }
        if self.choices.max_wait.is_some() && !others.replace {
            return Err("ERR MAXWAIT needs REPLACE".into());
        }
        if self.if_group && !others.group {
            return Err("ERR IFGROUP needs GROUP".into());
        }
        let expires = ("EXPIREAT", self.choices.expire_at.is_some());
        exclude(("TTL", others.ttl), expires)?;
        let is_limited = self.limits.is_some() || self.cost.is_some();
        let choices = RareChoices {
            batching: self.batching()?,
            kin: self.kin()?,
            limited: is_limited.then(|| {
                Box::new(Limited {
                    names: self.limits.take().unwrap_or_default(),
                    cost: self.cost.unwrap_or(1),
                })
            }),
            ..std::mem::take(&mut self.choices)
        };
        Ok((choices != RareChoices::default()).then(|| Box::new(choices)))
    }
}

/// The value of PARK, with its FOR, if PARK is given.
///
/// Errors: FOR is given without PARK.
pub fn park(is_given: bool, ms: Option<Millis>) -> Parsed<Option<Park>> {
    match (is_given, ms) {
        (false, Some(_)) => Err("ERR FOR needs PARK".into()),
        (false, None) => Ok(None),
        (true, ms) => Ok(Some(Park {
            ms: ms.and_then(NonZeroU64::new),
        })),
    }
}

fn on_fail(words: &mut Words<'_>, what: &str) -> Parsed<OnFail> {
    let choices = OnFail::ALL.map(|on_fail| (on_fail.name(), on_fail));
    words.choice(what, "HOLD, GO or DIE", &choices)
}

/// Reads `n name ...`, 1 to 8 names, each once and without `*`.
fn limit_names(words: &mut Words<'_>, what: &str) -> Parsed<Box<[Box<[u8]>]>> {
    let word = words.peek();
    let count = words.count(what, 1)?;
    if count > MAX_LIMITS {
        let expected = format!("an integer from 1 to {MAX_LIMITS}");
        return Err(instead(what, expected, word.unwrap_or_default()));
    }
    let mut names: Vec<Box<[u8]>> = Vec::with_capacity(count);
    for _ in 0..count {
        let name = words.name(what)?;
        if name.contains(&b'*') {
            return Err(instead(what, "names without *", name));
        }
        if names.iter().any(|known| **known == *name) {
            return Err(format!("ERR LIMITS names {} twice", quote(name)).into());
        }
        names.push(name.into());
    }
    Ok(names.into())
}
