//! The options of a message, which SEND, MSEND, ACKSEND, GROUPPUSH and SCHEDULE share.

use std::borrow::Cow;
use std::num::NonZeroU64;

use hashbrown::hash_map::Entry;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::option::{exclude, flag, once, OptionWord};
use super::queue_options::{backoff, retries};
use super::words::{instead, ANY, ERRORS, MS, SOME, SOME_MS};
use super::{Parsed, Words};
use crate::message::after::{After, Batching, Counts, OnFail, Park};
use crate::message::id::NameHasher;
use crate::message::kin::{Children, Kin, Parent};
use crate::message::limited::{Limited, MAX_LIMITS};
use crate::message::score::Score;
use crate::message::{Choices, Header, RareChoices};
use crate::op::{DueTime, Send};
use crate::quote::quote;
use crate::settings::Backoff;
use crate::Millis;

/// The options that only some commands have; every command has the others.
#[derive(Clone, Copy)]
pub struct Scope {
    /// ID, REPLACE and RERUN.
    pub id: bool,
    /// DELAY, AT and EXPIREAT.
    pub due: bool,
    /// GROUP. A command without it accepts SCORE only if it sets
    /// [`MessageOptions::group`] itself.
    pub group: bool,
    /// PARENT, ONDEAD and CHILDREN.
    pub kin: bool,
}

impl Scope {
    /// The options of SEND, and of each NEXT of ACKSEND: all.
    pub const SEND: Scope = Scope {
        id: true,
        due: true,
        group: true,
        kin: true,
    };
    /// The options of MSEND, whose messages cannot share an id.
    pub const MSEND: Scope = Scope {
        id: false,
        ..Scope::SEND
    };
    /// The options of GROUPPUSH, which reads the group from the payload.
    pub const GROUP_PUSH: Scope = Scope {
        group: false,
        ..Scope::SEND
    };
    /// The options of SCHEDULE, whose rule gives the due times and ids.
    pub const SCHEDULE: Scope = Scope {
        id: false,
        due: false,
        kin: false,
        ..Scope::SEND
    };
}

/// The options of a message that have been read so far.
pub struct MessageOptions<'a> {
    scope: Scope,
    /// The value of ID.
    pub id: Option<Cow<'a, [u8]>>,
    /// Whether REPLACE is given.
    pub replace: bool,
    rerun: bool,
    /// The value of DELAY, in ms.
    pub delay: Option<Millis>,
    /// The value of AT, in Unix ms.
    pub at: Option<Millis>,
    /// The value of GROUP.
    pub group: Option<Cow<'a, [u8]>>,
    /// The value of SCORE, which is finite.
    pub score: Option<Score>,
    priority: Option<i8>,
    lease: Option<Millis>,
    retries: Option<i64>,
    backoff: Option<Backoff>,
    ttl: Option<Millis>,
    label: Option<&'a [u8]>,
    headers: Option<Vec<Header>>,
    rare: RareChoices,
    if_group: bool,
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

impl<'a> MessageOptions<'a> {
    /// Starts with no option read.
    pub fn new(scope: Scope) -> Self {
        MessageOptions {
            scope,
            id: None,
            replace: false,
            rerun: false,
            delay: None,
            at: None,
            group: None,
            score: None,
            priority: None,
            lease: None,
            retries: None,
            backoff: None,
            ttl: None,
            label: None,
            headers: None,
            rare: RareChoices::default(),
            if_group: false,
            batch: None,
            after: None,
            on_fail: None,
            limits: None,
            cost: None,
            park: false,
            park_for: None,
            parent: None,
            on_dead: None,
            children: None,
        }
    }

