//! DQ.ACK: finishes messages. Replies with the number of receipts that were current.

use super::apply::{APPLY, IF};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys, Positions};
use crate::redis::{Args, CommandResult, Context, Failure, Name};
use crate::server::commit::{self, Form, Missing};
use crate::server::effects::{self, Applying};
use crate::server::{replay, replies, texts};
use dq_queue::args::{self, Words};
use dq_queue::effect::Apply;
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
    let (op, key) = (&request.op, args.key()?);
    if ctx.is_replay() {
        return replay::command(ctx, key, op);
    }
    if let Op::Ack { result, .. } | Op::AckCost { result, .. } = op {
        texts::check_results(result.as_deref())?;
    }
    if let Some(apply) = &request.apply {
        return apply_too(ctx, args, key, op, apply);
    }
    let form = Form::Verbatim;
    commit::run_in_form(ctx, key, op, Missing::Nothing, form, replies::count)
}

/// Acknowledges one message with effects.
#[inline(never)]
fn apply_too(
    ctx: &mut Context,
    args: Args<'_>,
    key: Name<'_>,
    op: &Op<'_>,
    apply: &Apply<'_>,
) -> CommandResult {
    let receipt = match op {
        Op::Ack { receipts, .. } | Op::AckCost { receipts, .. } => receipts.first().copied(),
        _ => None,
    };
    let applying = Applying::new(key, receipt.unwrap_or_default(), apply, |at| {
        args.name(at + 2)
    });
    match applying.run(ctx, |ctx| acknowledge(ctx, key, op))? {
        Some((outcomes, ())) => effects::write(ctx.reply(), &outcomes),
        None => ctx.reply().null_array(),
    }
    Ok(())
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
