//! Converts command descriptions to the form that the server accepts.
//!
//! Without a description the server checks neither the number of arguments nor the keys, and users
//! with key permissions and cluster clients cannot use the command properly.

use super::log::c_text;
use super::raw;
use super::spec::{Access, Arg, CommandSpec, Keys, Kind};
use std::ffi::CString;
use std::mem::{size_of, zeroed};
use std::os::raw::{c_char, c_int};
use std::ptr;

/// The version that introduced the commands.
const SINCE: &str = "0.1.0";

static INFO_VERSION: raw::RedisModuleCommandInfoVersion = raw::RedisModuleCommandInfoVersion {
    version: 1,
    sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
    sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
    sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
};

/// Owns the texts and tables that pointers refer to, until the server has copied them.
#[derive(Default)]
struct Store {
    texts: Vec<CString>,
    tables: Vec<Vec<raw::RedisModuleCommandArg>>,
}

impl Store {
    fn text(&mut self, text: &str) -> *const c_char {
        let text = c_text(text);
        let pointer = text.as_ptr();
        self.texts.push(text);
        pointer
    }

    fn optional_text(&mut self, text: Option<&str>) -> *const c_char {
        text.map_or(ptr::null(), |text| self.text(text))
    }

    /// Converts arguments to a table that ends with an empty row.
    fn table(&mut self, args: &[Arg]) -> *mut raw::RedisModuleCommandArg {
        let mut rows: Vec<_> = args.iter().map(|arg| self.row(arg)).collect();
        // SAFETY: a row of zeros and nulls is valid. It ends a table.
        rows.push(unsafe { zeroed() });
        let pointer = rows.as_mut_ptr();
        self.tables.push(rows);
        pointer
    }

    fn row(&mut self, arg: &Arg) -> raw::RedisModuleCommandArg {
        let kind = match arg.kind {
            Kind::Key => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
            Kind::Text => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
            Kind::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
            Kind::Double => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
            Kind::Time => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_UNIX_TIME,
            Kind::Word => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
            Kind::OneOf(_) => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
            Kind::Block(_) => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK,
        };
        let subargs = match arg.kind {
            Kind::OneOf(parts) | Kind::Block(parts) => self.table(parts),
            _ => ptr::null_mut(),
        };
        let optional = u32::from(arg.optional) * raw::REDISMODULE_CMD_ARG_OPTIONAL;
        let multiple = u32::from(arg.multiple) * raw::REDISMODULE_CMD_ARG_MULTIPLE;
        raw::RedisModuleCommandArg {
            name: self.text(arg.name),
            type_: kind,
            key_spec_index: 0,
            token: self.optional_text(arg.token),
            summary: ptr::null(),
            since: ptr::null(),
            flags: (optional | multiple) as c_int,
            deprecated_since: ptr::null(),
            subargs,
            display_text: ptr::null(),
        }
    }
}

/// The server's flags for the access to a key, which key permissions are checked against.
pub(super) const fn key_flags(access: Access) -> u32 {
    match access {
        Access::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
        Access::Measure => raw::REDISMODULE_CMD_KEY_RO,
        Access::Insert => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_INSERT,
        Access::Update => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_UPDATE,
        Access::ReadUpdate => {
            raw::REDISMODULE_CMD_KEY_RW
                | raw::REDISMODULE_CMD_KEY_ACCESS
                | raw::REDISMODULE_CMD_KEY_UPDATE
        }
        Access::Delete => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_DELETE,
    }
}

fn key_spec(spec: &CommandSpec) -> raw::RedisModuleCommandKeySpec {
    // SAFETY: zeros and nulls are valid.
    let mut row: raw::RedisModuleCommandKeySpec = unsafe { zeroed() };
    row.flags = u64::from(key_flags(spec.access));
    row.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    row.bs.index.pos = 1;
    if let Keys::FirstAnd(_) | Keys::AllOrFirst = spec.keys {
        // The server calls the command itself to find out which arguments are keys.
        row.flags |= u64::from(raw::REDISMODULE_CMD_KEY_VARIABLE_FLAGS);
    }
    let (last, step) = match spec.keys {
        Keys::None => return row,
        Keys::Counted => {
            row.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_KEYNUM;
            row.fk.keynum.keynumidx = 0;
            row.fk.keynum.firstkey = 1;
            row.fk.keynum.keystep = 1;
            return row;
        }
        Keys::First => (0, 1),
        Keys::FirstAnd(_) => {
            row.flags |= u64::from(raw::REDISMODULE_CMD_KEY_INCOMPLETE);
            (0, 1)
        }
        Keys::Pairs => (-1, 2),
        Keys::AllOrFirst => (-1, 1),
    };
    row.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    row.fk.range.lastkey = last;
    row.fk.range.keystep = step;
    row.fk.range.limit = 0;
    row
}

/// Describes a registered command to the server. Returns false if the server refuses.
///
/// # Safety
/// `command` must be a command of this module.
pub(super) unsafe fn describe(command: *mut raw::RedisModuleCommand, spec: &CommandSpec) -> bool {
    let mut store = Store::default();
    // SAFETY: a row of zeros ends the table.
    let mut keys = [key_spec(spec), unsafe { zeroed() }];
    let info = raw::RedisModuleCommandInfo {
        version: &INFO_VERSION,
        summary: store.text(spec.summary),
        complexity: store.text(spec.complexity),
        since: store.text(SINCE),
        history: ptr::null_mut(),
        tips: ptr::null(),
        arity: spec.arity(),
        key_specs: match spec.keys {
            Keys::None => ptr::null_mut(),
            _ => keys.as_mut_ptr(),
        },
        args: store.table(spec.args),
    };
    // SAFETY: the server copies everything before `store` and `keys` are dropped.
    unsafe { api!(RedisModule_SetCommandInfo(command, &info)) == raw::REDISMODULE_OK as c_int }
}
