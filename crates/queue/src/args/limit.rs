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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::testing::{error, words};
    use crate::settings::Rate;

    #[test]
    fn a_limit_has_up_to_four_windows() {
        let rule = LimitRule {
            concurrency: 3,
            weighted: true,
            rates: [(5, 1000), (2, 10)]
                .map(|(count, per)| Rate { count, per })
                .into_iter()
                .collect(),
        };
        let text = "a RATE 5 PER 1000 weight rate 2 PER 10 CONCURRENCY 3";
        words(text, |w| {
            let name = b"a"[..].into();
            assert_eq!(limit(w), Ok(Op::Limit { name, rule }));
        });
        let five = "a".to_owned() + &" RATE 1 PER 1".repeat(5);
        for (text, expected) in [
            (&*five, "ERR RATE may be given at most 4 times"),
            ("a WEIGHT", "ERR WEIGHT needs CONCURRENCY or RATE"),
            (
                "a CONCURRENCY 1 CONCURRENCY 1",
                "ERR CONCURRENCY is given twice",
            ),
            ("a x", "ERR unknown option 'x'"),
            ("", "ERR name needs a value"),
        ] {
            words(text, |w| assert_eq!(error(limit(w)), expected));
        }
    }
}
