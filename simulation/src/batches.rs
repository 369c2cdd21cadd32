//! The rules of named batches: their counts are those of their messages, and they hold
//! exactly what they must.

use dq_queue::message::after::{Counts, OnFail};
use dq_queue::message::state::StoredState;
use dq_queue::{Queue, Seq};

/// Checks the counts of all batches against their messages, and why each held message is
/// held. O(messages in batches).
///
/// # Errors
/// A sentence that says which promise is broken.
pub fn check(queue: &Queue) -> Result<(), String> {
    let Some(batches) = queue.batches() else {
        return Ok(());
    };
    let members = batches.members.all();
    for (number, named) in batches.iter() {
        let of_batch = members.iter().filter(|(_, batch)| *batch == number);
        let mut counts = Counts {
            finished: named.counts.finished,
            cancelled: named.counts.cancelled,
            ..Counts::default()
        };
        for (seq, _) in of_batch {
            let stored = queue.message(*seq).map(|message| message.stored);
            match stored.ok_or("a message of a batch is not there")? {
                StoredState::Running => counts.running += 1,
                StoredState::Dead => counts.dead += 1,
                StoredState::Finished | StoredState::Cancelled => {}
                _ => counts.pending += 1,
            }
        }
        if counts != named.counts {
            let told = named.counts;
            return Err(format!(
                "the batch {number} counts {told:?} in place of {counts:?}"
            ));
        }
        for on_fail in OnFail::ALL {
            let held = named.held.get(on_fail as usize);
            let is_any = held.is_some_and(|held| !held.is_empty());
            let may_hold = named.holds(on_fail) && !on_fail.dies_of(&counts);
            if is_any && !may_hold {
                return Err(format!("the batch {number} holds on, {on_fail:?}"));
            }
        }
    }
    let released: usize = batches.released.iter().map(|some| some.all().len()).sum();
    let held: u64 = batches.iter().map(|(_, named)| named.held_count()).sum();
    if batches.held.len() as u64 != held + released as u64 {
        return Err("a message is held by nothing".into());
    }
    let stray = |seq: &Seq| {
        let stored = queue.message(*seq).map(|message| message.stored);
        stored != Some(StoredState::Held)
    };
    let mut held = batches.held.iter().map(|((_, seq), ())| seq);
    match held.find(stray) {
        Some(seq) => Err(format!("{seq} is listed as held and is not")),
        None => Ok(()),
    }
}
