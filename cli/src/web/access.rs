//! Access to the pages: by a password file, by a header that a proxy sets, or for
//! everybody who reaches the pages.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::hmac;

use super::passwords::Users;
use super::random::random;
use super::rights::{Rights, Role};
use super::tries::Tries;
use super::visitor::Visitor;
use crate::failure::Failure;
use crate::text::hex;

/// Time after which a session ends in which nothing was asked for.
const IDLE: Duration = Duration::from_secs(12 * 3600);

/// Maximum size of the name of a user.
pub const NAME: usize = 256;

/// Maximum size of a password that is asked about. bcrypt ignores the bytes of a password
/// after the first 72.
const PASSWORD: usize = 1024;

/// Maximum number of sessions.
const MOST: usize = 1000;

/// The way in which visitors are known.
pub enum Gate {
    /// By name and password, programs by a token.
    Passwords(Users),
    /// By headers of a proxy.
    Header(Headers),
    /// Everybody may see the pages under one of these host names.
    Open(Vec<String>),
}

/// The headers of a proxy that tell who asks.
#[derive(Debug, Clone)]
pub struct Headers {
    /// The header with the name of the user.
    pub user: String,
    /// The header with the role, if there is one. Without it everybody may do everything.
    pub role: Option<String>,
    /// The addresses from which the headers count.
    pub proxies: Vec<IpAddr>,
}

struct Session {
    user: String,
    rights: Rights,
    csrf: String,
    used: Instant,
}

/// Lets visitors in.
pub struct Access {
    /// The way in which they are known.
    pub gate: Gate,
    sessions: Mutex<HashMap<String, Session>>,
    tries: Mutex<Tries>,
    /// Makes the tokens of forms where there are no sessions.
    key: hmac::Key,
}

/// The reason why a visitor is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The visitor has to sign in.
    SignIn,
    /// No program has this token.
    NoToken,
    /// The request did not come through the proxy, or without the header.
    NoProxy,
    /// The request names more than one user.
    TwoUsers,
    /// The form is from a page of another site.
    OtherOrigin,
    /// The page was asked for under a name that is not ours.
    OtherHost,
}

impl Access {
    /// Creates the access for a gate.
    pub fn new(gate: Gate) -> Result<Access, Failure> {
        let secret = random()?;
        Ok(Access {
            gate,
            sessions: Mutex::default(),
            tries: Mutex::default(),
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
        })
    }

    /// Returns who asks, from the address of the connection and the headers of the
    /// request: the cookie of a session, the header of the proxy, and the host. `headers`
    /// returns all headers of a name.
    pub fn visitor(
        &self,
        address: IpAddr,
        session: Option<&str>,
        headers: impl Fn(&str) -> Vec<String>,
    ) -> Result<Visitor, Refusal> {
        let known = |user: &str, csrf: String, rights: Rights| Visitor {
            user: user.to_owned(),
            address: address.to_string(),
            csrf,
            rights,
        };
        match &self.gate {
            Gate::Passwords(users) => {
                let shown = headers("authorization");
                if let Some(token) = shown.first().and_then(|text| text.strip_prefix("Bearer ")) {
                    let program = users.of_token(token.trim()).ok_or(Refusal::NoToken)?;
                    return Ok(known(&program.0, String::new(), program.1.clone()));
                }
                let mut sessions = lock(&self.sessions);
                let session = session.and_then(|id| sessions.get_mut(id));
                let session = session.filter(|session| session.used.elapsed() < IDLE);
                let session = session.ok_or(Refusal::SignIn)?;
                session.used = Instant::now();
                let rights = session.rights.clone();
                Ok(known(&session.user, session.csrf.clone(), rights))
            }
            Gate::Header(named) => {
                let users = headers(&named.user);
                match &users[..] {
                    _ if !named.proxies.contains(&address.to_canonical()) => Err(Refusal::NoProxy),
                    [user] if !user.is_empty() => {
                        Ok(known(user, self.token(user), named.rights(headers)))
                    }
                    // One of the names may be the visitor's own. Nobody can tell which.
                    [_, _, ..] => Err(Refusal::TwoUsers),
                    _ => Err(Refusal::NoProxy),
                }
            }
            Gate::Open(hosts) => {
                // A page of another site, whose name was made to lead here, must not be
                // able to read ours.
                match &headers("host")[..] {
                    [host] if hosts.contains(&name(host)) => {
                        Ok(known("", self.token(""), Rights::all()))
                    }
                    _ => Err(Refusal::OtherHost),
                }
            }
        }
    }

