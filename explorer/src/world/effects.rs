//! Acknowledgements with effects on plain keys. The core decides what they do
//! ([`dq_queue::effect::acknowledge`]); this file has the keys, the log and the replica.

use dq_queue::args::fetch::FetchRequest;
use dq_queue::codec::effect::{decode, decode_outcomes, encode, encode_outcomes};
use dq_queue::effect::plain::PlainKeys;
use dq_queue::effect::refusal::Keys;
use dq_queue::effect::{
    acknowledge, Apply, Condition, Effect, Holds, Is, Outcome, Outcomes, Repeat, Server,
};
use dq_queue::op::Applied;
use dq_queue::{Done, Millis, Op, Receipt};

use super::{Step, World};

/// An acknowledgement that runs.
struct Acking<'w> {
    world: &'w mut World,
    step: &'w mut Step,
    key: &'w [u8],
    receipt: Receipt,
    /// The words behind the key, among which conditions have their keys.
    words: &'w [&'w [u8]],
}

impl World {
    /// Acknowledges a message by `finish`, which says whether the receipt was current, and does the
    /// effects. Returns their replies, or `None` if the receipt is stale.
    ///
    /// Error: the words of the error that the client gets.
    pub(super) fn acknowledge(
        &mut self,
        key: &[u8],
        (receipt, apply): (Receipt, &Apply<'_>),
        words: &[&[u8]],
        step: &mut Step,
        finish: impl FnOnce(&mut World, &mut Step) -> Result<bool, String>,
    ) -> Result<Option<Outcomes>, String> {
        let mut acking = Acking {
            world: self,
            step,
            key,
            receipt,
            words,
        };
        let done = acknowledge(apply, &mut acking, |acking| {
            let is_acked = finish(acking.world, acking.step)?;
            Ok(is_acked.then_some(()))
        });
        let outcomes = done?.map(|(outcomes, ())| outcomes);
        step.reply = format!("{outcomes:?} {}", step.reply);
        Ok(outcomes)
    }

    /// Acknowledges a message by this operation.
    pub(super) fn ack(&mut self, key: &[u8], op: &Op<'_>, step: &mut Step) -> Result<bool, String> {
        let done = self.run(key, op, false, step);
        let done = done.map_err(|error| format!("{error:?}"))?;
        Ok(done == Some(Done::Count(1)))
    }

    /// The steps before a FETCH that acknowledges with effects. Returns the replies of the effects:
    /// those of before where it repeats its token.
    ///
    /// Error: the words of the error that the client gets.
    pub(super) fn apply_acks(
        &mut self,
        key: &[u8],
        request: &mut FetchRequest<'_>,
        words: &[&[u8]],
        step: &mut Step,
    ) -> Result<(), String> {
        let Some(apply) = request.apply.take() else {
            return Ok(());
        };
        let receipts = std::mem::take(&mut request.fetch.acks);
        let results = std::mem::take(&mut request.fetch.results);
        let fetch = &request.fetch;
        let token = fetch.consumer.clone().zip(fetch.token.clone());
        if let (Some((consumer, token)), Some(place)) = (&token, self.places.get(key)) {
            let known = place.queue.applied(consumer, token);
            let model = place.model.as_ref();
            if model.is_some_and(|model| model.applied(consumer, token) != known) {
                let text = "model: a FETCH with this token has another note of its effects";
                step.faults.push(text.to_owned());
            }
            if let Some(known) = known {
                step.reply = format!("{:?}", decode_outcomes(known).ok());
                return Ok(());
            }
        }
        let receipt = receipts.first().copied().unwrap_or_default();
        let op = Op::acks(receipts, results);
        let outcomes = self.acknowledge(key, (receipt, &apply), words, step, |world, step| {
            world.ack(key, &op, step)
        })?;
        if let (Some(outcomes), Some((consumer, token))) = (outcomes, token) {
            let outcomes = encode_outcomes(&outcomes).into();
            let op = Op::Applied(Applied {
                consumer,
                token,
                outcomes,
            });
            let done = self.run(key, &op, false, step);
            done.map_err(|error| format!("{error:?}"))?;
        }
        Ok(())
    }

    /// The plain keys of the primary, and those of its replica if it has one, without what has
    /// expired.
    pub fn plain_keys(&self) -> (PlainKeys, Option<PlainKeys>) {
        let mut both = (self.plain.clone(), self.plain_of_replica.clone());
        both.0.expire(self.ms);
        both.1.iter_mut().for_each(|keys| keys.expire(self.ms));
        both
    }
}

impl Keys for Acking<'_> {
    fn holds(&mut self, effect: &Effect<'_>) -> Holds {
        let is_queue = self.world.places.contains_key(effect.key);
        match is_queue {
            true => Holds::Queue,
            false => self.world.plain.holds(effect.key),
        }
    }

    fn number(&mut self, effect: &Effect<'_>) -> Option<Vec<u8>> {
        self.world.plain.text(effect.key).map(<[u8]>::to_vec)
    }

    fn field(&mut self, effect: &Effect<'_>, field: &[u8]) -> Option<Vec<u8>> {
        let found = self.world.plain.field(effect.key, field);
        found.map(<[u8]>::to_vec)
    }

    // There are neither sorted sets nor streams among these keys.
    fn score(&mut self, _: &Effect<'_>, _: &[u8]) -> Option<f64> {
        None
    }

    fn last_id(&mut self, _: &Effect<'_>) -> Option<(u64, u64)> {
        None
    }
}

impl Server for Acking<'_> {
    type Failure = String;

    fn begin(&mut self) -> Result<bool, String> {
        self.world.plain.expire(self.world.ms);
        let done = self.world.run(self.key, &Op::Tick, false, self.step);
        done.map_err(|error| format!("{error:?}"))?;
        let (queue, now) = (self.world.queue(self.key), self.world.time_of(self.key));
        Ok(queue.is_some_and(|queue| queue.is_current(self.receipt, now)))
    }

    fn check_rights(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn does_hold(&mut self, condition: &Condition<'_>) -> bool {
        let key = self.words.get(condition.at).copied().unwrap_or_default();
        let keys = &self.world.plain;
        match condition.is {
            Is::There => keys.holds(key) != Holds::Nothing,
            Is::Missing => keys.holds(key) == Holds::Nothing,
            Is::Equal(text) => keys.text(key) == Some(text),
        }
    }

    fn is_full(&self) -> bool {
        false
    }

    fn now(&self) -> Millis {
        self.world.ms
    }

    fn run(&mut self, effect: &Effect<'_>, _: Holds, repeat: &Repeat<'_>) -> Option<Outcome> {
        let done = self.world.plain.repeat(effect.key, repeat);
        let refused = |why| self.step.faults.push(format!("effects: {why}"));
        done.map_err(refused).ok()
    }

    fn log(&mut self, effect: &Effect<'_>, repeat: &Repeat<'_>) {
        let Some(keys) = &mut self.world.plain_of_replica else {
            return;
        };
        let mut bytes = Vec::new();
        encode(repeat, &mut bytes);
        let done = match decode(&bytes) {
            Ok(Some(read)) => keys.repeat(effect.key, &read).map(|_| ()),
            Ok(None) => Err("an effect is no effect in the log".to_owned()),
            Err(why) => Err(why.to_string()),
        };
        if let Err(why) = done {
            self.step.faults.push(format!("the replica: {why}"));
        }
    }
}
