//! `--dry-run`: what an import would move, what would stay, and why. It changes nothing.

use std::collections::BTreeMap;

use serde_json::json;

use super::args::{DeadJobs, ImportArgs};
use super::fault::{at_source, at_target_end};
use super::keys::Keys;
use super::peer::{Names, Peer, Place, State};
use super::read::{clock, number};
use super::record::Record;
use super::script::{claim, parts, Passed, Script, Want};
use crate::failure::Failure;
use crate::output::Output;
use crate::server::Server;
use crate::table::Table;
use crate::text::plural;
use crate::time_text::{here, span, stamp};

/// How many jobs of a place are looked at closely.
const SAMPLE: u64 = 500;

/// The jobs of one look.
const STEP: u64 = 50;

/// The jobs of one place.
#[derive(Default)]
struct Row {
    count: u64,
    oldest: Option<u64>,
    latest: Option<u64>,
    /// Bytes of the sampled jobs, there and here, and how many they are.
    bytes: (u64, u64),
    sampled: u64,
    stays: BTreeMap<String, u64>,
}

/// Looks at the queues, and prints.
pub fn run(
    peer: &mut dyn Peer,
    mut source: Server,
    mut target: Server,
    names: &[Names],
    args: &ImportArgs,
    out: &mut Output,
) -> Result<(), Failure> {
    let skews = [
        clock(&mut source).map_err(at_source)?,
        clock(&mut target).map_err(at_target_end)?,
    ];
    let skews = skews.map(|time| time as i64 - here() as i64);
    let mut script = Script::new(&[&peer.row().script()]);
    script.load(&mut source).map_err(at_source)?;
    let headings = [
        "QUEUE",
        "PLACE",
        ">JOBS",
        "OLDEST",
        "LATEST DUE",
        ">BYTES THERE",
        ">HERE",
        ">STAY",
        "WHY",
    ];
    let mut table = Table::new(&headings);
    let mut list = Vec::new();
    for names in names {
        let seen = peer.look(&mut source, names).map_err(at_source)?;
        let running = peer.running(&mut source, &names.queue).map_err(at_source)?;
        let places = seen.places.iter();
        for place in places.filter(|place| place.state != State::Running) {
            let mut row = look(peer, &mut source, &script, names, place)?;
            if place.state == State::Dead && args.dead == DeadJobs::Leave && row.count > 0 {
                row.stays = BTreeMap::from([("--dead leave".to_owned(), row.count)]);
            }
            if row.count == 0 {
                continue;
            }
            let whole = |bytes: u64| bytes * row.count / row.sampled.max(1);
            let time = |at: Option<u64>| at.map_or("-".to_owned(), stamp);
            let stays: u64 = row.stays.values().sum();
            let why: Vec<_> = row
                .stays
                .iter()
                .map(|(why, count)| format!("{count} {why}"))
                .collect();
            table.row(vec![
                names.queue.clone(),
                place.name.clone(),
                row.count.to_string(),
                time(row.oldest),
                time(row.latest),
                whole(row.bytes.0).to_string(),
                whole(row.bytes.1).to_string(),
                stays.to_string(),
                why.join("; "),
            ]);
            list.push(json!({
                "queue": names.queue, "key": crate::json::name(&names.key), "place": place.name, "jobs": row.count,
                "oldest": row.oldest, "latest_due": row.latest, "bytes_there": whole(row.bytes.0),
                "bytes_here": whole(row.bytes.1), "stays": row.stays,
            }));
        }
        let rest = seen
            .stays
            .into_iter()
            .chain([("running".to_owned(), running.count)]);
        for (why, count) in rest.filter(|(_, count)| *count > 0) {
            let mut row = vec![names.queue.clone(), String::new(), count.to_string()];
            row.extend(std::iter::repeat_n(String::new(), 4));
            row.extend([count.to_string(), why.clone()]);
            table.row(row);
            list.push(json!({ "queue": names.queue, "jobs": count, "stays": { why: count } }));
        }
        if let Some(remark) = running.remark {
            eprintln!("dq: {remark}");
        }
    }
    if out.json {
        return out.json(
            &json!({ "places": list, "skew_ms": { "source": skews[0], "target": skews[1] } }),
        );
    }
    out.table(&table, "nothing is there")?;
    let [there, here] = skews.map(|skew| {
        let word = if skew < 0 { "behind" } else { "ahead of" };
        format!("{} {word} this machine", span(skew.unsigned_abs()))
    });
    out.line(&format!(
        "clocks: the source is {there}, the target is {here}; due times are by the target's"
    ))?;
    out.line(&format!(
        "nothing was changed; bytes and what stays are estimated from {} of each place at most",
        plural(SAMPLE, "job")
    ))
}

fn look(
    peer: &dyn Peer,
    source: &mut Server,
    script: &Script,
    names: &Names,
    place: &Place,
) -> Result<Row, Failure> {
    let mut row = Row {
        count: number(source, &place.count())
            .map_err(at_source)?
            .unsigned_abs(),
        ..Row::default()
    };
    let last = row.count.saturating_sub(1);
    let offsets = (0..SAMPLE.min(row.count)).step_by(STEP as usize);
    // The last one has the latest due time.
    for offset in offsets.chain([last].into_iter().filter(|last| *last >= SAMPLE)) {
        let (records, stays) = peek(source, script, &peer.stem(&names.queue), place, offset)?;
        for (id, reason) in stays {
            match id.is_empty() {
                true => row.count -= 1,
                false => *row.stays.entry(reason).or_default() += 1,
            }
        }
        for record in records {
            let (born, due) = peer.times(&record);
            row.oldest = [row.oldest, born].into_iter().flatten().min();
            row.latest = [row.latest, due].into_iter().flatten().max();
            match peer.translate(&record, names) {
                Err(reason) => *row.stays.entry(reason).or_default() += 1,
                Ok(commands) => {
                    let bytes: usize = commands.iter().flatten().map(Vec::len).sum();
                    row.sampled += 1;
                    row.bytes.0 += record.packed.len() as u64;
                    row.bytes.1 += bytes as u64;
                }
            }
        }
    }
    Ok(row)
}

fn peek(
    source: &mut Server,
    script: &Script,
    stem: &[u8],
    place: &Place,
    offset: u64,
) -> Result<(Vec<Record>, Passed), Failure> {
    let want = Want {
        offset,
        count: STEP as usize,
        now: here(),
    };
    let cmd = claim(script, &Keys::of(stem.to_vec()), place, "peek", "", want);
    let (records, stays) = parts(source.call(&cmd).map_err(at_source)?)?;
    Ok((
        records.into_iter().filter_map(Record::unpack).collect(),
        stays,
    ))
}
