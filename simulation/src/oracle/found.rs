//! FIND: it finds the messages that meet its conditions, in order, and acts on exactly
//! these.

use super::step::Step;
use dq_queue::message::state::{Reason, State};
use dq_queue::op::FindAct;
use dq_queue::queue::inspect::find::Search;
use dq_queue::queue::inspect::list::Listing;
use dq_queue::queue::inspect::view::View;
use dq_queue::{Done, Millis, Op, Queue, Seq};

/// All messages in a state in the order of a listing, only those of a group if one is
/// given. O(n).
pub fn listed(queue: &Queue, state: State, group: Option<&[u8]>, now: Millis) -> Vec<Seq> {
    let listing = Listing {
        state,
        cursor: None,
        reverse: false,
        count: usize::MAX,
        group,
        label: None,
    };
    queue.list(listing, now).1
}

/// Checks the messages that the first step of a search found, and that all steps together
/// find all messages that meet the conditions. O(n).
///
/// # Errors
/// A sentence that says what was found and what not.
pub fn check_search(
    queue: &Queue,
    search: &Search<'_>,
    found: &[Seq],
    now: Millis,
) -> Result<(), String> {
    let mut expected = listed(queue, search.state, None, now);
    expected.retain(|seq| {
        queue
            .view(*seq, now)
            .is_some_and(|view| meets(&view, search))
    });
    if search.reverse {
        expected.reverse();
    }
    if !expected.starts_with(found) {
        return Err(format!(
            "{search:?} finds {found:?}, which are not the first of {expected:?}"
        ));
    }
    let (mut all, mut rest) = (Vec::new(), search.clone());
    loop {
        let (cursor, some) = queue.search(&rest, now);
        all.extend(some);
        if cursor.is_none() {
            break;
        }
        rest.cursor = cursor;
    }
    match all == expected {
        true => Ok(()),
        false => Err(format!(
            "{search:?} finds {all:?} in all its steps, not {expected:?}"
        )),
    }
}

/// Whether a message that is in the state of a search meets its conditions.
fn meets(view: &View<'_>, search: &Search<'_>) -> bool {
    let choices = view.message.choices();
    let error = view
        .message
        .texts()
        .and_then(|texts| texts.error.as_deref());
    let label = choices.and_then(|choices| choices.label.as_deref());
    let mut headers = choices.iter().flat_map(|choices| choices.headers.iter());
    let time = match view.state {
        State::Held => view.message.held_since(),
        State::Running => view.lease_until().unwrap_or_default(),
        _ => view.ended_at().unwrap_or(view.message.due),
    };
    search
        .id
        .as_ref()
        .is_none_or(|id| id.matches(view.id.as_bytes()))
        && (search.label.is_none() || label == search.label)
        && (search.group.is_none() || view.group == search.group)
        && (search.batch.is_none() || view.batch == search.batch)
        && search.parent.is_none_or(|(key, id)| {
            view.parent
                .is_some_and(|parent| (&*parent.key, &*parent.id) == (key, id))
        })
        && search
            .header
            .is_none_or(|(field, value)| headers.any(|(f, v)| (&**f, &**v) == (field, value)))
        && search
            .error
            .as_ref()
            .is_none_or(|glob| error.is_some_and(|error| glob.matches(error)))
        && search
            .payload
            .as_ref()
            .is_none_or(|glob| glob.matches(&view.payload.bytes()))
        && search.since.is_none_or(|since| time >= since)
        && search.until.is_none_or(|until| time < until)
}

/// Checks that the action was done with each found message. If due events are left, one
/// of them may have ended a message first.
pub fn check_done(step: &Step<'_>) -> Result<(), String> {
    let (Op::FindDo { act, seqs }, Some(Done::Count(count))) = (step.op, step.done) else {
        return Ok(());
    };
    let found = seqs.len() as u64;
    if *count > found || step.caught_up && *act != FindAct::Cancel && *count != found {
        return Err(format!("{act:?} of {found} found messages counts {count}"));
    }
    for seq in seqs {
        let view = step.queue.view(*seq, step.now);
        let is_undone = view.is_some_and(|view| match act {
            FindAct::Redrive => view.state == State::Dead && view.reason() != Some(Reason::Expired),
            FindAct::Cancel => !matches!(view.state, State::Finished | State::Cancelled),
            FindAct::Purge => step.queue.find(view.id.as_bytes()) == Some(*seq),
        });
        if is_undone {
            return Err(format!("{act:?} has left {seq} as it was"));
        }
    }
    Ok(())
}
