//! DQ.TICK: processes due events, or moves a manual clock.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{memory, Args, CommandResult, Context, Failure, Name, OwnedName, Reply};
use crate::server::commit::{self, begin_without_events, change, Missing};
use crate::server::{clock, errors, moving_slots, wakeups};
use dq_queue::args::tick::Tick;
use dq_queue::args::{self, Words};
use dq_queue::limits::MAX_STEPS;
use dq_queue::op::Ticked;
use dq_queue::settings::Clock;
use dq_queue::{Done, Error, Millis, Op, MAX_EXACT};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.TICK",
    handler: run,
    flags: "write getkeys-api no-mandatory-keys",
    keys: Keys::AllOrFirst,
    access: Access::Update,
    summary: "Does all that is due now, or moves the clock of a queue whose clock is manual.",
    complexity: "O(M log N) with M messages that fall due and N in the queues; with ADVANCE and TO also O(S) \
                 with S schedules",
    args: &[Arg::one_of(
        "what",
        &[
            Arg::block(
                "move",
                &[
                    Arg::key(),
                    Arg::one_of(
                        "clock",
                        &[
                            Arg::integer("ms").after("ADVANCE"),
                            Arg::time("time").after("TO"),
                        ],
                    ),
                ],
            ),
            Arg::key().multiple(),
        ],
    )
    .optional()],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_name();
    let ticked = match args::tick::tick(Words::new(&words))? {
        Tick::Advance(ms) => return advance(ctx, args.key()?, |now| now.saturating_add(ms)),
        Tick::To(to) => return advance(ctx, args.key()?, |_| to),
        Tick::Keys(range) => {
            let keys: Vec<Name<'_>> = args.names(range).collect();
            for key in &keys {
                ctx.open_read(*key)?;
            }
            let (mut ticked, mut left) = (Ticked::default(), MAX_STEPS);
            for key in keys {
                ticked += tick_one(ctx, key, &mut left)?;
            }
            ticked
        }
        Tick::All => {
            let db = ctx.db();
            let known: Vec<_> = wakeups::with_index(|index| {
                let here = index.addresses().filter(|(of, _)| *of == db);
                here.cloned().collect()
            });
            let (mut ticked, mut left) = (Ticked::default(), MAX_STEPS);
            for (_, key) in known {
                let name = OwnedName::new(&key);
                // Only the node that owns a slot may change its queues.
                if !ctx.owns(name.name()) {
                    continue;
                }
                // The index is only a hint: the key may hold another type by now. One that waits for
                // its slot is left.
                ticked += tick_one(ctx, name.name(), &mut left).unwrap_or_default();
            }
            ticked
        }
    };
    write(ctx.reply(), &ticked);
    Ok(())
}

/// Processes the due events of one queue, at most `left`, and reduces `left` by their number.
/// Errors: the key holds another type, or an event may write to a key that is not here.
fn tick_one(ctx: &mut Context, key: Name<'_>, left: &mut u64) -> Result<Ticked, Failure> {
    moving_slots::check(ctx, key, None)?;
    let began = ctx.begin_to_collect();
    let (mut ticked, mut last) = (Ticked::default(), None);
    let result = loop {
        match tick_up_to_owed(ctx, key, left, &mut ticked) {
            // Something is owed twice without a step between.
            Ok(true) if last.replace(*left) == Some(*left) => break Ok(ticked),
            Ok(true) => {}
            Ok(false) => break Ok(ticked),
            Err(error) => break Err(error),
        }
    };
    if began {
        ctx.replicate_collected();
    }
    result
}

/// Processes due events of one queue, up to one that owes something to other keys. Adds to `ticked`,
/// and returns whether it is to be called again.
fn tick_up_to_owed(
    ctx: &mut Context,
    key: Name<'_>,
    left: &mut u64,
    ticked: &mut Ticked,
) -> Result<bool, Failure> {
    change(ctx, key, |slot| {
        let (_, Some(queue)) = slot.split() else {
            return Ok(false);
        };
        let mut begun = begin_without_events(queue, clock::now());
        let now = queue.now(begun.moment);
        if begun.before.is_nothing() && !queue.has_work(now) {
            return Ok(false);
        }
        let missed = wakeups::missed_before(queue, now);
        let skips = commit::has_fire_without_memory(queue, now);
        while *left > 0 && !queue.owes() {
            let progress = begun.advance(queue, *left, skips || missed.is_some());
            *left = left.saturating_sub(progress.steps);
            *ticked += progress.ticked;
            if progress.caught_up || progress.steps == 0 {
                break;
            }
        }
        let goes_on = queue.owes();
        let op = match skips && !goes_on {
            true => Op::CatchUp {
                since: missed.unwrap_or(0),
                skip: true,
            },
            false => Op::Tick,
        };
        let applied = slot.apply(begun, &op, |_, _, _| ());
        applied.map_err(|error| errors::reply_for(&error))?;
        Ok(goes_on)
    })?
}

/// Moves a manual clock to the time that `to` returns for its present time, in ms.
fn advance(ctx: &mut Context, key: Name<'_>, to: impl FnOnce(Millis) -> Millis) -> CommandResult {
    let clock = ctx.open_read(key)?.get().map(|queue| queue.clock());
    let now = match clock {
        None => return Err(errors::NO_SUCH_QUEUE.into()),
        Some(Clock::Server) => return Err(errors::reply_for(&Error::ClockIsServers)),
        Some(Clock::Manual(now)) => now,
    };
    let to = to(now);
    if to > MAX_EXACT {
        return Err("ERR the clock cannot go beyond 2^53-1 ms".into());
    }
    let op = Op::Advance {
        to,
        skip_fires: memory::is_full(),
    };
    let mut ticked = Ticked::default();
    let began = ctx.begin_to_collect();
    // The clock stops where an event owes something to other keys, and goes on when that is settled.
    let result = loop {
        let mut is_there = true;
        let ran = commit::run(ctx, key, &op, Missing::Refuse, |_, outcome| {
            if let Some((queue, Done::Ticked(more))) = outcome {
                ticked += *more;
                is_there = !queue.owes();
            }
        });
        if ran.is_err() || is_there {
            break ran;
        }
    };
    if began {
        ctx.replicate_collected();
    }
    result?;
    write(ctx.reply(), &ticked);
    Ok(())
}

fn write(reply: Reply<'_>, ticked: &Ticked) {
    let counts: [(&[u8], u64); 6] = [
        (b"due", ticked.due),
        (b"timeouts", ticked.timeouts),
        (b"dead", ticked.dead),
        (b"expired", ticked.expired),
        (b"pruned", ticked.pruned),
        (b"fired", ticked.fired),
    ];
    reply.map(counts.len());
    for (name, count) in counts {
        reply.bulk(name);
        reply.unsigned(count);
    }
}
