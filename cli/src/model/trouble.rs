//! The trouble of queues: messages that do not go on until somebody does something.

use serde_json::{json, Value as Json};

use super::batch::Batch;
use super::children::part;
use super::group::Why;
use super::limit::Limit;
use super::listing;
use super::queue::Queue;
use super::record::Record;
use crate::failure::Failure;
use crate::server::{verb, Server};
use crate::text::{plural, printable};
use crate::time_text::{span, Millis};

/// Number of held messages of a queue that are looked at, the oldest first.
const LOOKED: usize = 20;

/// Number of batches and limits of a queue that are looked at.
const LISTED: usize = 100;

/// The age from which an overdue message may wait for a limit that never has room.
const OVERDUE: Millis = 60_000;

/// One trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// One word for programs.
    pub code: &'static str,
    /// The words for people, without the age.
    pub words: String,
    /// For how long it has been so, in ms, if that is known.
    pub age: Option<Millis>,
}

impl Trouble {
    /// Returns it for people, with its age.
    pub fn sentence(&self) -> String {
        match self.age {
            Some(age) => format!("{}, {}", self.words, span(age)),
            None => self.words.clone(),
        }
    }

    /// Returns it as JSON.
    pub fn json(&self) -> Json {
        json!({ "code": self.code, "words": self.words, "age": self.age })
    }
}

/// Returns what DQ.INFO tells of it.
pub fn of_info(info: &Record) -> Vec<Trouble> {
    let mut found = Vec::new();
    let mut add = |code, words: String| {
        found.push(Trouble {
            code,
            words,
            age: None,
        })
    };
    for (code, field, what) in [
        ("deadto", "deadto-error", "DEADTO stopped"),
        ("events", "events-error", "EVENTS stopped"),
        ("detached", "detached", "cut off"),
    ] {
        let why = info.text(field);
        if !why.is_empty() {
            add(code, format!("{what}: {why}"));
        }
    }
    if info.count("waits-for-slot") > 0 {
        add("slot", "waits for keys of its slot".to_owned());
    }
    found
}

/// Returns whether a queue has anything that `look` may find.
pub fn may_have(queue: &Queue) -> bool {
    queue.count("held") > 0 || is_late(queue)
}

/// Looks at the messages of each queue that wait, at a bounded number of them, in few round trips.
/// A user who may not see them sees no trouble.
pub fn look(server: &mut Server, queues: &[Queue]) -> Result<Vec<Vec<Trouble>>, Failure> {
    let is_held = |queue: &Queue| queue.count("held") > 0;
    let messages = listing::of_queues(server, queues, |queue| {
        let mut cmd = verb("DQ.LIST", &queue.name);
        cmd.arg("held").arg("COUNT").arg(LOOKED);
        is_held(queue).then_some(cmd)
    })?;
    let batches = listing::of_queues(server, queues, |queue| {
        let mut cmd = verb("DQ.BATCHES", &queue.name);
        cmd.arg("COUNT").arg(LISTED);
        (is_held(queue) && queue.batches > 0).then_some(cmd)
    })?;
    let limits = listing::of_queues(server, queues, |queue| {
        let mut cmd = verb("DQ.LIMITS", &queue.name);
        cmd.arg("COUNT").arg(LISTED);
        is_late(queue).then_some(cmd)
    })?;
    let explain = |(queue, message): (&Queue, &Record)| {
        let mut cmd = verb("DQ.EXPLAIN", &queue.name);
        cmd.arg(message.bytes("id"));
        cmd
    };
    let each = queues.iter().zip(&messages);
    let each = each.flat_map(|(queue, messages)| messages.iter().map(move |one| (queue, one)));
    let cmds: Vec<_> = each.map(explain).collect();
    let mut whys = server.pipeline(&cmds)?.into_iter();
    let mut all = Vec::with_capacity(queues.len());
    let listed = messages.iter().zip(batches.iter().zip(&limits));
    for (queue, (messages, (batches, limits))) in queues.iter().zip(listed) {
        let mut reasons = Vec::with_capacity(messages.len());
        for reply in whys.by_ref().take(messages.len()) {
            reasons.push(match reply {
                Err(Failure::Refused(_)) => None,
                reply => Why::of(reply?)?,
            });
        }
        let only_dead = batches.iter().map(Batch::of).filter(Batch::is_only_dead);
        let only_dead: Vec<_> = only_dead.map(|one| printable(&one.name)).collect();
        let mut found = held(messages, &reasons, &only_dead, queue.now);
        let never = limits.iter().filter(|one| Limit::of(one).is_never).count() as u64;
        if never > 0 {
            found.push(Trouble {
                code: "never",
                words: format!("{} that never allows what waits", plural(never, "limit")),
                age: queue.overdue(),
            });
        }
        all.push(found);
    }
    Ok(all)
}

