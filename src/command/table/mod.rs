//! The one table of all commands, as the server and its users are told of them.

mod change;
mod consume;
mod look;
mod options;
mod produce;

use super::spec::CommandSpec;

/// Every command of the module.
pub const COMMANDS: [CommandSpec; 32] = [
    produce::CREATE,
    produce::ALTER,
    produce::SEND,
    produce::MSEND,
    produce::GROUPPUSH,
    consume::FETCH,
    consume::MFETCH,
    consume::ACK,
    consume::NACK,
    consume::TOUCH,
    consume::TICK,
    look::GET,
    look::LIST,
    look::PEEK,
    look::LEN,
    look::INFO,
    look::GROUPS,
    look::CONSUMERS,
    look::EXPLAIN,
    look::WAIT,
    look::SCHEDULES,
    change::CANCEL,
    change::RESCHEDULE,
    change::UPDATE,
    change::REDRIVE,
    change::PURGE,
    change::PAUSE,
    change::RESUME,
    change::GROUPSET,
    change::SCHEDULE,
    change::UNSCHEDULE,
    change::OP,
];

/// The version that brought the first commands.
const FIRST: &str = "0.1.0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::spec::{Access, Arg, Keys, Kind};

    #[test]
    fn names_are_unique_and_in_upper_case() {
        let mut names: Vec<_> = COMMANDS.iter().map(|spec| spec.name).collect();
        assert!(names
            .iter()
            .all(|name| name.starts_with("DQ.") && *name == name.to_ascii_uppercase()));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COMMANDS.len());
    }

    #[test]
    fn flags_and_access_agree() {
        for spec in &COMMANDS {
            let writes = spec.flags.split(' ').any(|flag| flag == "write");
            let reads = spec.flags.split(' ').any(|flag| flag == "readonly");
            assert!(writes != reads, "{}", spec.name);
            let changes = !matches!(spec.access, Access::Read | Access::Measure);
            assert_eq!(writes, changes, "{}", spec.name);
        }
    }

    #[test]
    fn what_drains_is_never_refused_for_lack_of_memory() {
        for spec in &COMMANDS {
            let name = spec.name.trim_start_matches("DQ.");
            let adds = [
                "CREATE",
                "SEND",
                "MSEND",
                "GROUPPUSH",
                "UPDATE",
                "PAUSE",
                "GROUPSET",
                "SCHEDULE",
            ];
            assert_eq!(
                spec.flags.contains("deny-oom"),
                adds.contains(&name),
                "{name}"
            );
        }
    }

    /// The fewest words that the arguments can be.
    fn fewest(args: &[Arg]) -> i32 {
        args.iter()
            .filter(|arg| !arg.optional)
            .map(|arg| match arg.kind {
                Kind::Word => 1,
                Kind::OneOf(choices) => {
                    let token = i32::from(arg.token.is_some());
                    let each = choices.iter().map(|c| fewest(std::slice::from_ref(c)));
                    token + each.min().unwrap_or(0)
                }
                Kind::Block(parts) => i32::from(arg.token.is_some()) + fewest(parts),
                _ => 1 + i32::from(arg.token.is_some()),
            })
            .sum()
    }

    #[test]
    fn arity_and_arguments_agree() {
        for spec in &COMMANDS {
            assert_eq!(spec.arity.abs(), 1 + fewest(spec.args), "{}", spec.name);
        }
    }

    #[test]
    fn keys_stand_where_the_table_says() {
        for spec in &COMMANDS {
            let first = spec.args.first().map(|arg| arg.kind);
            match spec.keys {
                Keys::First => assert!(matches!(first, Some(Kind::Key)), "{}", spec.name),
                Keys::Counted => assert!(matches!(first, Some(Kind::Integer)), "{}", spec.name),
                Keys::AllOrFirst => assert!(spec.flags.contains("getkeys-api"), "{}", spec.name),
            }
        }
    }
}
