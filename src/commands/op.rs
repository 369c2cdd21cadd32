//! DQ.OP: applies log entries, on replicas and when the append-only file is loaded.

use super::FIRST;
use crate::redis::spec::{Access, Arg, CommandSpec, Keys};
use crate::server::replay;

/// The description of the command, for the server and for COMMAND DOCS.
pub const SPEC: CommandSpec = CommandSpec {
    name: "DQ.OP",
    handler: replay::op,
    flags: "write admin",
    arity: -3,
    keys: Keys::First,
    access: Access::Update,
    summary:
        "Repeats operations on replicas and when the append-only file is loaded; not for clients.",
    complexity: "That of the operations",
    since: FIRST,
    args: &[Arg::key(), Arg::text("record").multiple()],
};
