//! Why a change is not begun.

use crate::redis::{Failure, WrongType};
use crate::server::moving_slots::NotHere;

/// The reason why a change was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The key holds another type.
    WrongType,
    /// It would write to a key that is not here.
    NotHere,
}

impl From<WrongType> for Refused {
    fn from(_: WrongType) -> Refused {
        Refused::WrongType
    }
}

impl From<NotHere> for Refused {
    fn from(_: NotHere) -> Refused {
        Refused::NotHere
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        match refused {
            Refused::WrongType => WrongType.into(),
            Refused::NotHere => NotHere.into(),
        }
    }
}
