//! Reads an operation, and refuses one that no command can have made.

mod counted;
mod fetch;
mod moved;
mod nack;
mod send;
mod values;

use super::{
    ACK, ACK_SEND, ADVANCE, ALTER, APPLIED, CANCEL, CATCH_UP, CHILDREN, DETACH, DUPLICATE,
    END_LEASES, FETCH, FETCH_MORE, FIND_DO, GRACE, GROUP_SET, HOLDS, LIMIT, MESSAGES, MOVED, NACK,
    PAUSE, PAUSE_SCHEDULE, PURGE, REDRIVE, REMOVE, RESCHEDULE, RESUME, SCHEDULE, SEND, SIGNAL,
    TAKEN_IDS, TICK, TOUCH, UNSCHEDULE, UPDATE,
};
use crate::codec::bounds::CUT;
use crate::codec::effect;
use crate::codec::options::{changes, due, limit_rule, rate};
use crate::codec::wire::Reader;
use crate::detached::Ties;
use crate::limits::{self, Invalid};
use crate::op::{Applied, FindAct, GroupChanges, Redrive, Removal};
use crate::{Op, Receipt};
use counted::counted;
use fetch::{fetch, fetch_with_more};
use moved::moved;
use nack::nack;
use send::{ack_send, schedule, send};
use values::{exact, ids, name, name_at_end, note, positive, receipts, runs, seqs, state, texts};

/// Reads an operation of this kind, and the lowest receipt that it may give
/// out, which is 0 if it gives out none. `time_us` is the time of the log
/// entry. Bytes after the operation are left unread.
///
/// Errors: an unknown kind, a value out of range, or input that ends too early.
pub fn read<'a>(
    reader: &mut Reader<'a>,
    kind: u8,
    flags: u8,
    time_us: u64,
) -> Result<(Op<'a>, Receipt), Invalid> {
    let has = |bit: u32| flags >> bit & 1 == 1;
    let op = match kind {
        TICK => Op::Tick,
        DUPLICATE => Op::Duplicate,
        ALTER => Op::Alter(changes(reader)?),
        SEND => Op::Send(send(reader, flags)?),
        FETCH => {
            let (fetch, receipt) = fetch(reader, flags, time_us)?;
            return Ok((Op::fetch(fetch), receipt));
        }
        FETCH_MORE => {
            let (fetch, receipt) = fetch_with_more(reader, flags, time_us)?;
            return Ok((Op::fetch(fetch), receipt));
        }
        ACK if has(1) => {
            let receipts = receipts(reader, time_us)?;
            let results = texts(reader, receipts.len())?;
            Op::AckEach { receipts, results }
        }
        ACK if has(2) => Op::AckCost {
            receipts: receipts(reader, time_us)?,
            cost: exact(reader)?,
            result: has(0).then(|| reader.rest().into()),
        },
        LIMIT => {
            let rule = limit_rule(reader, has(0))?;
            let name = reader.rest();
            rule.check(name)?;
            Op::Limit {
                name: name.into(),
                rule,
            }
        }
        ACK => Op::Ack {
            receipts: receipts(reader, time_us)?,
            result: has(0).then(|| reader.rest().into()),
        },
        ACK_SEND => Op::AckSend(ack_send(reader, flags, time_us)?),
        NACK => nack(reader, flags, time_us)?,
        TOUCH => Op::Touch {
            ms: positive(reader)?,
            receipts: receipts(reader, time_us)?,
            note: match has(0) {
                true => Some(note(reader.rest())?),
                false => None,
            },
        },
        END_LEASES => Op::EndLeases {
            receipts: receipts(reader, time_us)?,
        },
        GRACE => Op::Grace {
            ms: positive(reader)?,
            receipts: receipts(reader, time_us)?,
        },
        ADVANCE => Op::Advance {
            to: exact(reader)?,
            skip_fires: has(0),
        },
        CANCEL => Op::Cancel { ids: ids(reader)? },
        RESCHEDULE => Op::Reschedule {
            id: name(reader.bytes()?)?,
            due: due(reader)?,
        },
        UPDATE => Op::Update {
            id: name(reader.bytes()?)?,
            payload: reader.rest().into(),
        },
        SIGNAL => Op::Signal {
            id: name(reader.bytes()?)?,
            text: note(reader.rest())?,
        },
        REDRIVE => Op::Redrive(match has(0) {
            true => Redrive::Ids(ids(reader)?),
            false => Redrive::Oldest(reader.number(&CUT)?),
        }),
        PURGE => Op::Purge {
            state: match has(0) {
                true => Some(state(reader)?),
                false => None,
            },
            group: name_at_end(reader, has(1))?,
        },
        FIND_DO => Op::FindDo {
            act: match flags {
                0 => FindAct::Redrive,
                1 => FindAct::Cancel,
                2 => FindAct::Purge,
                _ => {
                    return Err(Invalid(
                        "the action of a FIND must be 0 (REDRIVE), 1 (CANCEL) or 2 (PURGE)",
                    ))
                }
            },
            seqs: seqs(reader)?,
        },
        REMOVE => Op::Remove(match flags {
            MESSAGES => Removal::Messages(runs(reader)?),
            HOLDS => Removal::Holds(ids(reader)?),
            TAKEN_IDS => Removal::TakenIds,
            _ => {
                return Err(Invalid(
                    "the part of a PURGE must be 0 (messages), 1 (holds) or 2 (taken ids)",
                ))
            }
        }),
        PAUSE => Op::Pause {
            ms: has(0).then(|| positive(reader)).transpose()?,
            group: name_at_end(reader, has(1))?,
        },
        RESUME => Op::Resume {
            group: name_at_end(reader, has(0))?,
        },
        GROUP_SET => Op::GroupSet {
            changes: GroupChanges {
                weight: has(0).then(|| positive(reader)).transpose()?,
                concurrency: has(1).then(|| exact(reader)).transpose()?,
                rate: has(2).then(|| rate(reader)).transpose()?,
            },
            group: name(reader.rest())?,
        },
        SCHEDULE => Op::Schedule(schedule(reader)?),
        UNSCHEDULE => {
            let name = reader.rest();
            limits::schedule_name(name)?;
            Op::Unschedule { name: name.into() }
        }
        PAUSE_SCHEDULE => {
            let name = reader.rest();
            limits::schedule_name(name)?;
            Op::PauseSchedule {
                name: name.into(),
                paused: flags & 1 != 0,
            }
        }
        CATCH_UP => Op::CatchUp {
            since: exact(reader)?,
            skip: has(0),
        },
        MOVED => Op::Moved(moved(reader, has(0))?),
        DETACH => Op::Detach(Ties {
            events: has(0),
            dead_to: has(1),
            parents: has(2),
        }),
        APPLIED => {
            let (consumer, token) = (reader.bytes()?, reader.bytes()?);
            limits::name(consumer)?;
            limits::token(token)?;
            let outcomes = reader.rest();
            effect::decode_outcomes(outcomes)?;
            Op::Applied(Applied {
                consumer: consumer.into(),
                token: token.into(),
                outcomes: outcomes.into(),
            })
        }
        CHILDREN => Op::Children(counted(reader)?),
        _ => return Err(Invalid("a log entry has an unknown kind of operation")),
    };
    Ok((op, 0))
}
