//! The commands: their words become operations by the module's own parser.

use std::borrow::Cow;

use super::commit::creation;
use super::deliver::Outbox;
use super::{Step, World};
use dq_queue::args::find::Found;
use dq_queue::args::tick::Tick;
use dq_queue::args::{self, Words};
use dq_queue::op::{self, Sent};
use dq_queue::settings::{Changes, Clock};
use dq_queue::{Done, Error, Op};

/// The greatest length of a payload, in bytes.
const MAX_PAYLOAD: u64 = 1 << 20;
/// The random number of every NACK.
const RANDOM: u64 = 0;

impl World {
    /// Does an action. `None` if it cannot be done here: a message does not run that it is about,
    /// or nothing is due.
    pub fn act(&mut self, text: &str) -> Option<Step> {
        let mut step = Step::default();
        let words = self.words(text)?;
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let (verb, rest) = words.split_first()?;
        let key = rest.first().copied().unwrap_or_default();
        let ms = std::str::from_utf8(key)
            .ok()
            .and_then(|word| word.parse().ok());
        match *verb {
            b"CLOCK" => self.clock().then_some(())?,
            b"MS" => self.ms += ms.unwrap_or(1),
            b"BACK" => self.ms -= ms.unwrap_or(1),
            b"STANDSTILL" => {
                self.clock().then_some(())?;
                self.spares = true;
            }
            b"TURN" => {
                self.spares.then_some(())?;
                self.spares = false;
            }
            b"TIMER" => {
                self.is_due(key).then_some(())?;
                self.timer(key, &mut step);
            }
            b"CLOSE" => {
                let place = self.places.get(key)?;
                (!place.bound.is_empty()).then_some(())?;
                self.close(key, &mut step);
            }
            b"COPY" => self.copy(key, rest.get(1)?),
            b"RENAME" => self.rename(key, rest.get(1)?),
            b"DEL" => self.delete(key),
            verb => {
                let done = self.command(verb, key, rest.get(1..)?, &mut step);
                if let Err(refused) = done {
                    step.reply = refused;
                }
            }
        }
        self.serve(&mut step);
        Some(step)
    }