    /// Returns whether visitors sign in here, and so can sign out.
    pub fn has_sessions(&self) -> bool {
        matches!(self.gate, Gate::Passwords(_))
    }

    fn token(&self, user: &str) -> String {
        hex(hmac::sign(&self.key, user.as_bytes()))
    }

    /// Returns whether somebody could have this name and password. If not, they are
    /// neither looked up nor kept nor written down.
    pub fn is_plausible(user: &str, password: &[u8]) -> bool {
        user.len() <= NAME && password.len() <= PASSWORD
    }

    /// Checks a password. Returns the new session, or `None` if name or password is
    /// wrong. This takes a tenth of a second or more.
    pub fn sign_in(&self, user: &str, password: &[u8]) -> Result<Option<String>, Failure> {
        let Gate::Passwords(users) = &self.gate else {
            return Ok(None);
        };
        if !Access::is_plausible(user, password) {
            return Ok(None);
        }
        let found = users.by_name.get(user);
        if !lock(&self.tries).begin(user, found.is_some()) {
            return Err(Failure::mistake("too many wrong passwords: try later"));
        }
        // Some password is checked for an unknown name too, so that timing does not reveal
        // names.
        let checked = found.or(users.by_name.values().next());
        let checked = checked.map_or("", |(hash, _)| hash);
        let right = bcrypt::verify(password, checked).unwrap_or(false);
        let Some((_, rights)) = found.filter(|_| right) else {
            return Ok(None);
        };
        lock(&self.tries).forgive(user);
        let id = random()?;
        let session = Session {
            user: user.to_owned(),
            rights: rights.clone(),
            csrf: random()?,
            used: Instant::now(),
        };
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, session| session.used.elapsed() < IDLE);
        if sessions.len() >= MOST {
            let oldest = sessions.iter().min_by_key(|(_, session)| session.used);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                sessions.remove(&oldest);
            }
        }
        sessions.insert(id.clone(), session);
        Ok(Some(id))
    }

    /// Ends a session.
    pub fn sign_out(&self, session: &str) {
        lock(&self.sessions).remove(session);
    }
}

impl Headers {
    /// Returns the rights of a visitor. A role that is missing, comes twice or is unknown is that
    /// of a viewer.
    fn rights(&self, headers: impl Fn(&str) -> Vec<String>) -> Rights {
        let Some(name) = &self.role else {
            return Rights::all();
        };
        let role = match &headers(name)[..] {
            [word] => Role::of(word.trim()).unwrap_or_default(),
            _ => Role::default(),
        };
        Rights {
            role,
            ..Rights::default()
        }
    }
}

