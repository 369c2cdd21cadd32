//! The parents that commands name, whose keys are keys of the command, too.

use crate::redis::spec::{Access, Positions};
use crate::redis::{CommandResult, Context, Name};
use dq_queue::args::{Parsed, Words};
use dq_queue::family::slot_of_key;
use dq_queue::message::kin::Parent;
use dq_queue::message::Choices;
use dq_queue::op::Send;

/// The positions of the keys of parents, among the arguments after the name of a command that sends
/// messages with these options.
pub fn keys_of_parents<'s>(words: &[&[u8]], sent: impl Iterator<Item = &'s Choices>) -> Positions {
    let parents = sent.filter_map(Choices::parent);
    let positions = parents.filter_map(|parent| {
        // Words with the same meaning name the same key.
        let is_parent = |three: &[&[u8]]| match three {
            [word, key, id] => {
                word.eq_ignore_ascii_case(b"PARENT") && **key == *parent.key && **id == *parent.id
            }
            _ => false,
        };
        let at = words.windows(3).position(is_parent)?;
        Some((at + 1, Access::Insert))
    });
    positions.collect()
}

/// The position of the key of the parent, among the arguments after the name of a command whose
/// words behind the key `read` understands. None where the arguments are not valid: then the command
/// does nothing.
pub fn key_of_parent<'a>(
    words: &'a [&'a [u8]],
    read: impl FnOnce(Words<'a>) -> Parsed<Send<'a>>,
) -> Positions {
    // Most commands name no parent, so their arguments need not be read.
    let may_name_one = words
        .iter()
        .any(|word| word.eq_ignore_ascii_case(b"PARENT"));
    let after_key = words.get(1..).unwrap_or_default();
    match may_name_one.then(|| read(Words::new(after_key))) {
        Some(Ok(send)) => keys_of_parents(words, [send.choices].iter()),
        _ => Vec::new(),
    }
}

/// Checks the parent that a message names.
///
/// Errors: it is the message itself, or in another slot of the cluster.
#[inline]
pub fn check_parent(ctx: &Context, key: Name<'_>, send: &Send<'_>) -> CommandResult {
    match send.choices.parent() {
        Some(parent) => check(ctx, key, send, parent),
        None => Ok(()),
    }
}

#[cold]
fn check(ctx: &Context, key: Name<'_>, send: &Send<'_>, parent: &Parent) -> CommandResult {
    if ctx.is_in_cluster() && slot_of_key(&parent.key) != slot_of_key(key.bytes()) {
        return Err("CROSSSLOT the key of PARENT must be in the slot of the queue".into());
    }
    match send.id.as_deref() == Some(&*parent.id) && *parent.key == *key.bytes() {
        true => Err("ERR PARENT names the message itself".into()),
        false => Ok(()),
    }
}
