//! Random operations with limits: no delivery exceeds a limit, no message waits that could
//! be delivered, and the queue equals the one that is rebuilt from its parts after each
//! step.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::steps::{step, Step};
use super::{limited, rule, set};
use crate::named_limits::LimitRule;
use crate::op::{Done, DueTime, Fetch, NackKind, Op, Send};
use crate::queue::rebuild::validate;
use crate::queue::tests::properties::config;
use crate::queue::Queue;
use crate::settings::{Clock, OnRetry, Settings};
use crate::{Millis, Moment, Receipt, Seq};

const NAMES: [&str; 5] = ["all", "u-1", "u-2", "u-3", "x"];
const RULES: [&str; 4] = ["all", "u-*", "u-1", "*"];
const GROUPS: [Option<&str>; 4] = [None, None, Some("g"), Some("h")];

/// The facts that an observer knows about one name.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// The deliveries that began within windows of the rules, as far as those in force must know
    /// them, with what each counts for.
    began: Vec<(Millis, u64)>,
    /// All deliveries that ever began.
    ever: Vec<(Millis, u64)>,
    running: u64,
    running_cost: u64,
}

/// The amount that a message of this cost takes of a limit with this rule.
fn amount(rule: &LimitRule, cost: u64) -> u64 {
    match rule.weighted {
        true => cost,
        false => 1,
    }
}

struct World {
    queue: Queue,
    now: Millis,
    rules: BTreeMap<String, LimitRule>,
    seen: BTreeMap<String, Seen>,
    running: Vec<(Receipt, Seq)>,
    /// Whether all messages cost 1 and no ack sets another cost.
    plain: bool,
}

impl World {
    fn new(on_retry: OnRetry, plain: bool) -> World {
        let settings = Settings {
            lease: 50,
            on_retry,
            ..Settings::default()
        };
        let queue = Queue::new(settings, Clock::Server, 1);
        World {
            queue,
            now: 1000,
            rules: BTreeMap::new(),
            seen: BTreeMap::new(),
            running: Vec::new(),
            plain,
        }
    }

    /// The rule for a name, found in the obvious way.
    fn rule_of(&self, name: &str) -> Option<&LimitRule> {
        let user = name.strip_prefix("u-").map(|_| "u-*");
        let candidates = [Some(name), user, Some("*")].into_iter().flatten();
        candidates.filter_map(|of| self.rules.get(of)).next()
    }

    fn names_of(&self, seq: Seq) -> Vec<String> {
        let limited = self.queue.message(seq).and_then(|m| m.limited());
        let names = limited.map_or(&[][..], |limited| &limited.names);
        let names = names.iter().map(|name| String::from_utf8_lossy(name));
        names.map(|name| name.into_owned()).collect()
    }

    fn cost_of(&self, seq: Seq) -> u64 {
        let limited = self.queue.message(seq).and_then(|m| m.limited());
        limited.map_or(0, |limited| limited.cost)
    }

    fn apply(&mut self, op: &Op) -> Done {
        let moment = Moment::at_ms(self.now);
        let leases = self.leases();
        let done = self.queue.apply(op, moment);
        self.note_ends(leases);
        validate(&self.queue).unwrap();
        done.unwrap_or(Done::Ok)
    }

    fn leases(&self) -> Vec<(Receipt, Vec<String>, u64)> {
        let running = self.running.iter();
        running
            .map(|(receipt, seq)| (*receipt, self.names_of(*seq), self.cost_of(*seq)))
            .collect()
    }

    /// Messages that no longer run are not counted as running.
    fn note_ends(&mut self, before: Vec<(Receipt, Vec<String>, u64)>) {
        for (receipt, names, cost) in before {
            if !self.queue.is_running(receipt) {
                for name in names {
                    let seen = self.seen.entry(name).or_default();
                    seen.running -= 1;
                    seen.running_cost -= cost;
                }
            }
        }
        let queue = &self.queue;
        self.running
            .retain(|(receipt, _)| queue.is_running(*receipt));
    }

    fn advance(&mut self, most: u64) {
        let leases = self.leases();
        self.queue.advance(self.now, most);
        self.note_ends(leases);
        validate(&self.queue).unwrap();
        // Events that consumers can see are processed before any operation.
        self.apply(&Op::Tick);
    }

    /// Whether messages are due that were not promoted. A group waits for the limits of its first
    /// promoted message.
    fn is_behind(&self) -> bool {
        let promotion = self.queue.indexes.waiting.next_promotion();
        promotion.is_some_and(|(due, _)| due <= self.now)
    }

