//! Reads the arguments of LIMIT.

use super::option::{flag, once};
use super::queue_options::rate;
use super::words::ANY;
use super::{Parsed, Words};
use crate::named_limits::{LimitRule, MAX_WINDOWS};
use crate::op::Op;

/// Reads the arguments of LIMIT: `name [CONCURRENCY n] [RATE n PER ms] ... [WEIGHT]`
pub fn limit(mut words: Words<'_>) -> Parsed<Op<'_>> {
    let name = words.name("name")?.into();
    let (mut concurrency, mut weighted) = (None, false);
    let mut rule = LimitRule::default();
    while let Some(option) = words.option() {
        match option.name() {
            what @ "CONCURRENCY" => once(&mut concurrency, what, words.number(what, ANY)?)?,
            what @ "WEIGHT" => flag(&mut weighted, what)?,
            what @ "RATE" => {
                rule.rates.extend(rate(&mut words, what)?);
                if rule.rates.len() > MAX_WINDOWS {
                    let most = MAX_WINDOWS;
                    return Err(format!("ERR RATE may be given at most {most} times").into());
                }
            }
            _ => return Err(option.unknown()),
        }
    }
    rule.concurrency = concurrency.unwrap_or(0);
    rule.weighted = weighted;
    if weighted && rule.is_open() {
        return Err("ERR WEIGHT needs CONCURRENCY or RATE".into());
    }
    Ok(Op::Limit { name, rule })
}
