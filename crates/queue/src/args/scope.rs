//! Which options of a message a command has.

/// The options that only some commands have; every command has the others.
#[derive(Clone, Copy)]
pub struct Scope {
    /// ID, REPLACE, RERUN and DEDUPID.
    pub id: bool,
    /// DELAY, AT and EXPIREAT.
    pub due: bool,
    /// GROUP. A command without it accepts SCORE only if it sets
    /// `MessageOptions::group` itself.
    pub group: bool,
    /// PARENT, ONDEAD and CHILDREN.
    pub kin: bool,
}

impl Scope {
    /// The options of SEND, and of each NEXT of ACKSEND: all.
    pub const SEND: Scope = Scope {
        id: true,
        due: true,
        group: true,
        kin: true,
    };
    /// The options of MSEND, whose messages cannot share an id.
    pub const MSEND: Scope = Scope {
        id: false,
        ..Scope::SEND
    };
    /// The options of GROUPPUSH, which reads the group from the payload.
    pub const GROUP_PUSH: Scope = Scope {
        group: false,
        ..Scope::SEND
    };
    /// The options of SCHEDULE, whose rule gives the due times and ids.
    pub const SCHEDULE: Scope = Scope {
        id: false,
        due: false,
        kin: false,
        ..Scope::SEND
    };
}
