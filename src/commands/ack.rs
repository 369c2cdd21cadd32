//! DQ.ACK: finishes messages. Replies with the number of receipts that were current.

use super::apply::{APPLY, IF};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys, Positions};
use crate::redis::{Args, CommandResult, Context, Failure, Name};
use crate::server::commit::{self, Form, Missing};
use crate::server::effects::{self, Applying};
use crate::server::{replay, replies, texts};
use dq_queue::args::{self, Words};
use dq_queue::{Done, Op};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.ACK",
    handler: run,
    flags: "write fast getkeys-api",
    keys: Keys::FirstAnd(keys),
    access: Access::Delete,
    summary: "Finishes messages by the receipts of their deliveries.",
    complexity: "O(M log N) with M receipts and N messages leased or kept",
    args: &[
        Arg::key(),
        Arg::integer("receipt").multiple(),
        Arg::text("result").after("RESULT").optional(),
        Arg::integer("cost").after("COST").optional(),
        APPLY,
        IF,
    ],
};

fn keys(words: &[&[u8]]) -> Positions {
    effects::keys_in(words, |words| Ok(args::ack::ack(words)?.apply))
}

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_key();
    let request = args::ack::ack(Words::new(&words))?;
    let (op, key) = (request.op, args.key()?);
    if ctx.is_replay() {
        return replay::command(ctx, key, &op);
    }
    if let Op::Ack { result, .. } | Op::AckCost { result, .. } = &op {
        texts::check_results(result.as_deref())?;
    }
    if let Some(apply) = request.apply {
        let receipt = match &op {
            Op::Ack { receipts, .. } | Op::AckCost { receipts, .. } => receipts.first().copied(),
            _ => None,
        };
        let receipt = receipt.unwrap_or_default();
        let applying = Applying::new(key, receipt, &apply, |at| args.name(at + 2));
        let applied = applying.run(ctx, |ctx| acknowledge(ctx, key, &op))?;
        match applied {
            Some((outcomes, ())) => effects::write(ctx.reply(), &outcomes),
            None => ctx.reply().null_array(),
        }
        return Ok(());
    }
    let form = Form::Verbatim;
    commit::run_in_form(ctx, key, &op, Missing::Nothing, form, replies::count)
}

/// Acknowledges one message, and replies nothing. Returns `None` if its receipt is stale.
pub(super) fn acknowledge(
    ctx: &mut Context,
    key: Name<'_>,
    op: &Op<'_>,
) -> Result<Option<()>, Failure> {
    let mut acked = None;
    commit::run(ctx, key, op, Missing::Nothing, |_, outcome| {
        if let Some((_, Done::Count(1))) = outcome {
            acked = Some(());
        }
    })?;
    Ok(acked)
}
