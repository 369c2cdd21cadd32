//! DQ.OP: applies log entries, on replicas and when the append-only file is loaded.

use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::server::replay;

pub(super) const SPEC: CommandSpec = CommandSpec {
    name: "DQ.OP",
    handler: replay::op,
    flags: "write admin",
    keys: Keys::First,
    access: Access::Update,
    summary:
        "Repeats operations on replicas and when the append-only file is loaded; not for clients.",
    complexity: "That of the operations",
    args: &[Arg::key(), Arg::text("record").multiple()],
};
