//! The commands. There is one file for each verb, with its description, its handler and its reply.
//!
//! A handler parses its arguments with `args` of the library, and passes the operation to
//! [`commit`](crate::server::commit).

mod ack;
mod acksend;
mod alter;
mod apply;
mod batches;
mod cancel;
mod children;
mod consumers;
mod create;
mod explain;
mod fetch;
mod find;
mod get;
mod grouppush;
mod groups;
mod groupset;
mod info;
mod inspect;
mod len;
mod limit;
mod limits;
mod list;
mod message_options;
mod mfetch;
mod msend;
mod nack;
mod nfetch;
mod ninfo;
mod op;
mod ops;
mod options;
mod parents;
mod partitions;
mod pause;
mod peek;
mod purge;
mod redrive;
mod reschedule;
mod resume;
mod route;
mod schedule;
mod schedules;
mod send;
mod signal;
mod tick;
mod touch;
mod unschedule;
mod update;
mod wait;

use crate::redis::spec::CommandSpec;

/// The descriptions of all commands, for the server and for COMMAND DOCS.
pub static ALL: [CommandSpec; 44] = [
    create::SPEC,
    alter::SPEC,
    send::SPEC,
    msend::SPEC,
    grouppush::SPEC,
    fetch::SPEC,
    mfetch::SPEC,
    nfetch::SPEC,
    ninfo::SPEC,
    route::SPEC,
    partitions::SPEC,
    ack::SPEC,
    acksend::SPEC,
    nack::SPEC,
    touch::SPEC,
    tick::SPEC,
    get::SPEC,
    list::SPEC,
    find::SPEC,
    peek::SPEC,
    len::SPEC,
    info::SPEC,
    groups::SPEC,
    batches::SPEC,
    children::SPEC,
    limits::SPEC,
    consumers::SPEC,
    explain::SPEC,
    wait::SPEC,
    schedules::SPEC,
    cancel::SPEC,
    reschedule::SPEC,
    update::SPEC,
    signal::SPEC,
    redrive::SPEC,
    purge::SPEC,
    pause::SPEC,
    resume::SPEC,
    groupset::SPEC,
    limit::SPEC,
    schedule::SPEC,
    unschedule::SPEC,
    op::SPEC,
    ops::SPEC,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::spec::{Access, Keys, Kind};

    #[test]
    fn names_are_unique_and_in_upper_case() {
        let mut names: Vec<_> = ALL.iter().map(|spec| spec.name).collect();
        assert!(names
            .iter()
            .all(|name| name.starts_with("DQ.") && *name == name.to_ascii_uppercase()));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn a_command_has_the_write_flag_if_it_changes_its_key() {
        for spec in &ALL {
            let writes = spec.flags.split(' ').any(|flag| flag == "write");
            let reads = spec.flags.split(' ').any(|flag| flag == "readonly");
            assert!(writes != reads, "{}", spec.name);
            let changes = !matches!(spec.access, Access::Read | Access::Measure);
            assert_eq!(writes, changes, "{}", spec.name);
        }
    }

    #[test]
    fn only_commands_that_add_something_are_refused_when_memory_is_full() {
        for spec in &ALL {
            let name = spec.name.trim_start_matches("DQ.");
            let adds = [
                "CREATE",
                "SEND",
                "MSEND",
                "GROUPPUSH",
                "ACKSEND",
                "UPDATE",
                "PAUSE",
                "GROUPSET",
                "LIMIT",
                "SCHEDULE",
            ];
            assert_eq!(
                spec.flags.contains("deny-oom"),
                adds.contains(&name),
                "{name}"
            );
        }
    }

    #[test]
    fn the_first_argument_fits_the_position_of_the_keys() {
        for spec in &ALL {
            let first = spec.args.first().map(|arg| arg.kind);
            match spec.keys {
                Keys::None => assert!(!matches!(first, Some(Kind::Key)), "{}", spec.name),
                Keys::First => assert!(matches!(first, Some(Kind::Key)), "{}", spec.name),
                Keys::FirstAnd(_) => {
                    assert!(matches!(first, Some(Kind::Key)), "{}", spec.name);
                    assert!(spec.flags.contains("getkeys-api"), "{}", spec.name);
                }
                Keys::Pairs => assert!(matches!(first, Some(Kind::Block(_))), "{}", spec.name),
                Keys::Counted => assert!(matches!(first, Some(Kind::Integer)), "{}", spec.name),
                Keys::AllOrFirst => assert!(spec.flags.contains("getkeys-api"), "{}", spec.name),
            }
        }
    }
}
