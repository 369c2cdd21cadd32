//! The options of a message, which SEND, MSEND, ACKSEND, GROUPPUSH and SCHEDULE share.

use std::borrow::Cow;
use std::num::NonZeroU64;

use hashbrown::hash_map::Entry;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::option::{exclude, flag, once, OptionWord};
use super::queue_options::{backoff, retries};
use super::rare_options::{Others, RareOptions};
use super::scope::Scope;
use super::words::{MS, SOME_MS};
use super::{Parsed, Words};
use crate::message::id::NameHasher;
use crate::message::score::Score;
use crate::message::{Choices, Header};
use crate::op::{DueTime, Send};
use crate::settings::Backoff;
use crate::Millis;

/// The options of a message that have been read so far.
pub struct MessageOptions<'a> {
    scope: Scope,
    /// The value of ID.
    pub id: Option<Cow<'a, [u8]>>,
    /// Whether REPLACE is given.
    pub replace: bool,
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
    rare: Option<Box<RareOptions<'a>>>,
}

impl<'a> MessageOptions<'a> {
    /// Starts with no option read.
    pub fn new(scope: Scope) -> Self {
        MessageOptions {
            scope,
            id: None,
            replace: false,
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
            rare: None,
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
            "HEADERS" => once(&mut self.headers, what, headers(words, what)?),
            _ => (self.rare.get_or_insert_default()).read(self.scope, option, words),
        }
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
        let others = Others {
            replace: self.replace,
            group: self.group.is_some(),
            ttl: self.ttl.is_some(),
        };
        let mut rare = self.rare;
        let choices = match &mut rare {
            Some(rare) => rare.choices(&others)?,
            None => None,
        };
        Ok(Send {
            payloads,
            id: self.id,
            replace: self.replace,
            rerun: rare.as_ref().is_some_and(|rare| rare.rerun),
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
                rare: choices,
            },
            if_group: rare.as_ref().is_some_and(|rare| rare.if_group),
            dedup: rare.and_then(|rare| rare.dedup),
            new_salt: None,
        })
    }
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