    fn command(
        &mut self,
        verb: &[u8],
        key: &[u8],
        rest: &[&[u8]],
        step: &mut Step,
    ) -> Result<(), String> {
        let words = || Words::new(rest);
        let read = |error: args::ArgError| error.0.into_owned();
        let creates = matches!(verb, b"SEND" | b"MSEND" | b"LIMIT" | b"SCHEDULE");
        let op = match verb {
            b"CREATE" => return self.create(key, rest, step),
            b"ALTER" => Op::Alter(args::alter::alter(words()).map_err(read)?),
            b"SEND" => Op::Send(args::send::send(words(), MAX_PAYLOAD).map_err(read)?),
            b"MSEND" => Op::Send(args::send::multi(words(), MAX_PAYLOAD).map_err(read)?),
            b"FETCH" => return self.fetch(key, rest, step),
            b"ACK" => {
                let request = args::ack::ack(words()).map_err(read)?;
                let Some(apply) = request.apply else {
                    return self.ack(key, &request.op, step).map(|_| ());
                };
                let receipt = match &request.op {
                    Op::Ack { receipts, .. } | Op::AckCost { receipts, .. } => receipts.first(),
                    _ => None,
                };
                let receipt = receipt.copied().unwrap_or_default();
                let done = self.acknowledge(key, (receipt, &apply), rest, step, |world, step| {
                    world.ack(key, &request.op, step)
                });
                return done.map(|_| ());
            }
            b"NACK" => args::nack::nack(words(), RANDOM).map_err(read)?,
            b"TOUCH" => args::touch::touch(words()).map_err(read)?,
            b"CANCEL" => args::cancel::cancel(words()).map_err(read)?,
            b"RESCHEDULE" => args::reschedule::reschedule(words()).map_err(read)?,
            b"UPDATE" => args::update::update(words(), MAX_PAYLOAD).map_err(read)?,
            b"SIGNAL" => args::signal::signal(words()).map_err(read)?,
            b"PAUSE" => args::pause::pause(words()).map_err(read)?,
            b"RESUME" => args::resume::resume(words()).map_err(read)?,
            b"GROUPSET" => args::groupset::group_set(words()).map_err(read)?,
            b"LIMIT" => args::limit::limit(words()).map_err(read)?,
            b"UNSCHEDULE" => args::schedule::unschedule(words()).map_err(read)?,
            b"SCHEDULE" => {
                let request = args::schedule::schedule(words(), MAX_PAYLOAD).map_err(read)?;
                Op::Schedule(request.at(self.time_of(key)).map_err(read)?)
            }
            b"SCHEDULES" => match args::schedule::schedules(words()).map_err(read)? {
                Some(op) => op,
                None => return Ok(()),
            },
            b"REDRIVE" => {
                let op = args::redrive::redrive(words()).map_err(read)?;
                return self.bulk(key, &op, step).map_err(refused);
            }
            b"PURGE" => {
                let op = args::purge::purge(words()).map_err(read)?;
                return self.bulk(key, &op, step).map_err(refused);
            }
            b"ACKSEND" => {
                let mut request = args::acksend::ack_send(words(), MAX_PAYLOAD).map_err(read)?;
                let (receipt, apply) = (request.receipt, request.apply.take());
                let finish = |world: &mut World, step: &mut Step| {
                    world.ack_send(key, request, rest, step).map_err(refused)
                };
                return match apply {
                    None => finish(self, step).map(|_| ()),
                    Some(apply) => self
                        .acknowledge(key, (receipt, &apply), rest, step, finish)
                        .map(|_| ()),
                };
            }
            b"FIND" => return self.find(key, rest, step),
            b"WAIT" => return self.wait(key, rest, step),
            b"TICK" => return self.tick(key, rest, step),
            _ => return Err("no such command".to_owned()),
        };
        let done = self.run(key, &op, creates, step);
        done.map(|_| ()).map_err(refused)
    }

    /// Runs an operation on the queue in a key, which is made if it is missing and the operation
    /// makes it. `None` if there is no queue.
    ///
    /// Error: the operation is refused.
    pub(super) fn run(
        &mut self,
        key: &[u8],
        op: &Op<'_>,
        creates: bool,
        step: &mut Step,
    ) -> Result<Option<Done>, Error> {
        let clock = self.queue(key).map_or(Clock::Server, |queue| queue.clock());
        op::check_times(clock, op)?;
        let mut outbox = Outbox::default();
        let needs_group = matches!(op, Op::Send(send) if send.if_group);
        let done = match self.places.contains_key(key) {
            true => {
                let begun = self.begin(key, step);
                self.apply(key, begun, op, &mut outbox, step)
            }
            false if creates && !needs_group => {
                let creation = creation(&Changes::default(), Clock::Server);
                self.apply_to_new(key, creation, op, &mut outbox, step)
            }
            false => return Ok(None),
        };
        step.reply = format!("{done:?}");
        self.deliver(key, outbox, step);
        if let Ok(Done::Sent(sent)) = &done {
            self.check_taken(key, op, sent, step);
        }
        done.map(Some)
    }

    /// A SEND that is refused because its id is taken leaves a message with that id behind.
    fn check_taken(&self, key: &[u8], op: &Op<'_>, sent: &[Sent], step: &mut Step) {
        let (Op::Send(send), Some(queue)) = (op, self.queue(key)) else {
            return;
        };
        let is_taken = sent.first() == Some(&Sent::Taken);
        if let Some(id) = send.id.as_ref().filter(|_| is_taken) {
            let has_none = queue.find(id).is_none() && queue.settings().dedup == 0;
            if has_none {
                let id = String::from_utf8_lossy(id);
                step.faults
                    .push(format!("SEND is refused for {id}, which nothing has"));
            }
        }
    }