    fn fetch(&mut self, count: u64, per_group: u64, kind: u8) {
        let fetch = Fetch {
            count,
            per_group,
            no_ack: kind == 0,
            group: (kind == 1).then(|| b"g"[..].into()),
            ..Fetch::one()
        };
        let could = self.queue.can_serve(&fetch, self.now);
        let peeked = self.queue.peek(1, self.now);
        let was_behind = self.is_behind();
        let (no_ack, of_all) = (fetch.no_ack, fetch.group.is_none());
        // A message that is delivered without a lease is gone afterwards.
        let before = self.queue.clone();
        let Done::Fetched(given) = self.apply(&Op::fetch(fetch)) else {
            panic!("no deliveries")
        };
        assert!(could || given.is_empty(), "what it gives was not foretold");
        if of_all && self.plain && !was_behind {
            let first = given.first().map(|given| given.seq);
            assert_eq!(peeked.first().copied(), first, "PEEK");
        }
        for one in &given {
            let message = before.message(one.seq).unwrap();
            let Some(limited) = message.limited() else {
                if !no_ack {
                    self.running.push((one.receipt, one.seq));
                }
                continue;
            };
            for name in &limited.names {
                let name = String::from_utf8_lossy(name).into_owned();
                let rule = self.rule_of(&name).cloned();
                let seen = self.seen.entry(name.clone()).or_default();
                let is_windowed = rule.as_ref().is_some_and(|rule| !rule.rates.is_empty());
                let amount = rule.as_ref().map_or(0, |rule| amount(rule, limited.cost));
                seen.ever.push((self.now, limited.cost));
                if is_windowed {
                    seen.began.push((self.now, amount));
                }
                if let Some(rule) = rule {
                    for rate in &rule.rates {
                        let counts = |at: Millis| at + rate.per > self.now;
                        let began = seen.began.iter().filter(|(at, _)| counts(*at));
                        let sum: u64 = began.map(|(_, amount)| amount).sum();
                        assert!(sum <= rate.count, "{name}: {sum} within {rate:?}");
                    }
                    let (most, runs) = match rule.weighted {
                        true => (rule.concurrency, seen.running_cost),
                        false => (rule.concurrency, seen.running),
                    };
                    assert!(most == 0 || runs + amount <= most, "{name}: too many run");
                }
                if !no_ack {
                    seen.running += 1;
                    seen.running_cost += limited.cost;
                }
            }
            if !no_ack {
                self.running.push((one.receipt, one.seq));
            }
        }
        if of_all && (given.len() as u64) < count {
            self.check_nothing_could_go();
        }
    }

    /// A FETCH has taken all that it could, so a limit holds up all other due messages.
    fn check_nothing_could_go(&self) {
        if !self.plain || self.is_behind() || self.queue.is_paused(self.now) {
            return;
        }
        for (ix, group) in self.queue.state.groups.starting_at(0) {
            let head = group.and_then(|group| self.queue.group_head(group, self.now));
            let Some(head) = head else {
                continue;
            };
            let names = self.names_of(head.seq());
            let is_full = |name: &String| {
                let Some(rule) = self.rule_of(name) else {
                    return false;
                };
                let none = Seen::default();
                let seen = self.seen.get(name).unwrap_or(&none);
                let full = rule.rates.iter().any(|rate| {
                    let began = seen.ever.iter();
                    let began = began.filter(|(at, _)| at + rate.per > self.now);
                    began.map(|(_, cost)| cost).sum::<u64>() >= rate.count
                });
                full || rule.concurrency > 0 && seen.running >= rule.concurrency
            };
            assert!(
                names.iter().any(is_full),
                "{names:?} of {ix:?} waits for nothing"
            );
        }
    }

