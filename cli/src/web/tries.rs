//! How often somebody has tried a password.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum number of wrong passwords for a name within `WINDOW`.
pub const TRIES: u32 = 5;

/// Time for which a wrong password counts.
const WINDOW: Duration = Duration::from_secs(60);

/// Maximum number of names without a user that are remembered.
const STRANGERS: usize = 1000;

/// The tries of each name.
#[derive(Default)]
pub struct Tries {
    /// The failed tries of users. There are never more of them than users, so none is ever dropped.
    users: HashMap<String, (u32, Instant)>,
    /// The failed tries with unknown names. They count, too, so that the limit does not tell
    /// which names there are.
    strangers: HashMap<String, (u32, Instant)>,
}

impl Tries {
    /// Counts a try, before the password is checked: the check is slow, and other tries
    /// must not begin meanwhile without being counted. Returns whether it may be made.
    pub fn begin(&mut self, name: &str, is_user: bool) -> bool {
        let now = Instant::now();
        let tries = match is_user {
            true => &mut self.users,
            false => &mut self.strangers,
        };
        tries.retain(|_, (_, at)| now - *at < WINDOW);
        if !is_user && tries.len() >= STRANGERS && !tries.contains_key(name) {
            // Only unknown names are dropped, so many names cannot reset the count of a user.
            let oldest = tries.iter().min_by_key(|(_, (_, at))| *at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                tries.remove(&oldest);
            }
        }
        let (count, at) = tries.entry(name.to_owned()).or_insert((0, now));
        if *count >= TRIES {
            return false;
        }
        (*count, *at) = (*count + 1, now);
        true
    }

    /// Takes back a try of a user, whose password was right.
    pub fn forgive(&mut self, user: &str) {
        if let Some((count, _)) = self.users.get_mut(user) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_wrong_names_do_not_end_the_limit_of_a_user() {
        let mut tries = Tries::default();
        let mut begin_some = |n: usize| {
            for i in 0..n {
                tries.begin(&format!("nobody {i}"), false);
            }
            assert!(tries.strangers.len() <= STRANGERS);
            tries.begin("ann", true)
        };
        for _ in 0..TRIES {
            assert!(begin_some(2 * STRANGERS));
        }
        assert!(!begin_some(2 * STRANGERS));
    }

    #[test]
    fn names_that_nobody_has_are_limited_as_those_of_users_are() {
        let mut tries = Tries::default();
        let begun = (0..9).filter(|_| tries.begin("bob", false)).count();
        assert_eq!(begun, TRIES as usize);
    }

    #[test]
    fn a_right_password_does_not_count() {
        let mut tries = Tries::default();
        for _ in 0..3 * TRIES {
            assert!(tries.begin("ann", true));
            tries.forgive("ann");
        }
    }
}