/// Returns the name in a Host header, in lower case and without the port.
fn name(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
        _ => host,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::tries::TRIES;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn passwords() -> Access {
        // The lowest cost, so that the test is quick.
        let hash = bcrypt::hash("right", 4).unwrap();
        let by_name = HashMap::from([("ann".to_owned(), (hash, Rights::all()))]);
        let users = Users {
            by_name,
            ..Users::default()
        };
        Access::new(Gate::Passwords(users)).unwrap()
    }

    #[test]
    fn a_session_begins_with_the_password_and_ends_with_signing_out() {
        let access = passwords();
        let visitor = |id: Option<&str>| access.visitor(HERE, id, |_| Vec::new());
        assert_eq!(visitor(None), Err(Refusal::SignIn));
        assert_eq!(access.sign_in("ann", b"wrong"), Ok(None));
        assert_eq!(access.sign_in("bob", b"right"), Ok(None));
        let id = access.sign_in("ann", b"right").unwrap().unwrap();
        let ann = visitor(Some(&id)).unwrap();
        assert_eq!(ann.user, "ann");
        let (token, other) = (ann.token(), ann.token());
        assert!(ann.accepts(token.as_bytes()) && ann.accepts(other.as_bytes()) && token != other);
        for wrong in ["", "x", &token[1..], &ann.csrf, "00"] {
            assert!(!ann.accepts(wrong.as_bytes()), "{wrong}");
        }
        access.sign_out(&id);
        assert_eq!(visitor(Some(&id)), Err(Refusal::SignIn));
    }

    #[test]
    fn passwords_cannot_be_tried_without_end() {
        let access = passwords();
        for _ in 0..TRIES {
            assert_eq!(access.sign_in("ann", b"wrong"), Ok(None));
        }
        assert!(access.sign_in("ann", b"right").is_err());
    }

    #[test]
    fn a_name_that_nobody_can_have_is_not_kept() {
        let access = passwords();
        let long = "x".repeat(NAME + 1);
        assert!(crate::web::passwords::line(&long, b"password").is_err());
        for _ in 0..2 * TRIES {
            assert_eq!(access.sign_in(&long, b"right"), Ok(None));
            assert_eq!(access.sign_in("ann", &[b'x'; PASSWORD + 1]), Ok(None));
        }
        assert!(access.sign_in("ann", b"right").unwrap().is_some());
    }

    #[test]
    fn passwords_that_are_tried_at_once_are_all_counted() {
        let access = passwords();
        let start = std::sync::Barrier::new(16);
        let attempt = || {
            start.wait();
            access.sign_in("ann", b"wrong").is_ok()
        };
        let checked = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(attempt)).collect();
            let checked = threads.into_iter().map(|thread| thread.join().unwrap());
            checked.filter(|checked| *checked).count()
        });
        assert_eq!(checked, TRIES as usize);
    }

    #[test]
    fn the_header_counts_only_from_the_proxy() {
        let headers = Headers {
            user: "X-User".to_owned(),
            role: Some("X-Role".to_owned()),
            proxies: vec![HERE],
        };
        let access = Access::new(Gate::Header(headers)).unwrap();
        let user = |name: &str, users: &[&str]| match name {
            "X-User" => users.iter().map(|user| (*user).to_owned()).collect(),
            _ => Vec::new(),
        };
        let header = |name: &str| user(name, &["ann"]);
        let visitor = access.visitor(HERE, None, header).unwrap();
        assert_eq!(
            (visitor.user.as_str(), visitor.rights.role),
            ("ann", Role::Viewer)
        );
        for (roles, role) in [
            (&["operator"][..], Role::Operator),
            (&["admin"], Role::Admin),
            (&["root"], Role::Viewer),
            (&["admin", "admin"], Role::Viewer),
        ] {
            let header = |name: &str| match name {
                "X-Role" => roles.iter().map(|role| (*role).to_owned()).collect(),
                name => user(name, &["ann"]),
            };
            let visitor = access.visitor(HERE, None, header).unwrap();
            assert_eq!(visitor.rights.role, role, "{roles:?}");
        }
        let mapped = "::ffff:127.0.0.1".parse().unwrap();
        assert!(access.visitor(mapped, None, header).is_ok());
        let other = "192.0.2.1".parse().unwrap();
        assert_eq!(access.visitor(other, None, header), Err(Refusal::NoProxy));
        for (users, refusal) in [
            (&[][..], Refusal::NoProxy),
            (&[""], Refusal::NoProxy),
            (&["eve", "ann"], Refusal::TwoUsers),
            (&["ann", "ann"], Refusal::TwoUsers),
        ] {
            let found = access.visitor(HERE, None, |name| user(name, users));
            assert_eq!(found, Err(refusal), "{users:?}");
        }
    }

    #[test]
    fn an_open_page_is_not_given_under_another_name() {
        let access =
            Access::new(Gate::Open(vec!["localhost".to_owned(), "[::1]".to_owned()])).unwrap();
        let visit = |host: &str| access.visitor(HERE, None, |_| vec![host.to_owned()]);
        for host in ["localhost:8377", "LOCALHOST", "[::1]:8377", "[::1]"] {
            assert!(visit(host).is_ok(), "{host}");
        }
        for host in ["evil.example:8377", "localhost.evil.example", "", "::1"] {
            assert_eq!(visit(host), Err(Refusal::OtherHost), "{host}");
        }
    }
}
