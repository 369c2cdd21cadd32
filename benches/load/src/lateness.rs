//! Measures the delay of delayed messages at consumers that wait for them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::connect::Server;
use crate::resp::{read, Reply};
use crate::sample::{unix_now, Sample};

/// Maximum time of one FETCH. A consumer ends when it has waited that long after
/// the last message.
const BLOCK: Duration = Duration::from_secs(2);

/// The messages to send, and the consumers that wait for them.
pub struct Spread {
    /// The server.
    pub server: Server,
    /// The key of the queue, which must be empty. With several queues, what their keys begin with.
    pub queue: String,
    /// Number of queues. The messages are dealt out to them in turn, and so are the queues to the consumers, who each
    /// wait for all of theirs.
    pub queues: usize,
    /// Number of messages.
    pub messages: u64,
    /// The time over which the messages fall due, at random.
    pub span: Duration,
    /// Number of consumers. Each has its own connection and takes one message at a time.
    pub consumers: usize,
    /// Bytes of a payload: at least 16, which hold the due time.
    pub payload: usize,
}

/// Sends the messages and starts the consumers. Returns how many microseconds
/// after its due time each message reached a consumer.
///
/// # Errors
/// A sentence: a refused command or a lost connection.
pub fn run(spread: &Spread) -> Result<Sample, String> {
    // Sending a message takes some microseconds, and none may be due before the consumers wait.
    let lead = Duration::from_millis(1500) + Duration::from_micros(10) * spread.messages as u32;
    send(spread, unix_now() + lead)?;
    let received = AtomicU64::new(0);
    thread::scope(|scope| {
        let received = &received;
        let consumers: Vec<_> = (0..spread.consumers)
            .map(|number| scope.spawn(move || consume(spread, &spread.keys(number), received)))
            .collect();
        let mut all = Sample::default();
        for consumer in consumers {
            all.append(consumer.join().map_err(|_| "a consumer panicked")??);
        }
        Ok(all)
    })
}

impl Spread {
    /// The key of the queue with this number.
    fn key(&self, number: usize) -> String {
        match self.queues {
            1 => self.queue.clone(),
            _ => format!("{}:{number}", self.queue),
        }
    }

    /// The keys that a consumer waits for.
    fn keys(&self, consumer: usize) -> Vec<String> {
        let consumers = self.consumers.min(self.queues);
        let numbers = (consumer % consumers..self.queues).step_by(consumers);
        numbers.map(|number| self.key(number)).collect()
    }
}

/// Sends all messages. Each payload begins with its due time.
fn send(spread: &Spread, first: Duration) -> Result<(), String> {
    let keys: Vec<_> = (0..spread.queues)
        .map(|number| spread.key(number))
        .collect();
    let mut keys = keys.iter().cycle();
    let mut stream = spread.server.connect()?;
    let mut left = spread.messages;
    let mut input = Vec::new();
    while left > 0 {
        let batch = left.min(1000);
        let mut output = Vec::new();
        for _ in 0..batch {
            let offset = fastrand::u64(0..=spread.span.as_millis() as u64);
            let due = (first.as_millis() as u64 + offset).to_string();
            let payload = format!("{due:width$}", width = spread.payload);
            let key = keys.next().map_or("", String::as_str);
            let words = ["DQ.SEND", key, &payload, "AT", &due];
            command(&mut output, &words);
        }
        stream
            .write_all(&output)
            .map_err(|error| error.to_string())?;
        for _ in 0..batch {
            receive(&mut stream, &mut input, |_| Ok(()))?;
        }
        left -= batch;
    }
    Ok(())
}

fn consume(spread: &Spread, keys: &[String], received: &AtomicU64) -> Result<Sample, String> {
    let mut stream = spread.server.connect()?;
    let mut input = Vec::new();
    let mut sample = Sample::default();
    let block = BLOCK.as_millis().to_string();
    let count = keys.len().to_string();
    let mut fetch = vec!["DQ.MFETCH", &count];
    fetch.extend(keys.iter().map(String::as_str));
    fetch.extend(["BLOCK", &block]);
    let mut taken: Option<Message> = None;
    loop {
        let mut output = Vec::new();
        if let Some(Message { key, receipt, .. }) = &taken {
            command(&mut output, &["DQ.ACK", key, "1", receipt]);
        }
        command(&mut output, &fetch);
        stream
            .write_all(&output)
            .map_err(|error| error.to_string())?;
        if taken.is_some() {
            receive(&mut stream, &mut input, |_| Ok(()))?;
        }
        taken = receive(&mut stream, &mut input, |reply| Message::of(&reply))?;
        let Some(message) = &taken else {
            if received.load(Ordering::Relaxed) == spread.messages {
                return Ok(sample);
            }
            continue;
        };
        let due = message.due * 1000;
        sample.push(due, message.arrived.as_micros() as i64 - due);
        received.fetch_add(1, Ordering::Relaxed);
    }
}

struct Message {
    key: String,
    receipt: String,
    /// Unix milliseconds.
    due: i64,
    arrived: Duration,
}

impl Message {
    /// Reads the key and the message of a reply. Returns `None` if the reply is empty.
    fn of(reply: &Reply<'_>) -> Result<Option<Message>, String> {
        let arrived = unix_now();
        let (key, messages) = match reply {
            Reply::Null => return Ok(None),
            Reply::Array(words) => match &words[..] {
                [Reply::Bulk(key), Reply::Array(messages)] => (key, messages),
                _ => return Err("MFETCH answered with no key and messages".into()),
            },
            _ => return Err("MFETCH did not answer with an array".into()),
        };
        let [Reply::Array(fields)] = &messages[..] else {
            return Err("MFETCH did not answer with one message".into());
        };
        match &fields[..] {
            [_, Reply::Text(receipt), _, Reply::Bulk(payload)] => Ok(Some(Message {
                key: String::from_utf8_lossy(key).into_owned(),
                receipt: String::from_utf8_lossy(receipt).into_owned(),
                due: String::from_utf8_lossy(payload)
                    .trim()
                    .parse()
                    .map_err(|_| "a payload without its due time")?,
                arrived,
            })),
            _ => Err("MFETCH answered with a message of another shape".into()),
        }
    }
}

fn command(output: &mut Vec<u8>, words: &[&str]) {
    output.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        output.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

/// Waits for one reply and hands it to `use_it`. Bytes after it stay in `input`.
fn receive<T>(
    stream: &mut TcpStream,
    input: &mut Vec<u8>,
    use_it: impl FnOnce(Reply<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let mut scratch = [0; 16 << 10];
    loop {
        if let Some((reply, end)) = read(input, 0).map_err(|_| "bytes that are no RESP")? {
            if let Reply::Error(error) = reply {
                return Err(String::from_utf8_lossy(error).into_owned());
            }
            let result = use_it(reply);
            input.drain(..end);
            return result;
        }
        match stream.read(&mut scratch) {
            Ok(0) => return Err("the server closed a connection".into()),
            Ok(count) => input.extend_from_slice(&scratch[..count]),
            Err(error) => return Err(error.to_string()),
        }
    }
}
