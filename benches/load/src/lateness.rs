//! How late delayed messages arrive at consumers that wait for them.

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
    /// The key of the queue, which must be empty.
    pub queue: String,
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
        let consumers: Vec<_> = (0..spread.consumers)
            .map(|_| scope.spawn(|| consume(spread, &received)))
            .collect();
        let mut all = Sample::default();
        for consumer in consumers {
            all.append(consumer.join().map_err(|_| "a consumer panicked")??);
        }
        Ok(all)
    })
}

/// Sends all messages. Each payload begins with its due time.
fn send(spread: &Spread, first: Duration) -> Result<(), String> {
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
            let words = ["DQ.SEND", &spread.queue, &payload, "AT", &due];
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

fn consume(spread: &Spread, received: &AtomicU64) -> Result<Sample, String> {
    let mut stream = spread.server.connect()?;
    let mut input = Vec::new();
    let mut sample = Sample::default();
    let mut receipt: Option<String> = None;
    let block = BLOCK.as_millis().to_string();
    loop {
        let mut output = Vec::new();
        let mut words = vec!["DQ.FETCH", &spread.queue, "BLOCK", &block];
        if let Some(receipt) = &receipt {
            words.extend(["ACK", "1", receipt]);
        }
        command(&mut output, &words);
        stream
            .write_all(&output)
            .map_err(|error| error.to_string())?;
        let message = receive(&mut stream, &mut input, |reply| Message::of(&reply))?;
        let Some(message) = message else {
            if received.load(Ordering::Relaxed) == spread.messages {
                return Ok(sample);
            }
            receipt = None;
            continue;
        };
        let due = message.due * 1000;
        sample.push(due, message.arrived.as_micros() as i64 - due);
        received.fetch_add(1, Ordering::Relaxed);
        receipt = Some(message.receipt);
    }
}

struct Message {
    receipt: String,
    /// Unix milliseconds.
    due: i64,
    arrived: Duration,
}

impl Message {
    /// Reads the message of a reply. Returns `None` if the reply is empty.
    fn of(reply: &Reply<'_>) -> Result<Option<Message>, String> {
        let arrived = unix_now();
        let messages = match reply {
            Reply::Array(messages) => messages,
            Reply::Null => return Ok(None),
            _ => return Err("FETCH did not answer with an array".into()),
        };
        let Some(message) = messages.first() else {
            return Ok(None);
        };
        match message {
            Reply::Array(fields) => match &fields[..] {
                [_, Reply::Text(receipt), _, Reply::Bulk(payload)] => Ok(Some(Message {
                    receipt: String::from_utf8_lossy(receipt).into_owned(),
                    due: String::from_utf8_lossy(payload)
                        .trim()
                        .parse()
                        .map_err(|_| "a payload without its due time")?,
                    arrived,
                })),
                _ => Err("FETCH answered with a message of another shape".into()),
            },
            _ => Err("FETCH answered with no message".into()),
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
