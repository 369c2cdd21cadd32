//! Families: the queues `f:{tag}`, which together are one.

use std::collections::HashSet;
use std::time::Duration;

use redis::Value;

use super::keys::{self, Scan};
use super::record::{bytes, unexpected, Record};
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::time_text::Millis;

/// Maximum number of partitions.
const MOST: u64 = 16_384;

/// Returns the family of a queue with this name, if it is the name of a partition.
pub fn of(name: &[u8]) -> Option<&[u8]> {
    let rest = name.strip_suffix(b"}")?;
    let open = rest.iter().position(|c| *c == b'{')?;
    let (family, tag) = (rest.get(..open)?, rest.get(open + 1..)?);
    let family = family.strip_suffix(b":")?;
    let plain = |part: &[u8]| !part.is_empty() && !part.iter().any(|c| matches!(c, b'{' | b'}'));
    (plain(family) && plain(tag)).then_some(family)
}

/// Returns how a family is written in lists: `mails:{*}`.
pub fn shown(family: &[u8]) -> Vec<u8> {
    [family, b":{*}"].concat()
}

/// The sum of a family over all servers, from DQ.NINFO.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    /// The number of its queues.
    pub queues: u64,
    /// Figures that are added up, by their names in DQ.NINFO.
    pub counts: Vec<(String, u64)>,
    /// How long the oldest ready message has waited.
    pub oldest_ready_age: Option<Millis>,
    /// How long the oldest message has been due that was not delivered.
    pub oldest_due_age: Option<Millis>,
    /// Lateness p50, p99 and maximum: of the server where it is highest.
    pub lateness: [Option<Millis>; 3],
}

/// The names of the three figures of lateness.
pub const LATENESS: [&str; 3] = ["lateness-p50", "lateness-p99", "lateness-max"];

impl Sum {
    /// Returns a figure that is added up, by its name in DQ.NINFO. 0 if there is none.
    pub fn count(&self, name: &str) -> u64 {
        let found = self.counts.iter().find(|(known, _)| known == name);
        found.map_or(0, |(_, count)| *count)
    }

    /// Returns how long the oldest message is overdue, if the servers report it.
    pub fn overdue(&self) -> Option<Millis> {
        self.oldest_due_age.max(self.oldest_ready_age)
    }

    fn add(&mut self, node: &Record) {
        self.queues += node.count("queues");
        self.oldest_ready_age = self.oldest_ready_age.max(node.number("oldest-ready-age"));
        self.oldest_due_age = self.oldest_due_age.max(node.number("oldest-due-age"));
        for (late, field) in self.lateness.iter_mut().zip(LATENESS) {
            *late = (*late).max(node.number(field));
        }
        for (name, value) in node.fields() {
            let name = bytes(name).map(String::from_utf8_lossy).unwrap_or_default();
            let other = name == "queues" || name.starts_with("oldest-");
            let (Value::Int(more), false) = (value, other || LATENESS.contains(&&*name)) else {
                continue;
            };
            let more = u64::try_from(*more).unwrap_or(0);
            match self.counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += more,
                None => self.counts.push((name.into_owned(), more)),
            }
        }
    }
}

/// Asks every server for its part of a family, and adds them up.
pub fn sum(server: &mut Server, family: &[u8]) -> Result<Sum, Failure> {
    let mut sum = Sum::default();
    for node in 0..server.look()? {
        let reply = server.call_on(node, &verb("DQ.NINFO", family))?;
        sum.add(&Record::of(reply)?);
    }
    Ok(sum)
}

/// Returns the names of the queues of a family, sorted. It is an error if there are none.
///
/// DQ.NINFO tells how many there are, and DQ.PARTITIONS their names, which costs less than
/// going over all keys. That is done only where the two do not fit, as with tags that
/// somebody else has chosen, or a user who may not call them.
pub fn queues(server: &mut Server, family: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
    let mut found = match sum(server, family) {
        Ok(sum) => partitions(server, family, sum.queues)?,
        Err(Failure::Refused(_)) => None,
        Err(failure) => return Err(failure),
    };
    if found.is_none() {
        let pattern = [&glob(family)[..], b":{?*}"].concat();
        let mut scan = Scan::default();
        while found.is_none() {
            found = scan.step(server, Some(&pattern), Duration::MAX)?;
        }
    }
    let mut found = found.unwrap_or_default();
    found.retain(|name| of(name) == Some(family));
    found.sort();
    match found.is_empty() {
        true => Err(Failure::mistake("no queue of such a family")),
        false => Ok(found),
    }
}

/// Returns the names of the queues that exist, if for some number exactly `queues` of the
/// names that DQ.PARTITIONS gives exist.
fn partitions(
    server: &mut Server,
    family: &[u8],
    queues: u64,
) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    let least = queues.next_power_of_two();
    // A queue may be missing because nothing was ever sent to it.
    for partitions in [least, least.saturating_mul(2)] {
        if queues == 0 || partitions > MOST {
            break;
        }
        let mut cmd = verb("DQ.PARTITIONS", family);
        cmd.arg(partitions);
        let Value::Array(names) = server.call(&cmd)? else {
            return Err(unexpected());
        };
        let names: HashSet<Vec<u8>> = names
            .iter()
            .filter_map(|name| bytes(name).map(<[u8]>::to_vec))
            .collect();
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort();
        let infos = keys::infos(server, &names)?;
        let mut exists = infos.iter().map(Result::is_ok);
        names.retain(|_| exists.next().unwrap_or(false));
        if names.len() as u64 == queues {
            return Ok(Some(names));
        }
    }
    Ok(None)
}

/// Returns a pattern that matches exactly this text.
pub fn glob(text: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(text.len());
    for byte in text {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b'^' | b'-') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::record;

    #[test]
    fn partitions_have_a_family() {
        for (name, family) in [
            ("mails:{3}", Some("mails")),
            ("a:b:{xyz}", Some("a:b")),
            ("mails", None),
            ("mails:{}", None),
            ("mails:{3}:x", None),
            (":{3}", None),
            ("mails{3}", None),
            ("{a}mails:{3}", None),
            ("mails:{a{b}", None),
        ] {
            assert_eq!(of(name.as_bytes()), family.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn the_nodes_of_a_family_are_added_up() {
        let node = |queues, ready, age, p99| {
            record(&[
                ("queues", Value::Int(queues)),
                ("ready", Value::Int(ready)),
                ("oldest-ready-age", age),
                ("oldest-due-age", Value::Int(50 + queues)),
                ("lateness-p99", Value::Int(p99)),
                ("blocked-clients", Value::Int(1)),
            ])
        };
        let mut sum = Sum::default();
        sum.add(&node(2, 5, Value::Nil, 70));
        sum.add(&node(1, 4, Value::Int(9), 30));
        assert_eq!((sum.queues, sum.oldest_ready_age), (3, Some(9)));
        assert_eq!(sum.overdue(), Some(52), "ages are not added up");
        assert_eq!(sum.lateness, [None, Some(70), None]);
        let counts = [("ready".to_owned(), 9), ("blocked-clients".to_owned(), 2)];
        assert_eq!(sum.counts, counts);
    }

    #[test]
    fn a_pattern_of_a_text_matches_only_it() {
        assert_eq!(glob(b"a*[b]?\\"), b"a\\*\\[b\\]\\?\\\\");
    }
}
