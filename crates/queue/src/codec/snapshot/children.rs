//! Encodes the counts that a message has of its children.

use crate::codec::wire::{put_bytes, put_flag, put_number, Reader};
use crate::limits::{self, ensure, Invalid};
use crate::message::extension::Extension;
use crate::message::kin::{ChildCounts, Children, Wait, MOST_QUEUES};

/// Writes the counts of a message. The number of children that have to end is among its options.
pub fn put_children(out: &mut Vec<u8>, children: &Children) {
    out.push(children.wait as u8);
    put_flag(out, children.dies);
    for n in children.counts.all() {
        put_number(out, n);
    }
    put_number(out, children.queues.len() as u64);
    for name in &children.queues {
        put_bytes(out, name);
    }
}

/// Reads the output of [`put_children`], behind the options of the message.
pub fn children(reader: &mut Reader, ext: &mut Extension) -> Result<(), Invalid> {
    let choices = ext.choices.as_mut();
    let children = choices.and_then(|choices| choices.children_mut());
    let children = children.ok_or(Invalid("a message without children counts them"))?;
    children.wait = match reader.byte()? {
        0 => Wait::Later,
        1 => Wait::Now,
        2 => Wait::Over,
        _ => return Err(Invalid("an unknown wait for children")),
    };
    children.dies = reader.flag()?;
    let mut counts = [0; 5];
    for n in &mut counts {
        *n = reader.number()?;
        limits::exact(*n)?;
    }
    children.counts = ChildCounts::of(counts);
    let queues = reader.number()?;
    ensure(
        queues <= MOST_QUEUES as u64,
        "a parent remembers too many queues",
    )?;
    for _ in 0..queues {
        let name = reader.bytes()?;
        ensure(
            !name.is_empty() && children.remember(name),
            "a parent remembers a queue twice, or one without a key",
        )?;
    }
    Ok(())
}
