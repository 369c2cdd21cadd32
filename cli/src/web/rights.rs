//! The rights of a visitor: what may be done, and to which queues.

use crate::failure::Failure;
use crate::server::Scope;

/// The part that a visitor has. Each may do what those before it may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Sees, and changes nothing.
    #[default]
    Viewer,
    /// Acts on messages, and pauses and resumes.
    Operator,
    /// Changes and removes queues, their settings, limits and schedules, too.
    Admin,
}

/// The acts of an operator, by their words in addresses. Others are for admins.
const OPERATED: [&str; 20] = [
    "pause",
    "resume",
    "redrive",
    "cancel",
    "purge",
    "redrive-one",
    "cancel-one",
    "purge-one",
    "now-one",
    "end-lease",
    "duplicate",
    "fire",
    "pause-schedule",
    "resume-schedule",
    "send",
    "reschedule",
    "edit",
    "signal",
    "stop",
    "api/stop",
];

impl Role {
    const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// Returns the role of a word.
    pub fn of(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.word() == word)
    }

    /// Returns the role that an act needs, by its word in addresses.
    pub fn for_act(word: &str) -> Role {
        match OPERATED.contains(&word) {
            true => Role::Operator,
            false => Role::Admin,
        }
    }
}

/// The acts and the queues that are allowed to a visitor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// The part of the visitor.
    pub role: Role,
    /// The queues that the visitor may see.
    pub scope: Scope,
}

impl Rights {
    /// Returns the rights to do everything.
    pub fn all() -> Rights {
        Rights {
            role: Role::Admin,
            scope: Scope::default(),
        }
    }

    /// Reads them from the end of a line of the password file: a role, and behind another colon
    /// globs of queues with blanks between. Without a role they are all rights.
    pub fn parse(text: &str) -> Result<Rights, Failure> {
        let (role, globs) = text.split_once(':').unwrap_or((text, ""));
        let role = match role.trim() {
            "" => Role::Admin,
            word => Role::of(word).ok_or_else(|| {
                Failure::mistake(format!(
                    "{word:?} is no role: expected viewer, operator or admin"
                ))
            })?,
        };
        Ok(Rights {
            role,
            scope: Scope::of(globs.split_whitespace()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read() {
        for (text, role, sees) in [
            ("", Role::Admin, [true, true]),
            ("operator", Role::Operator, [true, true]),
            ("viewer:jobs:* mails", Role::Viewer, [true, false]),
            (":jobs:*", Role::Admin, [true, false]),
        ] {
            let rights = Rights::parse(text).unwrap();
            let seen = [&b"jobs:a"[..], b"other"].map(|queue| rights.scope.sees(queue));
            assert_eq!((rights.role, seen), (role, sees), "{text}");
        }
        assert!(Rights::parse("root").is_err());
    }

    #[test]
    fn an_act_without_a_word_of_its_own_is_for_admins() {
        for (word, role) in [
            ("redrive", Role::Operator),
            ("delete", Role::Admin),
            ("settings", Role::Admin),
            ("", Role::Admin),
        ] {
            assert_eq!(Role::for_act(word), role, "{word}");
        }
    }
}
