//! DQ.SIGNAL: sends a signal to a message, which releases it if it is parked. Replies with 1, or with
//! 0 if there is no such message or it has ended.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::{replies, texts};
use dq_queue::args::{self, Words};
use dq_queue::Op;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.SIGNAL",
    handler: run,
    flags: "write fast",
    keys: Keys::First,
    access: Access::Update,
    summary: "Sends a signal to a message, which releases it if it is parked.",
    complexity: "O(log N) with N messages in the queue",
    args: &[
        Arg::key(),
        Arg::text("id"),
        Arg::text("data").after("DATA").optional(),
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::signal::signal(Words::new(&words))?;
    if let Op::Signal { text, .. } = &op {
        texts::check_signal(text)?;
    }
    commit::run(ctx, args.key()?, &op, Missing::Nothing, replies::flag)
}
