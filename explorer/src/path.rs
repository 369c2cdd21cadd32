//! A path: the actions of a list that lead to a state.

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::check::{self, Fault};
use crate::lists::List;
use crate::world::World;

/// The world in which the actions of a list begin.
pub fn first(list: &List) -> World {
    let mut world = World::new(list.most_events);
    for command in list.setup {
        world.act(command);
    }
    world
}

/// The world behind these actions. `None` if one of them cannot be done.
pub fn walk<'a>(list: &List, actions: impl IntoIterator<Item = &'a str>) -> Option<World> {
    let mut world = first(list);
    for action in actions {
        world.act(action)?;
    }
    Some(world)
}

/// The digest of a world.
pub fn digest(list: &List, world: &World) -> u64 {
    // The finaliser of SplitMix64, public domain, over the words of the shape.
    world
        .shape(list.past)
        .into_iter()
        .fold(0, |digest: u64, word| {
            let mut z = (digest ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        })
}

/// The outcome of an action.
#[derive(Debug)]
pub struct Led {
    /// The world behind it, unless the queue panicked.
    pub world: Option<World>,
    /// The rules that it breaks.
    pub faults: Vec<Fault>,
}

/// Does an action in a world, and checks the step. `None` if it cannot be done there.
pub fn step(list: &List, world: &World, action: &str) -> Option<Led> {
    let done = guarded(|| {
        let mut after = match world.replicated() {
            Ok(after) => after,
            Err(why) => return Some((world.clone(), vec![Fault::new("load", why)])),
        };
        let step = after.act(action)?;
        let faults = check::step::check(list, world, action, &after, &step);
        Some((after, faults))
    });
    match done {
        Ok(None) => None,
        Ok(Some((world, faults))) => Some(Led {
            world: Some(world),
            faults,
        }),
        Err(why) => Some(Led {
            world: None,
            faults: vec![Fault::new("panics", why)],
        }),
    }
}

/// Checks a state.
pub fn check_state(list: &List, world: &World) -> Vec<Fault> {
    let checked = guarded(|| check::state::check(world, list.past));
    checked.unwrap_or_else(|why| vec![Fault::new("panics", why)])
}

/// Runs code of the queue, which may panic where an assertion does not hold.
///
/// # Errors
/// The text of the panic.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default()
    })
}