    fn limit(&mut self, of: u8, rule: LimitRule) {
        let of = RULES[usize::from(of)];
        let before: Vec<Option<LimitRule>> = NAMES.map(|name| self.rule_of(name).cloned()).into();
        // A delivery in the millisecond of a DQ.LIMIT, but before it, cannot be distinguished from
        // one that the limit has counted, when COST corrects it.
        self.now += 1;
        self.apply(&set(of, rule.clone()));
        match rule.is_open() {
            true => self.rules.remove(of),
            false => self.rules.insert(of.to_owned(), rule),
        };
        for (name, before) in NAMES.iter().zip(before) {
            let after = self.rule_of(name).cloned();
            let seen = self.seen.entry((*name).to_owned()).or_default();
            if before == after {
                continue;
            }
            // Only the longest window of the previous rule is kept, and a rule without
            // windows or one that counts something else drops it.
            let counts_costs =
                |rule: &Option<LimitRule>| rule.as_ref().is_some_and(|rule| rule.weighted);
            let counts_alike = counts_costs(&before) == counts_costs(&after);
            let known = before.iter().flat_map(|rule| &rule.rates);
            let known = known.map(|rate| rate.per).max().unwrap_or(0);
            let keeps = counts_alike && after.is_some_and(|rule| !rule.rates.is_empty());
            let now = self.now;
            seen.began.retain(|(at, _)| keeps && at + known > now);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send(names, group, cost, priority, delay) => {
                let names: Vec<&str> = (0..5)
                    .filter(|bit| names >> bit & 1 == 1)
                    .map(|bit| NAMES[bit])
                    .collect();
                let send = Send {
                    priority,
                    due: DueTime::After(delay),
                    ..limited(GROUPS[usize::from(group)], &names, cost)
                };
                let is_never = names.iter().any(|name| {
                    let rule = self.rule_of(name).filter(|rule| rule.weighted);
                    rule.is_some_and(|rule| {
                        let most = rule.rates.iter().map(|rate| rate.count);
                        let runs = Some(rule.concurrency).filter(|most| *most > 0);
                        most.chain(runs).any(|most| cost > most)
                    })
                });
                let done = self.apply(&Op::Send(send));
                assert_eq!(matches!(done, Done::Sent(_)), !is_never);
            }
            Step::Fetch(count, per_group, kind) => self.fetch(count, per_group, kind),
            Step::Ack(n, cost) => {
                let Some((receipt, seq)) = self.pick(n) else {
                    return;
                };
                let receipts = [receipt].into_iter().collect();
                let cost = cost.filter(|_| !self.plain);
                let Some(cost) = cost else {
                    let result = None;
                    self.apply(&Op::Ack { receipts, result });
                    return;
                };
                let began = self.queue.message(seq).unwrap().started_at();
                let (names, old) = (self.names_of(seq), self.cost_of(seq));
                for name in names {
                    if !self.rule_of(&name).is_some_and(|rule| rule.weighted) {
                        continue;
                    }
                    let seen = self.seen.entry(name).or_default();
                    let mut same = seen.began.iter_mut();
                    if let Some(of) = same.find(|of| **of == (began, old)) {
                        of.1 = cost;
                    }
                }
                self.apply(&Op::AckCost {
                    receipts,
                    cost,
                    result: None,
                });
            }
            Step::Nack(n, kind) => {
                let Some((receipt, _)) = self.pick(n) else {
                    return;
                };
                self.apply(&Op::Nack {
                    receipts: [receipt].into_iter().collect(),
                    kind: match kind {
                        0 => NackKind::Silent,
                        1 => NackKind::Delay(10),
                        _ => NackKind::Fatal,
                    },
                    error: None,
                    random: 0,
                    note: None,
                    pause: None,
                });
            }
            Step::Cancel(n) => {
                let seqs: Vec<Seq> = self.queue.state.store.iter().map(|(seq, _)| seq).collect();
                let Some(seq) = seqs.get(usize::from(n) % seqs.len().max(1)) else {
                    return;
                };
                let message = self.queue.message(*seq).unwrap();
                let id = self.queue.id_of(*seq, message).to_box();
                let ids = vec![id.into_vec().into()];
                self.apply(&Op::Cancel { ids });
            }
            Step::Limit(of, concurrency, rates, weighs) => {
                let rule = rule(concurrency, &rates);
                let weighted = weighs && !rule.is_open();
                self.limit(of, LimitRule { weighted, ..rule });
            }
            Step::Pause(ends) => {
                let group = Some(b"g"[..].into());
                self.apply(&match ends {
                    true => Op::Resume { group },
                    false => Op::Pause {
                        group,
                        ms: Some(20),
                    },
                });
            }
            Step::Wait(ms, most) => {
                self.now += ms;
                self.advance(if most == 0 { u64::MAX } else { most });
            }
            Step::Purge(kind) => {
                let group = (kind == 1).then(|| b"g"[..].into());
                if kind < 2 {
                    self.apply(&Op::Purge { state: None, group });
                }
            }
        }
    }

    fn pick(&self, n: u8) -> Option<(Receipt, Seq)> {
        let len = self.running.len().max(1);
        self.running.get(usize::from(n) % len).copied()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_delivery_exceeds_a_limit_and_nothing_waits_in_vain(
        steps in prop::collection::vec(step(1), 1..120),
        skips in any::<bool>(),
    ) {
        let on_retry = if skips { OnRetry::Skip } else { OnRetry::Block };
        let mut world = World::new(on_retry, true);
        steps.into_iter().for_each(|step| world.step(step));
    }

    #[test]
    fn no_delivery_of_any_cost_exceeds_a_limit(
        steps in prop::collection::vec(step(5), 1..120),
    ) {
        let mut world = World::new(OnRetry::Block, false);
        steps.into_iter().for_each(|step| world.step(step));
    }
}
