//! Pairs of options: those of one message, and those of a queue with those of its messages.
//!
//! Each pair that the parser takes has a world of its own, in which one message has both options. The
//! names of the options come from the parser's source, so a new one that no pair has is an error. A
//! pair is walked if the text of any list has it.

mod samples;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::lists::{self, List};
use dq_queue::args::{self, Words};
use samples::{Sample, OF_MESSAGES, OF_QUEUES};

/// The source of the parser, where each option is an arm of a match.
const OF_MESSAGES_READ: &str = concat!(
    include_str!("../../../crates/queue/src/args/message_options.rs"),
    include_str!("../../../crates/queue/src/args/rare_options.rs"),
);
const OF_QUEUES_READ: &str = include_str!("../../../crates/queue/src/args/queue_options.rs");

/// The number of actions of the longest paths in the world of a pair.
const DEPTH: usize = 4;
/// The greatest length of a payload, in bytes.
const MAX_PAYLOAD: u64 = 16;

/// Two options: both of a message, or one of a queue and one of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Whether the first is an option of the queue.
    pub is_of_queue: bool,
    /// The names.
    pub names: [&'static str; 2],
}

/// The world of each pair that can meet.
pub fn lists() -> &'static [List] {
    static ALL: OnceLock<Vec<List>> = OnceLock::new();
    ALL.get_or_init(|| all().filter_map(|pair| list(pair).ok()).collect())
}

fn all() -> impl Iterator<Item = Pair> {
    let of_messages = OF_MESSAGES.iter().enumerate().flat_map(|(at, one)| {
        let others = OF_MESSAGES.iter().skip(at + 1);
        others.map(|other| Pair {
            is_of_queue: false,
            names: [one.name(), other.name()],
        })
    });
    let of_queues = OF_QUEUES.iter().flat_map(|one| {
        OF_MESSAGES.iter().map(|other| Pair {
            is_of_queue: true,
            names: [one.name(), other.name()],
        })
    });
    of_messages.chain(of_queues)
}