/// Returns whether ready messages may wait for a limit that never has room.
fn is_late(queue: &Queue) -> bool {
    queue.overdue().is_some_and(|age| age >= OVERDUE) && queue.count("ready") > 0
}

/// Returns the trouble of held messages, with why each is held, and the batches that only dead
/// messages keep open.
fn held(
    messages: &[Record],
    whys: &[Option<Why>],
    only_dead: &[String],
    now: Millis,
) -> Vec<Trouble> {
    let mut found: Vec<Trouble> = Vec::new();
    for (message, why) in messages.iter().zip(whys) {
        let Some(why) = why else { continue };
        let children = part(message, "children");
        let are_dead =
            children.is_some_and(|counts| counts.count("pending") == 0 && counts.count("dead") > 0);
        let (code, words) = match why.code.as_str() {
            "parked" if why.until.is_none() => ("parked", "parked without an end"),
            "batch-open" if only_dead.contains(&why.by) => {
                ("dead-batch", "held by a batch with dead messages")
            }
            "parked" | "batch-open" => continue,
            _ if are_dead => ("dead-child", "held by dead children"),
            _ => continue,
        };
        let sent = message.number("sent-at");
        let age = sent.map(|at| now.saturating_sub(at));
        match found.iter_mut().find(|known| known.code == code) {
            Some(known) => known.age = known.age.max(age),
            None => found.push(Trouble {
                code,
                words: words.to_owned(),
                age,
            }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::model::record::record;

    #[test]
    fn what_is_held_by_something_dead_is_told_from_what_goes_on() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let children = |pending, dead| {
            let counts = [("pending", pending), ("dead", dead)];
            Value::Map(counts.map(|(name, n)| (text(name), Value::Int(n))).to_vec())
        };
        let why = |code: &str, by: &str, until| {
            Some(Why {
                code: code.to_owned(),
                by: by.to_owned(),
                until,
                ..Why::default()
            })
        };
        let cases = [
            (children(1, 1), why("children", "", None)),
            (children(0, 2), why("children", "", None)),
            (Value::Nil, why("parked", "", Some(99))),
            (Value::Nil, why("parked", "", None)),
            (Value::Nil, why("batch-open", "goes-on", None)),
            (Value::Nil, why("batch-open", "stuck", None)),
            (Value::Nil, None),
        ];
        let (messages, whys): (Vec<Record>, Vec<_>) = cases
            .into_iter()
            .zip(1..)
            .map(|((children, why), n)| {
                let fields = [("children", children), ("sent-at", Value::Int(n * 100))];
                (record(&fields), why)
            })
            .unzip();
        let found = held(&messages, &whys, &["stuck".to_owned()], 1000);
        let codes: Vec<_> = found.iter().map(|one| (one.code, one.age)).collect();
        let wanted = [
            ("dead-child", Some(800)),
            ("parked", Some(600)),
            ("dead-batch", Some(400)),
        ];
        assert_eq!(codes, wanted);
        assert_eq!(found[0].sentence(), "held by dead children, 800ms");
        let info = record(&[
            ("deadto-error", text("WRONGTYPE")),
            ("events-error", Value::Nil),
        ]);
        let found: Vec<_> = of_info(&info).iter().map(Trouble::sentence).collect();
        assert_eq!(found, ["DEADTO stopped: WRONGTYPE"]);
    }
}
