//! The search: all states of a list, breadth first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::check::Fault;
use crate::lists::List;
use crate::path;
use crate::store::{Reached, Store};
use crate::world::World;

/// Where a search ends.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The greatest number of actions of a path.
    pub depth: usize,
    /// The number of states at which it stops.
    pub states: usize,
    /// How long it runs.
    pub time: Duration,
    /// Whether the first fault ends it.
    pub until_found: bool,
}

/// A fault, and the shortest path to it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The fault.
    pub fault: Fault,
    /// The actions.
    pub actions: Vec<&'static str>,
}

/// The progress of a search. Another thread may look at it.
#[derive(Debug, Default)]
pub struct Progress {
    /// States that were reached.
    pub states: AtomicU64,
    /// Steps that were done.
    pub steps: AtomicU64,
    /// The number of actions of the paths that are walked now.
    pub depth: AtomicU64,
    /// The path that is walked now.
    pub path: Mutex<Vec<&'static str>>,
}

/// The outcome of a search.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The first fault of each rule.
    pub found: BTreeMap<(&'static str, &'static str), Found>,
    /// The number of states by depth.
    pub by_depth: Vec<u64>,
    /// Whether all states up to the depth were reached.
    pub is_complete: bool,
}

/// Searches a list. `save` is called now and then, and at the end.
pub fn search(
    list: &'static List,
    bounds: Bounds,
    store: &mut Store,
    progress: &Progress,
    mut save: impl FnMut(&mut Store),
) -> Outcome {
    let began = Instant::now();
    let mut outcome = Outcome::default();
    let mut saved = Instant::now();
    if store.len() == 0 {
        let first = path::first(list);
        let reached = Reached {
            from: 0,
            action: 0,
            depth: 0,
        };
        store.add(path::digest(list, &first), reached);
    }
    while let Some(reached) = store.get(store.done) {
        let depth = usize::from(reached.depth);
        progress.depth.store(depth as u64, Relaxed);
        if depth >= bounds.depth {
            outcome.is_complete = true;
            break;
        }
        let is_over = store.len() >= bounds.states || began.elapsed() >= bounds.time;
        if is_over || bounds.until_found && !outcome.found.is_empty() {
            break;
        }
        let actions = named(list, &store.path(store.done));
        if let Some(world) = path::walk(list, actions.iter().copied()) {
            expand(list, &world, &actions, store, progress, &mut outcome);
        }
        store.done += 1;
        if saved.elapsed() > Duration::from_secs(60) {
            save(store);
            saved = Instant::now();
        }
    }
    outcome.is_complete |= store.done == store.len();
    outcome.by_depth = by_depth(store);
    // An empty path says that nothing is walked any more.
    if let Ok(mut path) = progress.path.lock() {
        path.clear();
    }
    save(store);
    outcome
}

fn named(list: &'static List, path: &[u8]) -> Vec<&'static str> {
    let actions = path
        .iter()
        .filter_map(|action| list.actions.get(usize::from(*action)));
    actions.copied().collect()
}

fn by_depth(store: &Store) -> Vec<u64> {
    let mut counts = Vec::new();
    let all = (0..store.len()).filter_map(|number| store.get(number));
    for reached in all {
        let depth = usize::from(reached.depth);
        if counts.len() <= depth {
            counts.resize(depth + 1, 0);
        }
        if let Some(count) = counts.get_mut(depth) {
            *count += 1;
        }
    }
    counts
}

/// Does all actions in a state.
fn expand(
    list: &'static List,
    world: &World,
    actions: &[&'static str],
    store: &mut Store,
    progress: &Progress,
    outcome: &mut Outcome,
) {
    for (number, action) in list.actions.iter().enumerate() {
        let path = || [actions, &[*action]].concat();
        if let Ok(mut now) = progress.path.lock() {
            *now = path();
        }
        let Some(led) = path::step(list, world, action) else {
            continue;
        };
        progress.steps.fetch_add(1, Relaxed);
        let mut faults = led.faults;
        if let Some(after) = led.world {
            let digest = path::digest(list, &after);
            if !store.knows(digest) {
                faults.extend(path::check_state(list, &after));
                let reached = Reached {
                    from: store.done as u32,
                    action: number as u8,
                    depth: actions.len() as u8 + 1,
                };
                // States behind a broken one would only say the same again.
                if faults.is_empty() {
                    store.add(digest, reached);
                }
                progress.states.store(store.len() as u64, Relaxed);
            }
        }
        for fault in faults {
            let kind = (fault.rule, *action);
            outcome.found.entry(kind).or_insert_with(|| Found {
                fault,
                actions: path(),
            });
        }
    }
}
