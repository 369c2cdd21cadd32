//! DQ.ACKSEND: finishes a message and sends the messages and signals that follow from it, to any
//! queues of its slot. All of that is done, or nothing.

use super::apply::{APPLY, IF};
use super::message_options::with_message_options;
use super::parents::{check_parent, keys_of_parents};
use crate::redis::spec::{Access, Arg, CommandSpec, Keys, Positions};
use crate::redis::{Args, CommandResult, Context, Name, Reply};
use crate::server::acksend::Made;
use crate::server::config::MAX_PAYLOAD;
use crate::server::effects::{self, Applying};
use crate::server::{acksend, texts};
use dq_queue::args::acksend::What;
use dq_queue::args::{self, Scope, Words};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.ACKSEND",
    handler: run,
    flags: "write deny-oom getkeys-api",
    keys: Keys::FirstAnd(dests),
    access: Access::Delete,
    summary: "Finishes a message and sends the messages and signals that follow from it, all in one step.",
    complexity: "O(M log N) with M messages and signals to send and N in their queues",
    args: &[
        Arg::key(),
        Arg::integer("receipt"),
        Arg::text("result").after("RESULT").optional(),
        APPLY,
        IF,
        Arg::one_of("next", &[NEXT, SIGNAL]).multiple(),
    ],
};

const NEXT: Arg = Arg::block("message", &NEXT_PARTS).after("NEXT");

/// `SIGNAL dest id text`
const SIGNAL: Arg =
    Arg::block("signal", &[Arg::key(), Arg::text("id"), Arg::text("text")]).after("SIGNAL");

const NEXT_PARTS: [Arg; 29] =
    with_message_options(&[Arg::key(), Arg::text("payload")], Scope::SEND, &[]);

/// The positions of the other keys among the arguments after the name. None
/// where the arguments are not valid: then the command does nothing.
fn dests(words: &[&[u8]]) -> Positions {
    let after_key = words.get(1..).unwrap_or_default();
    match args::acksend::ack_send(Words::new(after_key), u64::MAX) {
        Ok(request) => {
            let keys = request
                .next
                .iter()
                .map(|next| (next.key + 1, Access::Insert));
            let sent = request.next.iter().filter_map(|next| match &next.what {
                What::Send(send) => Some(&send.choices),
                What::Signal(_) => None,
            });
            let mut keys: Vec<_> = keys.chain(keys_of_parents(words, sent)).collect();
            keys.extend(
                request
                    .apply
                    .iter()
                    .flat_map(|apply| effects::keys_of(apply)),
            );
            keys.sort_unstable_by_key(|(position, _)| *position);
            keys
        }
        Err(_) => Positions::new(),
    }
}

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let key = args.key()?;
    let words = args.after_key();
    let mut request = args::acksend::ack_send(Words::new(&words), MAX_PAYLOAD.unsigned())?;
    texts::check_results(request.result.as_deref())?;
    // The words begin behind the name and the key.
    let dest = |word: usize| args.name(word + 2);
    for next in &request.next {
        if let (What::Send(send), Some(key)) = (&next.what, dest(next.key)) {
            check_parent(ctx, key, send)?;
        }
    }
    if let Some(apply) = request.apply.take() {
        let mut applying = Applying::new(key, request.receipt, &apply, dest);
        let positions = dests(&args.after_name());
        let others = positions.iter().filter_map(|(at, _)| args.name(at + 1));
        let is_applied = |name: &Name<'_>| applying.names.iter().any(|one| one.is(*name));
        applying.changed = others
            .filter(|name| !is_applied(name))
            .map(Name::bytes)
            .collect();
        let applied = applying.run(ctx, |ctx| acksend::run(ctx, key, request, dest))?;
        match applied {
            Some((outcomes, ids)) => {
                ctx.reply().array(2);
                effects::write(ctx.reply(), &outcomes);
                write_ids(ctx.reply(), ids);
            }
            None => ctx.reply().null_array(),
        }
        return Ok(());
    }
    match acksend::run(ctx, key, request, dest)? {
        Some(ids) => write_ids(ctx.reply(), ids),
        None => ctx.reply().null_array(),
    }
    Ok(())
}

fn write_ids(reply: Reply<'_>, ids: acksend::Ids) {
    reply.array(ids.len());
    for id in ids {
        match id {
            Made::Id(id) => reply.bulk(&id),
            Made::Nothing => reply.null(),
            Made::Signaled(is_there) => reply.unsigned(u64::from(is_there)),
        }
    }
}
