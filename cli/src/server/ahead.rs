//! Commands that are on their way: the server works on them while the program does something else.

use std::collections::VecDeque;

use redis::{Cmd, Value};

use super::{Link, Server};
use crate::failure::Failure;

/// The replies of commands that were begun.
#[derive(Default)]
pub struct Ahead {
    /// How many replies have not been read.
    awaited: usize,
    replies: VecDeque<Result<Value, Failure>>,
}

impl Server {
    /// Sends commands without waiting for their replies, which [`Server::replies`] returns. A cluster is waited for.
    pub fn begin(&mut self, cmds: &[Cmd]) -> Result<(), Failure> {
        let Link::One(connection) = &mut self.link else {
            let replies = self.pipeline(cmds)?;
            self.ahead.replies.extend(replies);
            return Ok(());
        };
        let mut packed = Vec::new();
        for cmd in cmds {
            self.scope.check(cmd)?;
            cmd.write_packed_command(&mut packed);
        }
        connection.send_packed_command(&packed)?;
        self.ahead.awaited += cmds.len();
        Ok(())
    }

    /// Waits for the replies of the first `count` commands that were begun, and returns a reply or an error for each.
    pub fn replies(&mut self, count: usize) -> Result<Vec<Result<Value, Failure>>, Failure> {
        let missing = count.saturating_sub(self.ahead.replies.len());
        self.receive(missing.min(self.ahead.awaited))?;
        let count = count.min(self.ahead.replies.len());
        Ok(self.ahead.replies.drain(..count).collect())
    }

    /// Reads the replies that are under way, so that the next one is that of the next command.
    pub(super) fn catch_up(&mut self) -> Result<(), Failure> {
        self.receive(self.ahead.awaited)
    }

    fn receive(&mut self, count: usize) -> Result<(), Failure> {
        let Link::One(connection) = &mut self.link else {
            return Ok(());
        };
        for _ in 0..count {
            let reply = connection.recv_response().and_then(Value::extract_error);
            self.ahead.awaited -= 1;
            match reply.map_err(Failure::from) {
                Err(failure @ Failure::Lost(_)) => return Err(failure),
                reply => self.ahead.replies.push_back(reply),
            }
        }
        Ok(())
    }
}
