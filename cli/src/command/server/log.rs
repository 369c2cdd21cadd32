//! The log of the server, for people.

use std::collections::VecDeque;

use super::event::Ended;
use crate::text::printable;

/// How many lines are kept to say why a server did not start.
const KEPT: usize = 12;

/// Lines of the log that say nothing to the user of `dq server`.
const NOISE: [&str; 11] = [
    "oO0OoO0OoO0Oo",
    " version=",
    "Configuration loaded",
    "Increased maximum number of open files",
    "monotonic clock:",
    "Running mode=",
    "Server initialized",
    "Reading config from stdin",
    "Legacy Redis Module",
    "Static Module",
    "User requested shutdown",
];

/// The facts that the log has told so far.
#[derive(Default)]
pub struct Log {
    version: String,
    last: VecDeque<String>,
    ready: bool,
    announced: bool,
}

impl Log {
    /// Reads a line of the server's log. Returns it in the form in which it is shown, or
    /// nothing where it would only be noise.
    pub fn take(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            return None;
        }
        let shown = Line::read(line).map_or_else(|| line.to_owned(), |line| line.shown());
        let shown = printable(shown.as_bytes());
        self.last.push_back(shown.clone());
        if self.last.len() > KEPT {
            self.last.pop_front();
        }
        for name in ["Valkey", "Redis"] {
            if let Some((_, rest)) = line.split_once(&format!("{name} version=")) {
                let version = rest.split(',').next().unwrap_or_default();
                self.version = format!("{name} {version}");
            }
        }
        self.ready |= line.contains("Ready to accept connections");
        let noise = NOISE.iter().any(|noise| line.contains(noise));
        (!noise).then_some(shown)
    }

    /// Returns true once: when the server has just said that it can be used.
    pub fn is_ready_now(&mut self) -> bool {
        let now = self.ready && !self.announced;
        self.announced |= now;
        now
    }

    /// Returns whether the server was ever ready.
    pub fn was_ready(&self) -> bool {
        self.ready
    }

    /// Returns the name and version of the server.
    pub fn version(&self) -> &str {
        match self.version.is_empty() {
            true => "the server",
            false => &self.version,
        }
    }

    /// Describes the failure: its time, the way in which the server ended, and its last lines.
    pub fn why(&self, ended: &Ended, what: &str) -> String {
        let mut words = format!("{what}{ended}. Its last lines:");
        for line in &self.last {
            words.push_str("\n  ");
            words.push_str(line);
        }
        words
    }
}

/// A line in the form of Redis: `7215:M 26 Nov 2026 02:00:07.511 * Ready ...`.
struct Line<'a> {
    time: &'a str,
    level: &'a str,
    words: &'a str,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Line<'a>> {
        let mut parts = line.splitn(7, ' ');
        let (process, role) = parts.next()?.split_once(':')?;
        if role.len() != 1 || !process.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let time = parts.by_ref().nth(3)?;
        Some(Line {
            time,
            level: parts.next()?,
            words: parts.next()?,
        })
    }

    fn shown(&self) -> String {
        let Line { time, level, words } = self;
        let level = match *level {
            "#" if !words.contains("WARNING") => "warning: ",
            _ => "",
        };
        format!("{time} {level}{words}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_time_and_says_whether_it_warns() {
        let mut log = Log::default();
        let line = "7:M 26 Nov 2026 02:00:07.511 # Failed to write";
        assert_eq!(
            log.take(line).as_deref(),
            Some("02:00:07.511 warning: Failed to write")
        );
        let line = "7:M 26 Nov 2026 02:00:07.511 * DB saved on disk";
        assert_eq!(
            log.take(line).as_deref(),
            Some("02:00:07.511 DB saved on disk")
        );
        assert_eq!(log.take("*** FATAL ***").as_deref(), Some("*** FATAL ***"));
        assert_eq!(log.take("a:b\u{1b}[2J").as_deref(), Some("a:b\\x1b[2J"));
    }

    #[test]
    fn the_version_and_the_moment_of_being_ready_are_read_from_it() {
        let mut log = Log::default();
        let line = "7:C 26 Nov 2026 02:00:07.511 * Valkey version=9.1.2, bits=64, commit=00000000";
        assert_eq!(log.take(line), None);
        assert_eq!(log.version(), "Valkey 9.1.2");
        assert!(!log.is_ready_now());
        log.take("7:M 26 Nov 2026 02:00:07.511 * Ready to accept connections tcp");
        assert!(log.is_ready_now() && !log.is_ready_now() && log.was_ready());
    }
}