/// The samples with these names, and all that they need, each once.
fn with_needs(samples: &'static [Sample], names: &[&str]) -> Vec<&'static Sample> {
    let needed = samples.iter().filter(|one| {
        let mut named = samples.iter().filter(|other| names.contains(&other.name()));
        names.contains(&one.name()) || named.any(|other| other.needs.contains(&one.name()))
    });
    needed.collect()
}

fn joined(samples: &[&'static Sample]) -> String {
    let texts: Vec<_> = samples.iter().map(|sample| sample.text).collect();
    texts.join(" ")
}

/// The world of a pair.
///
/// # Errors
/// The parser's reason why the two cannot meet.
fn list(pair: Pair) -> Result<List, String> {
    let [one, other] = pair.names;
    let names = if pair.is_of_queue {
        vec!["ID", other]
    } else {
        vec!["ID", one, other]
    };
    let of_message = with_needs(OF_MESSAGES, &names);
    let has = |name: &str| of_message.iter().any(|sample| sample.name() == name);
    let text = joined(&of_message);
    takes(&text)?;
    let mut of_queue = with_needs(OF_QUEUES, &[one]);
    of_queue.retain(|_| pair.is_of_queue);
    let is_manual = pair.is_of_queue && one == "CLOCK";
    let closes = pair.is_of_queue && one == "SENDS";
    of_queue.retain(|_| !closes);
    let gives_retries = of_queue.iter().any(|sample| sample.name() == "RETRIES");
    let retries = if gives_retries { "" } else { " RETRIES 1" };
    let mut setup = vec![format!("CREATE q{retries} {}", joined(&of_queue))
        .trim_end()
        .to_owned()];
    if has("LIMITS") {
        setup.push("LIMIT q l CONCURRENCY 1".to_owned());
    }
    if has("PARENT") {
        setup.push("SEND p w ID p CHILDREN 1".to_owned());
    }
    let mut actions = vec![format!("SEND q v {text}")];
    // Another message, which some options are about.
    let is_about = ["REPLACE", "IFGROUP", "AFTER"].iter().any(|name| has(name));
    if is_about || !pair.is_of_queue {
        let id = if has("REPLACE") { "a" } else { "z" };
        actions.push(format!("SEND q w ID {id} GROUP g BATCH y"));
    }
    let others = ["FETCH q LEASE 8", "ACK q @1", "NACK q @1", "REDRIVE q ALL"];
    actions.extend(others.map(str::to_owned));
    let time: &[&str] = match is_manual {
        true => &["TICK q ADVANCE 4"],
        false => &["CLOCK", "TIMER q"],
    };
    actions.extend(time.iter().map(|text| (*text).to_owned()));
    if has("PARK") {
        actions.push("SIGNAL q a DATA s".to_owned());
    }
    if has("CHILDREN") {
        actions.push("SEND c w ID k PARENT q a".to_owned());
    }
    if closes {
        actions.push("ALTER q SENDS OFF".to_owned());
    }
    Ok(List {
        name: kept(format!("{one} {other}")),
        setup: kept_all(setup),
        actions: kept_all(actions),
        depth: DEPTH,
        is_pair: true,
        ..lists::LIST
    })
}

/// Whether the parser takes these options of a message together.
///
/// # Errors
/// Its words if it does not.
fn takes(text: &str) -> Result<(), String> {
    let text = format!("v {}", text.replace('+', ""));
    let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
    let read = args::send::send(Words::new(&words), MAX_PAYLOAD);
    read.map(|_| ()).map_err(|error| error.0.into_owned())
}

/// Lists live as long as the program.
fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn kept_all(texts: Vec<String>) -> &'static [&'static str] {
    Box::leak(texts.into_iter().map(kept).collect())
}

/// The options that a match of the parser has as arms.
fn arms(source: &'static str) -> BTreeSet<&'static str> {
    let arms = source.lines().filter_map(|line| {
        let (name, rest) = line.trim().strip_prefix('"')?.split_once('"')?;
        let is_arm = rest.contains("=>") && rest.trim_start().starts_with(['=', 'i']);
        is_arm.then_some(name)
    });
    arms.collect()
}

fn names(samples: &'static [Sample]) -> BTreeSet<&'static str> {
    samples.iter().map(Sample::name).collect()
}

/// The pairs in the commands of a list.
fn walked(list: &List) -> BTreeSet<Pair> {
    let texts = || list.setup.iter().chain(list.actions);
    let of = |samples, verbs: &[&str]| {
        let texts = texts().filter(|text| verbs.contains(&text.split(' ').next().unwrap_or("")));
        let named = move |text: &&str| -> Vec<&'static str> {
            let known = names(samples).into_iter();
            known
                .filter(|name| text.split(' ').any(|word| word == *name))
                .collect()
        };
        texts.map(named).collect::<Vec<_>>()
    };
    let of_messages = of(OF_MESSAGES, &["SEND"]);
    let of_queues = of(OF_QUEUES, &["CREATE", "ALTER"]).concat();
    let mut pairs = BTreeSet::new();
    for options in of_messages {
        for one in &options {
            pairs.extend(options.iter().map(|other| Pair {
                is_of_queue: false,
                names: [*one, *other],
            }));
            pairs.extend(of_queues.iter().map(|of_queue| Pair {
                is_of_queue: true,
                names: [*of_queue, *one],
            }));
        }
    }
    pairs
}

/// The table of pairs: for each option, with how many it was walked, and the reasons why others
/// cannot meet it. The second value is whether nothing is missing.
pub fn table() -> (String, bool) {
    let mut missing = Vec::new();
    for (samples, read) in [(OF_MESSAGES, OF_MESSAGES_READ), (OF_QUEUES, OF_QUEUES_READ)] {
        let (named, read) = (names(samples), arms(read));
        let new = read.iter().filter(|name| !named.contains(*name));
        missing.extend(new.map(|name| format!("no sample of the option {name}")));
    }
    let by_hand: BTreeSet<Pair> = lists::all().flat_map(walked).collect();
    let walked: BTreeSet<Pair> = lists()
        .iter()
        .flat_map(walked)
        .chain(by_hand.clone())
        .collect();
    let mut rows: Vec<String> = Vec::new();
    for (samples, is_of_queue) in [(OF_MESSAGES, false), (OF_QUEUES, true)] {
        for sample in samples {
            let name = sample.name();
            let pairs = all().filter(|pair| pair.is_of_queue == is_of_queue);
            let pairs = pairs.filter(|pair| match is_of_queue {
                true => pair.names.first() == Some(&name),
                false => pair.names.contains(&name),
            });
            let (mut met, mut listed, mut reasons) = (0, 0, Vec::new());
            for pair in pairs {
                if walked.contains(&pair) {
                    met += 1;
                    listed += usize::from(by_hand.contains(&pair));
                    continue;
                }
                match list(pair) {
                    Err(why) if why.contains("exclude each other") => reasons.push(why),
                    Err(why) => missing.push(format!("{:?}: {why}", pair.names)),
                    Ok(_) => missing.push(format!("no list has {:?}", pair.names)),
                }
            }
            let whose = if is_of_queue { "queue" } else { "message" };
            rows.push(format!(
                "{whose:<8} {name:<17} {met:>6} {listed:>7}  {}",
                reasons.join("; ")
            ));
        }
    }
    let mut text = format!(
        "{:<8} {:<17} {:>6} {:>7}  not, and why\n",
        "of a", "option", "walked", "by hand"
    );
    text += &rows.join("\n");
    for what in &missing {
        text += &format!("\nmissing: {what}");
    }
    (text, missing.is_empty())
}
