//! DQ.OPS: applies log entries of several queues at once, on replicas and when the append-only file
//! is loaded.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::server::replay;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.OPS",
    handler: replay::ops,
    flags: "write admin",
    keys: Keys::Pairs,
    access: Access::Update,
    summary:
        "Repeats an operation on several queues, on replicas and when the append-only file is \
              loaded; not for clients.",
    complexity: "That of the operations",
    args: &[Arg::block("operation", &[Arg::key(), Arg::text("record")]).multiple()],
};
