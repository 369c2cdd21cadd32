//! DQ.NINFO: the counts of all queues of a family on this node.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::redis::{Args, CommandResult, Context, Reply};
use crate::server::rights::{self, FamilyCall};
use crate::server::serving::slots;
use crate::server::waiting::wait_list;
use crate::server::{clock, families, own_slots};
use dq_queue::args::{self, Words};
use dq_queue::message::state::State;
use dq_queue::stats::Lateness;
use dq_queue::{Millis, Moment, Queue};

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.NINFO",
    handler: run,
    flags: "readonly no-mandatory-keys",
    keys: Keys::None,
    access: Access::Read,
    summary: "Shows the counts of all queues of a family on this node.",
    complexity: "O(N) with N queues of the family on this node",
    args: &[Arg::text("family")],
};

/// The sum of some queues.
#[derive(Default)]
struct Sum {
    queues: u64,
    states: [u64; State::ALL.len()],
    oldest_ready_age: Option<Millis>,
    oldest_due_age: Option<Millis>,
    lateness: Lateness,
}

impl Sum {
    fn add(&mut self, queue: &Queue, moment: Moment) {
        self.queues += 1;
        for (sum, state) in self.states.iter_mut().zip(State::ALL) {
            *sum += queue.count(state);
        }
        let now = queue.time(moment);
        self.oldest_ready_age = self.oldest_ready_age.max(queue.oldest_ready_age(now));
        self.oldest_due_age = self.oldest_due_age.max(queue.oldest_due_age(now));
        self.lateness.add_all(queue.lateness());
    }
}

fn run(ctx: &mut Context, args: Args<'_>) -> CommandResult {
    let words = args.after_name();
    let family = args::family::info(Words::new(&words))?;
    families::activate();
    slots::check(ctx);
    let (db, user, moment) = (ctx.db(), ctx.user_name(), clock::now());
    let mut sum = Sum::default();
    for queue in families::members(db, family) {
        let key = queue.name();
        // A replica has the slots of its primary.
        let is_ours = !ctx.is_primary() || own_slots::is_ours(ctx, queue.name(), || queue.slot());
        if !is_ours || !rights::may_have(ctx, &user, FamilyCall::Info, key) {
            continue;
        }
        if let Ok(opened) = ctx.open_read(key) {
            if let Some(queue) = opened.get() {
                sum.add(queue, moment);
            }
        }
    }
    write(ctx.reply(), &sum, wait_list::count_of_family(db, family));
    Ok(())
}

/// The number of fields besides those of the states.
const OTHERS: usize = 7;

fn write(reply: Reply<'_>, sum: &Sum, blocked_clients: usize) {
    reply.map(State::ALL.len() + OTHERS);
    reply.field("queues", sum.queues);
    for (state, of_state) in State::ALL.into_iter().zip(sum.states) {
        reply.field(state.name(), of_state);
    }
    reply.field("oldest-ready-age", sum.oldest_ready_age);
    reply.field("lateness-p50", sum.lateness.percentile(50));
    reply.field("lateness-p99", sum.lateness.percentile(99));
    reply.field("lateness-max", sum.lateness.max());
    reply.field("blocked-clients", blocked_clients as u64);
    reply.field("oldest-due-age", sum.oldest_due_age);
}
