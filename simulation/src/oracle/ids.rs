//! Ids that queues generate: none is made twice, even after copies and losses.

use std::collections::HashSet;

use dq_queue::message::id::GENERATED_LEN;
use dq_queue::op::Sent;
use dq_queue::{Done, Op, Queue};

/// All ids that the queue and its copies have made, before and after crashes.
#[derive(Default)]
pub struct Ids(HashSet<[u8; GENERATED_LEN]>);

impl Ids {
    /// Checks that no queue has made the ids of an operation before.
    pub fn check(&mut self, queue: &Queue, op: &Op<'_>, done: Option<&Done>) -> Result<(), String> {
        let made: Vec<Sent> = match (op, done) {
            (Op::Send(send), Some(Done::Sent(sent))) => {
                sent.iter().filter(|_| send.id.is_none()).copied().collect()
            }
            (Op::AckSend(ack_send), Some(Done::AckSent(Some(sent)))) => {
                let sends = ack_send.sends.iter().zip(sent);
                let made = sends.filter(|(send, _)| send.id.is_none());
                made.map(|(_, sent)| *sent).collect()
            }
            _ => return Ok(()),
        };
        for one in made {
            let Sent::Added(seq) = one else { continue };
            let id = queue.new_id(seq);
            // A message that is dead at once may have left no record.
            if queue.message(seq).is_some() && queue.find(&id) != Some(seq) {
                return Err(format!("{seq} is not found by its id"));
            }
            if !self.0.insert(id) {
                let id = String::from_utf8_lossy(&id);
                return Err(format!("the id {id} was made before"));
            }
        }
        Ok(())
    }
}
