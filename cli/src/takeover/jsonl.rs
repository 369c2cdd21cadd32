//! `dq import jsonl`: reads what `dq export jsonl` has written. A marker at the target says how far it has come, so that it
//! may be killed and started again.

mod message;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{stdin, BufRead, BufReader};
use std::thread;
use std::time::Duration;

use serde_json::{json, Value as Json};

use super::args::ImportArgs;
use super::export::Sum;
use super::fault::at_target_end;
use super::keys::at_target;
use super::peer::{command, on, words, Words};
use super::script::Script;
use super::sending::send;
use crate::failure::Failure;
use crate::output::Output;
use crate::server::{Endpoint, Server};
use crate::table::Table;
use message::message;

/// The messages of one step.
const STEP: usize = 200;

/// The wait for a target that is full.
const WAIT: Duration = Duration::from_millis(500);

/// Reads the file, and sends.
pub fn run(endpoint: &Endpoint, args: &ImportArgs, out: &mut Output) -> Result<(), Failure> {
    let mut target = args
        .to
        .as_ref()
        .map_or(endpoint.clone(), |url| endpoint.at(url, "--to"))
        .connect()
        .map_err(at_target_end)?;
    let mut lines: Box<dyn BufRead> = match args.from.as_str() {
        "-" => Box::new(stdin().lock()),
        path => Box::new(BufReader::new(
            File::open(path).map_err(|error| Failure::mistake(format!("{path}: {error}")))?,
        )),
    };
    let mut sends = Script::new(&[include_str!("lua/send.lua")]);
    sends.load(&mut target).map_err(at_target_end)?;
    let mut file = Import {
        target,
        sends,
        args,
        queue: None,
        list: Vec::new(),
    };
    let (mut line, mut number) = (String::new(), 0);
    loop {
        line.clear();
        number += 1;
        let wrong = |why: &str| Failure::mistake(format!("{} line {number}: {why}", args.from));
        if lines
            .read_line(&mut line)
            .map_err(|error| wrong(&error.to_string()))?
            == 0
        {
            break;
        }
        let value: Json = serde_json::from_str(&line).map_err(|_| wrong("no JSON"))?;
        file.line(&value).map_err(|failure| match failure {
            Failure::Mistake(why) => wrong(&why),
            other => other,
        })?;
    }
    if file.queue.is_some() {
        return Err(Failure::mistake(format!(
            "{}: its end is missing: it was cut off",
            args.from
        )));
    }
    file.end(out)
}

/// A queue that is read.
struct Queue {
    name: String,
    key: Vec<u8>,
    marker: String,
    /// The messages that were read, and those of the next step.
    read: u64,
    jobs: Vec<(u64, Vec<Words>)>,
    sent: u64,
    stays: BTreeMap<String, u64>,
    sum: Sum,
    is_paused: bool,
}

struct Import<'a> {
    target: Server,
    sends: Script,
    args: &'a ImportArgs,
    queue: Option<Queue>,
    list: Vec<Queue>,
}

