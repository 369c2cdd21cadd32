//! DQ.NACK: gives messages back. Replies with the number of receipts that were current.

use super::message_options::PARK;
use super::options::NOTE;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::{clock, replies, texts};
use dq_queue::args::{self, Words};
use dq_queue::Op;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.NACK",
    handler: run,
    flags: "write fast",
    keys: Keys::First,
    access: Access::Update,
    summary: "Gives messages back: failed, untouched, or never to be tried again.",
    complexity: "O(M log N) with M receipts and N messages in the queue",
    args: &[
        Arg::key(),
        Arg::integer("receipt").multiple(),
        Arg::integer("delay").after("DELAY").optional(),
        Arg::text("error").after("ERROR").optional(),
        Arg::one_of(
            "kind",
            &[
                Arg::block("silent", &[Arg::word("silent", "SILENT"), PARK]),
                Arg::word("fatal", "FATAL"),
            ],
        )
        .optional(),
        NOTE,
        Arg::one_of(
            "pause",
            &[
                Arg::integer("groupms").after("GROUP"),
                Arg::integer("queuems").after("QUEUE"),
            ],
        )
        .after("PAUSE")
        .optional(),
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let mut op = args::nack::nack(Words::new(&words), clock::random())?;
    if let Op::Nack { error, .. } = &mut op {
        texts::cut_error(error);
    }
    commit::run(ctx, args.key()?, &op, Missing::Nothing, replies::count)
}
