//! DQ.TOUCH: sets how long leases last. Replies with the number of receipts that were
//! current.

use super::options::NOTE;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Missing};
use crate::server::replies;
use dq_queue::args::{self, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.TOUCH",
    handler: run,
    flags: "write fast",
    keys: Keys::First,
    access: Access::Update,
    summary: "Sets how long from now leases last.",
    complexity: "O(M log N) with M receipts and N messages leased",
    args: &[
        Arg::key(),
        Arg::integer("ms"),
        Arg::integer("receipt").multiple(),
        NOTE,
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::touch::touch(Words::new(&words))?;
    commit::run(ctx, args.key()?, &op, Missing::Nothing, replies::count)
}