impl Import<'_> {
    fn line(&mut self, value: &Json) -> Result<(), Failure> {
        if value["dq-export"].is_number() {
            return self.begin(value);
        }
        let Some(queue) = self.queue.as_mut() else {
            return Err(Failure::mistake("this is no export of dq"));
        };
        if value["end"].is_number() {
            if *value != queue.sum.line() {
                return Err(Failure::mistake(format!(
                    "the digest is {}: a line is missing or was changed",
                    queue.sum.text()
                )));
            }
            return self.end_queue();
        }
        queue.sum.add(value);
        queue.read += 1;
        let is_chosen = self.args.queue.is_empty() || self.args.queue.contains(&queue.name);
        let commands = match is_chosen {
            true => message(value, &queue.key, self.args.dead)
                .map_err(|why| Failure::mistake(format!("{}: {why}", value["id"])))?,
            false => Err("not chosen with --queue".to_owned()),
        };
        queue.jobs.push((
            queue.read,
            commands.unwrap_or_else(|why| {
                *queue.stays.entry(why).or_default() += 1;
                Vec::new()
            }),
        ));
        match queue.jobs.len() >= STEP {
            true => self.step(),
            false => Ok(()),
        }
    }

    fn begin(&mut self, head: &Json) -> Result<(), Failure> {
        if self.queue.is_some() {
            return Err(Failure::mistake(
                "the end of the queue before this one is missing",
            ));
        }
        if head["dq-export"] != 1 {
            return Err(Failure::mistake(
                "UNKNOWN: a newer version of dq has written this",
            ));
        }
        let name = head["queue"].as_str().unwrap_or_default().to_owned();
        let key = self
            .args
            .into
            .as_ref()
            .map_or(name.clone(), |pattern| pattern.replace("{queue}", &name));
        let marker = at_target(
            key.as_bytes(),
            "import",
            head["id"].as_str().unwrap_or_default(),
        );
        let mut stays = BTreeMap::new();
        for schedule in head["schedules"].as_array().into_iter().flatten() {
            let name = schedule["name"].as_str().unwrap_or_default();
            stays.insert(
                format!("SCHEDULE {name}: the server does not tell its message"),
                1,
            );
        }
        if !self.args.dry_run {
            let mut create = words([b"DQ.CREATE", key.as_bytes(), b"NX"]);
            let options = head["options"].as_array().into_iter().flatten();
            create.extend(options.filter_map(|word| Some(word.as_str()?.as_bytes().to_vec())));
            self.target.call(&command(&create)).map_err(at_target_end)?;
            self.target
                .call(on("SETNX", marker.as_bytes()).arg(0))
                .map_err(at_target_end)?;
        }
        self.queue = Some(Queue {
            name,
            key: key.into_bytes(),
            marker,
            read: 0,
            jobs: Vec::new(),
            sent: 0,
            stays,
            sum: Sum::default(),
            is_paused: head["paused"] == true,
        });
        Ok(())
    }

    fn step(&mut self) -> Result<(), Failure> {
        let Some(queue) = self.queue.as_mut() else {
            return Ok(());
        };
        let jobs = std::mem::take(&mut queue.jobs);
        queue.sent += jobs
            .iter()
            .filter(|(_, commands)| !commands.is_empty())
            .count() as u64;
        let mut rest = if self.args.dry_run {
            &[][..]
        } else {
            jobs.as_slice()
        };
        while !rest.is_empty() {
            let sent = send(
                &mut self.target,
                &self.sends,
                &queue.key,
                &queue.marker,
                rest,
            )?;
            rest = rest
                .get(rest.partition_point(|(number, _)| *number <= sent.last)..)
                .unwrap_or_default();
            for _ in sent.taken {
                queue.sent -= 1;
                *queue
                    .stays
                    .entry("ID TAKEN at the target".to_owned())
                    .or_default() += 1;
            }
            match sent.refused.as_str() {
                "" => {}
                words if words.contains("QUEUEFULL") || words.contains("OOM") => {
                    eprintln!("dq: TARGET {}: {words}: waiting", queue.name);
                    thread::sleep(WAIT);
                }
                words => return Err(Failure::Refused(format!("TARGET {}: {words}", queue.name))),
            }
        }
        Ok(())
    }

    fn end_queue(&mut self) -> Result<(), Failure> {
        self.step()?;
        let Some(queue) = self.queue.take() else {
            return Ok(());
        };
        if !self.args.dry_run {
            if queue.is_paused {
                self.target
                    .call(&on("DQ.PAUSE", &queue.key))
                    .map_err(at_target_end)?;
            }
            let taken = format!("{}:taken", queue.marker);
            self.target
                .call(on("DEL", queue.marker.as_bytes()).arg(taken))
                .map_err(at_target_end)?;
        }
        self.list.push(queue);
        Ok(())
    }

    fn end(self, out: &mut Output) -> Result<(), Failure> {
        let mut table = Table::new(&["QUEUE", ">MOVED", ">STAYED", "WHY"]);
        let (mut stayed, mut list) = (0, Vec::new());
        for queue in self.list {
            table.row(vec![
                queue.name.clone(),
                queue.sent.to_string(),
                String::new(),
                String::new(),
            ]);
            for (why, count) in &queue.stays {
                stayed += count;
                table.row(vec![
                    queue.name.clone(),
                    String::new(),
                    count.to_string(),
                    why.clone(),
                ]);
            }
            list.push(json!({
                "queue": queue.name, "key": crate::json::name(&queue.key), "moved": queue.sent, "stayed": queue.stays,
                "digest": queue.sum.text(),
            }));
        }
        match out.json {
            true => out.json(&json!({ "queues": list, "stayed": stayed }))?,
            false => out.table(&table, "nothing was there")?,
        }
        match stayed {
            0 => Ok(()),
            _ => Err(Failure::Stayed(stayed)),
        }
    }
}