    fn create(&mut self, key: &[u8], rest: &[&[u8]], step: &mut Step) -> Result<(), String> {
        if self.places.contains_key(key) {
            return Err("exists".to_owned());
        }
        let new = args::create::create(Words::new(rest)).map_err(|error| error.0.into_owned())?;
        let creation = creation(&new.changes, new.clock);
        let mut outbox = Outbox::default();
        let done = self.apply_to_new(key, creation, &Op::Tick, &mut outbox, step);
        done.map(|_| ()).map_err(refused)
    }

    fn fetch(&mut self, key: &[u8], rest: &[&[u8]], step: &mut Step) -> Result<(), String> {
        let mut request =
            args::fetch::fetch(Words::new(rest)).map_err(|error| error.0.into_owned())?;
        self.apply_acks(key, &mut request, rest, step)?;
        if !self.places.contains_key(key) {
            return Ok(());
        }
        let mut outbox = Outbox::default();
        let begun = self.begin(key, step);
        let op = Op::Fetch(Cow::Borrowed(&request.fetch));
        let done = self.apply(key, begun, &op, &mut outbox, step);
        step.reply = format!("{}{done:?}", step.reply);
        let receipts: Vec<u64> = match done {
            Ok(Done::Fetched(given)) => given.iter().map(|one| one.receipt).collect(),
            _ => Vec::new(),
        };
        self.bind(key, request.bind, &receipts);
        self.deliver(key, outbox, step);
        if receipts.is_empty() && request.block.is_some() && self.waiting.len() < 2 {
            let words = [&[key], rest].concat();
            let text = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
            self.waiting.push(super::Waiting { text });
        }
        Ok(())
    }

    fn find(&mut self, key: &[u8], rest: &[&[u8]], step: &mut Step) -> Result<(), String> {
        let request = args::find::find(Words::new(rest)).map_err(|error| error.0.into_owned())?;
        let Found::Do(act) = request.found else {
            return Ok(());
        };
        let begun = self.begin(key, step);
        let Some(queue) = self.queue(key) else {
            return Ok(());
        };
        let (_, seqs) = queue.search(&request.search, queue.now(begun.moment));
        let mut outbox = Outbox::default();
        let done = self.apply(key, begun, &Op::FindDo { act, seqs }, &mut outbox, step);
        step.reply = format!("{done:?}");
        self.deliver(key, outbox, step);
        Ok(())
    }

    fn wait(&mut self, key: &[u8], rest: &[&[u8]], step: &mut Step) -> Result<(), String> {
        let request = args::wait::wait(Words::new(rest)).map_err(|error| error.0.into_owned())?;
        let Some(place) = self.places.get_mut(key) else {
            return Ok(());
        };
        let Some(seq) = place.queue.find(request.id) else {
            return Ok(());
        };
        if place.queue.ended(seq).is_some() {
            step.reply = "has ended".to_owned();
            return Ok(());
        }
        let watch = (key.into(), request.id.into());
        if !self.watching.contains(&watch) {
            place.queue.watch(request.id);
            self.watching.push(watch);
            self.watching.sort_unstable();
        }
        Ok(())
    }

    fn tick(&mut self, key: &[u8], rest: &[&[u8]], step: &mut Step) -> Result<(), String> {
        let words = [&[key], rest].concat();
        let tick = args::tick::tick(Words::new(&words)).map_err(|error| error.0.into_owned())?;
        let clock = self.queue(key).map(|queue| queue.clock());
        let to = match (tick, clock) {
            (Tick::Advance(ms), Some(Clock::Manual(now))) => now + ms,
            (Tick::To(to), Some(Clock::Manual(_))) => to,
            _ => {
                self.timer(key, step);
                return Ok(());
            }
        };
        let op = Op::Advance {
            to,
            skip_fires: false,
        };
        let done = self.run(key, &op, false, step);
        done.map(|_| ()).map_err(refused)
    }
}

fn refused(error: Error) -> String {
    format!("{error:?}")
}
