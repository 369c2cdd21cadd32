//! Decodes groups, their breakers, and limits with names.

use crate::codec::bounds::{EXACT, TIME, WINDOWS};
use std::collections::VecDeque;

use super::{pairs, position};
use crate::codec::options::{limit_rule, rate};
use crate::codec::snapshot::{group_flags, limit_flags, phase};
use crate::codec::wire::{Reader, MOST_RESERVED};
use crate::collections::rate_window::RateWindow;
use crate::groups::breaker::{Circuit, Phase};
use crate::groups::group::GroupSettings;
use crate::limits::{ensure, Invalid};
use crate::queue::rebuild::{GroupPart, LimitPart};

pub fn group(reader: &mut Reader) -> Result<GroupPart, Invalid> {
    let told = reader.byte()?;
    ensure(told & !group_flags::ALL == 0, "an unknown part of a group")?;
    let has = |bit: u8| told & bit != 0;
    let mut part = GroupPart::default();
    if has(group_flags::SETTINGS) {
        part.settings = Some(Box::new(GroupSettings {
            weight: reader.number(&EXACT)?,
            concurrency: reader.number(&EXACT)?,
            rate: rate(reader)?,
            window: RateWindow::from_given(pairs(reader)?),
        }));
    }
    if has(group_flags::PAUSE) {
        part.paused_until = Some(reader.number(&TIME)?);
    }
    if has(group_flags::HELD) {
        for _ in 0..reader.list()? {
            part.held_by
                .push((reader.number(&EXACT)?, reader.bytes()?.into()));
        }
    }
    if has(group_flags::LINE) {
        part.line = Some(position(reader)?);
    }
    if has(group_flags::TURN) {
        part.turn = reader.number(&EXACT)?;
    }
    if has(group_flags::WAKE) {
        part.wake = Some(reader.number(&EXACT)?);
    }
    if has(group_flags::HOME) {
        part.home = Some((reader.bytes()?.into(), reader.number(&EXACT)?));
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
    let count = reader.number(&WINDOWS)?;
    let windows = (0..count).map(|_| Ok(RateWindow::from_given(pairs(reader)?)));
    Ok(LimitPart {
        rule,
        windows: windows.collect::<Result<_, Invalid>>()?,
        is_open: has(limit_flags::OPEN),
    })
}

pub fn breaker(reader: &mut Reader) -> Result<Circuit, Invalid> {
    let cause = reader.number(&EXACT)?;
    let phase = match reader.byte()? {
        phase::CLOSED => {
            let len = reader.list()?;
            let mut failures = VecDeque::with_capacity(len.min(MOST_RESERVED));
            let mut base = 0;
            for _ in 0..len {
                base = reader.delta(base, &EXACT)?;
                failures.push_back(base);
            }
            Phase::Closed(failures)
        }
        phase::OPEN => Phase::Open {
            until: reader.number(&EXACT)?,
            length: reader.number(&EXACT)?,
        },
        phase::HALF_OPEN => Phase::HalfOpen {
            length: reader.number(&EXACT)?,
            probe: reader.optional(&EXACT)?,
        },
        _ => return Err(Invalid("an unknown state of a breaker")),
    };
    Ok(Circuit::restored(phase, cause))
}
