//! The part of the contract that the model knows.

use super::Model;
use crate::message::Choices;
use crate::op::{Op, Send};
use crate::schedule::recurrence::Recurrence;
use crate::settings::{Fair, Settings};

impl Model {
    /// Whether the model knows queues with these settings.
    pub fn knows_settings(settings: &Settings) -> bool {
        settings.dead_to.is_none() && settings.fair == Fair::Count && settings.jitter == 0
    }

    /// Whether the model knows this operation. One that it does not know makes it useless.
    pub fn knows(&self, op: &Op) -> bool {
        match op {
            Op::Send(send) => knows_message(send),
            Op::AckSend(ack_send) => ack_send.sends.iter().all(knows_message),
            Op::Schedule(new) => {
                matches!(new.rule, Recurrence::Every { .. }) && knows_message(&new.send)
            }
            Op::Alter(changes) => Model::knows_settings(&self.settings.with(changes)),
            Op::Limit { .. }
            | Op::CatchUp { .. }
            | Op::Moved(_)
            | Op::Children(_)
            | Op::Detach(_) => false,
            _ => true,
        }
    }
}

fn knows_message(send: &Send) -> bool {
    let rare = |choices: &Choices| {
        let rare = choices.rare.as_deref();
        rare.is_none_or(|rare| rare.kin.is_none() && rare.limited.is_none())
    };
    rare(&send.choices)
}
