//! Decodes groups, their breakers, and limits with names.

use std::collections::VecDeque;

use super::{pairs, position};
use crate::codec::options::{limit_rule, rate};
use crate::codec::snapshot::{group_flags, limit_flags, phase};
use crate::codec::wire::{Reader, MOST_RESERVED};
use crate::collections::rate_window::RateWindow;
use crate::groups::breaker::{Circuit, Phase};
use crate::groups::group::GroupSettings;
use crate::limits::{ensure, Invalid};
use crate::named_limits::MAX_WINDOWS;
use crate::queue::rebuild::{GroupPart, LimitPart};

pub fn group(reader: &mut Reader) -> Result<GroupPart, Invalid> {
    let told = reader.byte()?;
    ensure(told & !group_flags::ALL == 0, "an unknown part of a group")?;
    let has = |bit: u8| told & bit != 0;
    let mut part = GroupPart::default();
    if has(group_flags::SETTINGS) {
        part.settings = Some(Box::new(GroupSettings {
            weight: reader.number()?,
            concurrency: reader.number()?,
            rate: rate(reader)?,
            window: RateWindow::from_given(pairs(reader)?),
        }));
    }
    if has(group_flags::PAUSE) {
        part.paused_until = Some(reader.number()?);
    }
    if has(group_flags::HELD) {
        for _ in 0..reader.number()? {
            part.held_by
                .push((reader.number()?, reader.bytes()?.into()));
        }
    }
    if has(group_flags::LINE) {
        part.line = Some(position(reader)?);
    }
    if has(group_flags::TURN) {
        part.turn = reader.number()?;
    }
    if has(group_flags::WAKE) {
        part.wake = Some(reader.number()?);
    }
    if has(group_flags::HOME) {
        part.home = Some((reader.bytes()?.into(), reader.number()?));
    }
    Ok(part)
}

pub fn limit(reader: &mut Reader) -> Result<LimitPart, Invalid> {
    let told = reader.byte()?;
    ensure(told & !limit_flags::ALL == 0, "an unknown part of a limit")?;
    let has = |bit: u8| told & bit != 0;
    let rule = match has(limit_flags::RULE) {
        true => Some(limit_rule(reader, has(limit_flags::WEIGHTED))?),
        false => None,
    };
    let count = reader.number()?;
    ensure(
        count <= MAX_WINDOWS as u64,
        "a limit must have at most 4 windows",
    )?;
    let windows = (0..count).map(|_| Ok(RateWindow::from_given(pairs(reader)?)));
    Ok(LimitPart {
        rule,
        windows: windows.collect::<Result<_, Invalid>>()?,
        is_open: has(limit_flags::OPEN),
    })
}

pub fn breaker(reader: &mut Reader) -> Result<Circuit, Invalid> {
    let cause = reader.number()?;
    let phase = match reader.byte()? {
        phase::CLOSED => {
            let len = reader.number()?;
            let mut failures = VecDeque::with_capacity(len.min(MOST_RESERVED as u64) as usize);
            let mut base = 0;
            for _ in 0..len {
                base = reader.delta(base)?;
                failures.push_back(base);
            }
            Phase::Closed(failures)
        }
        phase::OPEN => Phase::Open {
            until: reader.number()?,
            length: reader.number()?,
        },
        phase::HALF_OPEN => Phase::HalfOpen {
            length: reader.number()?,
            probe: reader.optional()?,
        },
        _ => return Err(Invalid("an unknown state of a breaker")),
    };
    Ok(Circuit::restored(phase, cause))
}
