//! DQ.ACK: finishes messages. Replies with the number of receipts that were current.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context};
use crate::server::commit::{self, Form, Missing};
use crate::server::replay;
use crate::server::{replies, texts};
use dq_queue::args::{self, Words};
use dq_queue::Op;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.ACK",
    handler: run,
    flags: "write fast",
    keys: Keys::First,
    access: Access::Delete,
    summary: "Finishes messages by the receipts of their deliveries.",
    complexity: "O(M log N) with M receipts and N messages leased or kept",
    args: &[
        Arg::key(),
        Arg::integer("receipt").multiple(),
        Arg::text("result").after("RESULT").optional(),
        Arg::integer("cost").after("COST").optional(),
    ],
};

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let op = args::ack::ack(Words::new(&words))?;
    let key = args.key()?;
    if ctx.is_replay() {
        return replay::command(ctx, key, &op);
    }
    if let Op::Ack { result, .. } | Op::AckCost { result, .. } = &op {
        texts::check_results(result.as_deref())?;
    }
    let form = Form::Verbatim;
    commit::run_in_form(ctx, key, &op, Missing::Nothing, form, replies::count)
}
