//! DQ.FIND: finds messages by conditions, in steps, and changes them with DO.

use super::inspect::{inspect, write_cursor, write_page, write_seq};
use super::options::{BATCH, COUNT, CURSOR, GROUP, REVERSE, STATE, TYPE};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Name};
use crate::server::{commit, errors};
use dq_queue::args::find::{FindRequest, Found};
use dq_queue::args::{self, Words};
use dq_queue::op::{self, Op};
use dq_queue::queue::inspect::find::Search;
use dq_queue::settings::Clock;
use dq_queue::{Done, Queue};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.FIND",
    handler: run,
    flags: "write",
    keys: Keys::First,
    access: Access::ReadUpdate,
    summary:
        "Finds messages of one state by conditions, step by step, and changes them if asked to.",
    complexity: "O(log N + COUNT) for each step, with N messages in the queue; patterns take time \
        linear in the text that they are matched with; DO takes O(M log N) more for M messages",
    args: &[
        Arg::key(),
        STATE,
        Arg::text("id").after("ID").optional(),
        TYPE,
        GROUP,
        BATCH,
        PARENT,
        HEADER,
        Arg::text("error").after("ERROR").optional(),
        Arg::text("payload").after("PAYLOAD").optional(),
        Arg::time("since").after("SINCE").optional(),
        Arg::time("until").after("UNTIL").optional(),
        REVERSE,
        CURSOR,
        COUNT,
        Arg::one_of("reply", &[Arg::word("ids", "IDS"), DO]).optional(),
    ],
};

/// Its key is only compared, so it is no key of the command.
const PARENT: Arg = Arg::block("parent", &[Arg::text("queue"), Arg::text("id")])
    .after("PARENT")
    .optional();

const HEADER: Arg = Arg::block("header", &[Arg::text("field"), Arg::text("value")])
    .after("HEADER")
    .optional();

const DO: Arg = Arg::one_of(
    "action",
    &[
        Arg::word("redrive", "REDRIVE"),
        Arg::word("cancel", "CANCEL"),
        Arg::word("purge", "PURGE"),
    ],
)
.after("DO");

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let FindRequest { search, found } = args::find::find(Words::new(&words))?;
    check_times(ctx, key, &search)?;
    let act = match found {
        Found::Do(act) => act,
        Found::Messages | Found::Ids => {
            return inspect(ctx, key, |reply, queue| {
                let Some((queue, now)) = queue else {
                    return write_page(reply, None::<u64>, 0);
                };
                let (next, seqs) = queue.search(&search, now);
                write_page(reply, next, seqs.len());
                for seq in seqs {
                    write_seq(reply, queue, seq, now, found == Found::Ids);
                }
            });
        }
    };
    commit::run_chosen(
        ctx,
        key,
        |queue, now| {
            let (next, seqs) = queue.search(&search, now);
            (Op::FindDo { act, seqs }, next)
        },
        |reply, outcome| {
            let (next, count) = match outcome {
                Some((Done::Count(count), next)) => (next, *count),
                _ => (None, 0),
            };
            write_cursor(reply, next);
            reply.unsigned(count);
        },
    )
}

/// Checks that SINCE and UNTIL are not in seconds, which would match no message or all.
fn check_times(ctx: &mut Context, key: Name<'_>, search: &Search<'_>) -> CommandResult {
    if search.since.is_none() && search.until.is_none() {
        return Ok(());
    }
    let opened = ctx.open_read(key)?;
    let clock = opened.get().map_or(Clock::Server, Queue::clock);
    op::check_time(clock, "SINCE", search.since)
        .and_then(|()| op::check_time(clock, "UNTIL", search.until))
        .map_err(|error| errors::reply_for(&error))
}
