//! Encodes the rule of a limit with a name.

use super::{put_rate, rate};
use crate::codec::bounds::{EXACT, WINDOWS};
use crate::codec::wire::{put_number, Reader};
use crate::limits::Invalid;
use crate::named_limits::LimitRule;

/// Writes a rule, but not whether it counts costs.
pub fn put_limit_rule(out: &mut Vec<u8>, rule: &LimitRule) {
    put_number(out, rule.concurrency);
    put_number(out, rule.rates.len() as u64);
    for rate in &rule.rates {
        put_rate(out, Some(*rate));
    }
}

/// Reads the output of [`put_limit_rule`]. The caller checks the rule.
///
/// Errors: there are too many windows, or one is out of range.
pub fn limit_rule(reader: &mut Reader, weighted: bool) -> Result<LimitRule, Invalid> {
    let concurrency = reader.number(&EXACT)?;
    let count = reader.number(&WINDOWS)?;
    let rates = (0..count).map(|_| rate(reader)?.ok_or(Invalid("a window allows nothing")));
    Ok(LimitRule {
        concurrency,
        weighted,
        rates: rates.collect::<Result<_, Invalid>>()?,
    })
}
