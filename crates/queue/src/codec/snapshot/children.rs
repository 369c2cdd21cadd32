//! Encodes the counts that a message has of its children, and the reports to parents.

use super::tag;
use crate::codec::bounds::{EXACT, QUEUES};
use crate::codec::wire::{put_bytes, put_flag, put_number, put_signed, Reader};
use crate::limits::{self, ensure, Invalid};
use crate::message::extension::Extension;
use crate::message::kin::{ChildCounts, Children, Delta, News, Wait};

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
        *n = reader.number(&EXACT)?;
    }
    children.counts = ChildCounts::of(counts);
    let queues = reader.number(&QUEUES)?;
    for _ in 0..queues {
        let name = reader.bytes()?;
        ensure(
            !name.is_empty() && children.remember(name),
            "a parent remembers a queue twice, or one without a key",
        )?;
    }
    Ok(())
}

/// Writes a report that its parent has not counted yet.
pub fn put_report(out: &mut Vec<u8>, report: &News) {
    out.push(tag::REPORT);
    put_bytes(out, &report.key);
    put_bytes(out, &report.id);
    put_flag(out, report.delta.dies);
    for n in report.delta.counts() {
        put_signed(out, n);
    }
}

/// Reads the output of [`put_report`] behind the tag.
pub fn report(reader: &mut Reader) -> Result<News, Invalid> {
    let (key, id): (Box<[u8]>, Box<[u8]>) = (reader.bytes()?.into(), reader.bytes()?.into());
    ensure(!key.is_empty(), "a report to a queue without a key")?;
    limits::name(&id)?;
    let dies = reader.flag()?;
    let mut counts = [0; 5];
    for n in &mut counts {
        *n = reader.signed()?;
    }
    reader.end()?;
    let delta = Delta::of(counts, dies);
    Ok(News { key, id, delta })
}