    /// Reads the value of `option` from `words`.
    ///
    /// Errors: this is not an option of a message in this scope, it is given
    /// twice, or its value is not valid.
    pub fn read(&mut self, option: &OptionWord<'a>, words: &mut Words<'a>) -> Parsed<()> {
        let what = option.name();
        match what {
            "ID" if self.scope.id => once(&mut self.id, what, words.name(what)?.into()),
            "REPLACE" if self.scope.id => flag(&mut self.replace, what),
            "RERUN" if self.scope.id => flag(&mut self.rerun, what),
            "DELAY" if self.scope.due => once(&mut self.delay, what, words.number(what, MS)?),
            "AT" if self.scope.due => once(&mut self.at, what, words.number(what, MS)?),
            "GROUP" if self.scope.group => once(&mut self.group, what, words.name(what)?.into()),
            "SCORE" => once(&mut self.score, what, words.score(what)?),
            "PRIORITY" => {
                let priority = words.number(what, i8::MIN..=i8::MAX)?;
                once(&mut self.priority, what, priority)
            }
            "LEASE" => once(&mut self.lease, what, words.number(what, SOME_MS)?),
            "RETRIES" => once(&mut self.retries, what, retries(words, what)?),
            "BACKOFF" => once(&mut self.backoff, what, backoff(words, what)?),
            "TTL" => once(&mut self.ttl, what, words.number(what, MS)?),
            "TYPE" => once(&mut self.label, what, words.name(what)?),
            "RETAIN" => once(&mut self.rare.retain, what, words.number(what, MS)?),
            "EXPIREAT" if self.scope.due => {
                once(&mut self.rare.expire_at, what, words.number(what, MS)?)
            }
            "MAXWAIT" => once(&mut self.rare.max_wait, what, words.number(what, MS)?),
            "MAXTIMEOUTS" => once(&mut self.rare.max_timeouts, what, words.number(what, ANY)?),
            "ERRORS" => once(&mut self.rare.errors, what, words.number(what, ERRORS)?),
            "IFGROUP" => flag(&mut self.if_group, what),
            "BATCH" => once(&mut self.batch, what, words.name(what)?),
            "AFTER" => once(&mut self.after, what, words.name(what)?),
            "ONFAIL" => once(&mut self.on_fail, what, on_fail(words, what)?),
            "LIMITS" => once(&mut self.limits, what, limit_names(words, what)?),
            "COST" => once(&mut self.cost, what, words.number(what, ANY)?),
            "PARK" => flag(&mut self.park, what),
            "FOR" => once(&mut self.park_for, what, words.number(what, SOME_MS)?),
            "PARENT" if self.scope.kin => {
                let parent = (words.key(what)?, words.name(what)?);
                once(&mut self.parent, what, parent)
            }
            "ONDEAD" if self.scope.kin => once(&mut self.on_dead, what, on_fail(words, what)?),
            "CHILDREN" if self.scope.kin => {
                once(&mut self.children, what, words.number(what, SOME)?)
            }
            "HEADERS" => once(&mut self.headers, what, headers(words, what)?),
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

    /// Makes the operation that sends `payloads` with these options.
    ///
    /// Errors: two options exclude each other, or an option needs another one.
    pub fn send(self, payloads: SmallVec<[&'a [u8]; 1]>) -> Parsed<Send<'a>> {
        exclude(("DELAY", self.delay.is_some()), ("AT", self.at.is_some()))?;
        if self.score.is_some() && self.group.is_none() {
            return Err("ERR SCORE needs GROUP".into());
        }
        if self.replace && self.id.is_none() {
            return Err("ERR REPLACE needs an id".into());
        }
        if self.rerun && !self.replace {
            return Err("ERR RERUN needs REPLACE".into());
        }
        if self.rare.max_wait.is_some() && !self.replace {
            return Err("ERR MAXWAIT needs REPLACE".into());
        }
        if self.if_group && self.group.is_none() {
            return Err("ERR IFGROUP needs GROUP".into());
        }
        let expires = ("EXPIREAT", self.rare.expire_at.is_some());
        exclude(("TTL", self.ttl.is_some()), expires)?;
        let rare = RareChoices {
            batching: self.batching()?,
            kin: self.kin()?,
            limited: (self.limits.is_some() || self.cost.is_some()).then(|| {
                Box::new(Limited {
                    names: self.limits.unwrap_or_default(),
                    cost: self.cost.unwrap_or(1),
                })
            }),
            ..self.rare
        };
        Ok(Send {
            payloads,
            id: self.id,
            replace: self.replace,
            rerun: self.rerun,
            due: match (self.delay, self.at) {
                (Some(ms), _) => DueTime::After(ms),
                (None, Some(ms)) => DueTime::At(ms),
                (None, None) => DueTime::Now,
            },
            group: self.group,
            priority: self.priority.unwrap_or(0),
            choices: Choices {
                score: self.score,
                lease: self.lease.and_then(NonZeroU64::new),
                retries: self.retries,
                backoff: self.backoff,
                ttl: self.ttl,
                label: self.label.map(Into::into),
                headers: self.headers.unwrap_or_default().into(),
                rare: (rare != RareChoices::default()).then(|| Box::new(rare)),
            },
            if_group: self.if_group,
            new_salt: None,
        })
    }
}

/// The value of PARK with its FOR, if it is given.
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

/// Reads `n field value ...`. A field that is given more than once keeps its
/// first position and its last value. O(n).
fn headers(words: &mut Words<'_>, what: &str) -> Parsed<Vec<Header>> {
    let count = words.count(what, 2)?;
    let mut headers: Vec<Header> = Vec::with_capacity(count);
    let mut positions: HashMap<&[u8], usize, NameHasher> = HashMap::default();
    for _ in 0..count {
        let field = words.bytes(what)?;
        let value = words.bytes(what)?;
        match positions.entry(field) {
            Entry::Vacant(place) => {
                place.insert(headers.len());
                headers.push((field.into(), value.into()));
            }
            Entry::Occupied(place) => {
                if let Some(header) = headers.get_mut(*place.get()) {
                    header.1 = value.into();
                }
            }
        }
    }
    Ok(headers)
}
