//! Random walks: long paths over the actions of several lists, each step and each state checked, and
//! what they find made short.

use std::time::{Duration, Instant};

use crate::check::Fault;
use crate::lists::{self, List};
use crate::paste;
use crate::path;
use crate::world::World;

/// The number of actions of a walk, and of the lists from which they come.
const STEPS: usize = 60;
const LISTS: usize = 3;
/// How long the making short of a path takes at most.
const LONGEST: Duration = Duration::from_secs(60);

/// Walks for so long. Returns whether nothing was found; what was is printed, with the seed that
/// finds it again.
///
/// # Errors
/// Wrong arguments.
pub fn run(args: impl Iterator<Item = String>) -> Result<bool, String> {
    let (mut seconds, mut seed) = (60, 1);
    let mut args = args;
    while let Some(arg) = args.next() {
        let value = args.next().ok_or(format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--seconds" => seconds = number(&value)?,
            "--seed" => seed = number(&value)?,
            #[cfg(feature = "bugs")]
            "--bug" => crate::bugs::select(&value)?,
            _ => return Err(format!("there is no option {arg}")),
        }
    }
    std::panic::set_hook(Box::new(|_| {}));
    let began = Instant::now();
    let (mut walks, mut steps) = (0, 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        let walk = Walk::new(seed + walks);
        walks += 1;
        let (actions, fault) = walk.go();
        steps += actions.len();
        if let Some(fault) = fault {
            let long = actions.len();
            let actions = walk.shorter(actions, fault.rule);
            println!("{}: {}", fault.rule, fault.text);
            println!(
                "seed {}: {long} actions, made {}",
                seed + walks - 1,
                actions.len()
            );
            println!("{}", paste::text(&walk.list, &actions));
            return Ok(false);
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!("walking: {walks} walks, {steps} steps, {took:.1} s, nothing found");
    Ok(true)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("no number: {text}"))
}

/// A walk: the world of one list, with the actions of several.
struct Walk {
    list: List,
    actions: Vec<&'static str>,
    random: u64,
}

impl Walk {
    fn new(seed: u64) -> Walk {
        let mut walk = Walk {
            list: lists::LIST,
            actions: Vec::new(),
            random: seed,
        };
        let all: Vec<&'static List> = lists::all().collect();
        for at in 0..LISTS {
            let Some(list) = all.get(walk.below(all.len())) else {
                continue;
            };
            if at == 0 {
                walk.list.name = list.name;
                walk.list.setup = list.setup;
                walk.list.most_events = list.most_events;
                walk.list.is_confluent = false;
            }
            walk.actions.extend(list.actions);
        }
        walk
    }

    /// A number below `most`, by SplitMix64, public domain.
    fn below(&mut self, most: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % most.max(1) as u64) as usize
    }

    /// Walks until the end or the first fault.
    fn go(&self) -> (Vec<&'static str>, Option<Fault>) {
        let mut dice = Walk {
            list: lists::LIST,
            actions: Vec::new(),
            random: self.random,
        };
        let (mut world, mut done) = (path::first(&self.list), Vec::new());
        while done.len() < STEPS {
            let Some(action) = self.actions.get(dice.below(self.actions.len())) else {
                break;
            };
            done.push(*action);
            let faults = self.step(&mut world, action);
            if let Some(fault) = faults.into_iter().next() {
                return (done, Some(fault));
            }
        }
        (done, None)
    }

    /// Does an action, and returns the rules that it breaks. One that cannot be done here changes
    /// nothing.
    fn step(&self, world: &mut World, action: &str) -> Vec<Fault> {
        let Some(led) = path::step(&self.list, world, action) else {
            return Vec::new();
        };
        let mut faults = led.faults;
        if let Some(after) = led.world {
            faults.extend(path::check_state(&self.list, &after));
            *world = after;
        }
        faults
    }

    /// Whether the first rule that these actions break is this one.
    fn breaks(&self, actions: &[&'static str], rule: &str) -> bool {
        let mut world = path::first(&self.list);
        let mut steps = actions.iter().map(|action| self.step(&mut world, action));
        let faults = steps.find(|faults| !faults.is_empty());
        faults.is_some_and(|faults| faults.iter().any(|fault| fault.rule == rule))
    }

    /// Leaves actions out, many at a time and then each alone, as long as the same rule is broken.
    fn shorter(&self, actions: Vec<&'static str>, rule: &str) -> Vec<&'static str> {
        let began = Instant::now();
        let mut actions = actions;
        let mut size = actions.len() / 2;
        while size > 0 && began.elapsed() < LONGEST {
            let before = actions.len();
            let mut at = 0;
            while at < actions.len() {
                let mut fewer = actions.clone();
                fewer.drain(at..(at + size).min(actions.len()));
                match self.breaks(&fewer, rule) {
                    true => actions = fewer,
                    false => at += size,
                }
            }
            if actions.len() == before || size > 1 {
                size /= 2;
            }
        }
        actions
    }
}
