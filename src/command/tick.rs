//! DQ.TICK.

use crate::command::error;
use crate::command::execute::{run, settle, Missing};
use crate::ffi::{Args, CommandResult, Context, Failure, Name, OwnedName, Reply};
use crate::runtime::{moment, wake};
use dq_queue::args::tick::{self, Tick};
use dq_queue::args::Words;
use dq_queue::codec::record::Record;
use dq_queue::op::Ticked;
use dq_queue::settings::Clock;
use dq_queue::{Done, Error, Op};

/// Does what is due, or moves a manual clock.
pub fn tick(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_name();
    let ticked = match tick::tick(Words::new(&words))? {
        Tick::Advance(ms) => return advance(ctx, args.key()?, |now| now.saturating_add(ms)),
        Tick::To(to) => return advance(ctx, args.key()?, |_| to),
        Tick::Keys(range) => {
            let keys: Vec<Name<'_>> = args.names(range).collect();
            for key in &keys {
                ctx.open_read(*key)?;
            }
            let mut ticked = Ticked::default();
            for key in keys {
                ticked += tick_one(ctx, key)?;
            }
            ticked
        }
        Tick::All => {
            let db = ctx.db();
            let places = wake::with_index(|index| index.places());
            let mut ticked = Ticked::default();
            for (_, key) in places.into_iter().filter(|(of, _)| *of == db) {
                let name = OwnedName::new(&key);
                // A slot on its way to this node is changed by its owner alone.
                if !ctx.owns(name.name()) {
                    continue;
                }
                // What is there by that name now may be something else.
                ticked += tick_one(ctx, name.name()).unwrap_or_default();
            }
            ticked
        }
    };
    write(ctx.reply(), &ticked);
    Ok(())
}

/// Steps of one slice; all that is due is done in as many as it takes.
const STEPS: u64 = 1_000_000;

/// Does all that is due in one queue now.
fn tick_one(ctx: &mut Context, key: Name<'_>) -> Result<Ticked, Failure> {
    let mut opened = ctx.open_write(key)?;
    let (here, Some(queue)) = opened.split() else {
        return Ok(Ticked::default());
    };
    let moment = moment::now();
    let now = queue.now(moment);
    if !queue.has_work(now) || queue.has_missed(wake::firing_since(queue, now)) {
        return Ok(Ticked::default());
    }
    let (mut steps, mut ticked) = (0, Ticked::default());
    loop {
        let progress = queue.advance(now, STEPS);
        steps += progress.steps;
        ticked += progress.ticked;
        if progress.caught_up {
            break;
        }
    }
    // As the record will do it elsewhere.
    queue
        .apply(&Op::Tick, moment)
        .map_err(|error| error::refusal(&error))?;
    let record = Record::of(moment, steps, None, &Op::Tick);
    let told = settle(here, key, queue, moment, &record);
    drop(opened);
    told.tell(ctx, key);
    Ok(ticked)
}

/// Moves a manual clock to where `to` says, given where it stands.
fn advance(ctx: &mut Context, key: Name<'_>, to: impl FnOnce(u64) -> u64) -> CommandResult {
    let clock = ctx.open_read(key)?.get().map(|queue| queue.clock());
    let now = match clock {
        None => return Err(error::NO_SUCH_QUEUE.into()),
        Some(Clock::Server) => return Err(error::refusal(&Error::ClockIsServers)),
        Some(Clock::Manual(now)) => now,
    };
    let to = to(now);
    if to > dq_queue::MAX_EXACT {
        return Err("ERR the clock cannot go beyond 2^53-1 ms".into());
    }
    let op = Op::Advance { to };
    run(ctx, key, &op, Missing::Refuse, |reply, outcome| {
        if let Some((_, Done::Ticked(ticked))) = outcome {
            write(reply, ticked);
        }
    })
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
