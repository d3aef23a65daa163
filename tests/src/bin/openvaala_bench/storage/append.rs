//! What an append costs beside a bare write and its fdatasync, alone and among others.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::{LogStorage, NewEntry, ReadOptions, StreamKey};
use serde_json::value::RawValue;
use tokio::task::JoinSet;

use super::{Setting, ms};
use crate::Failure;
use crate::generate::UnsyncedFs;
use crate::report::{Bar, Report, Row, median, percentile};

/// The payload of an entry.
const PAYLOAD: usize = 1_024;
/// What a line has besides its payload.
const ENVELOPE: usize = 64;
const APPENDERS: usize = 64;
/// Appends in a row before the other one has its turn.
const TURN: usize = 25;

/// How long things took, in milliseconds, and how many there were a second.
#[derive(Debug, Default)]
struct Times {
    each: Vec<f64>,
    whole: f64,
}

impl Times {
    fn rate(&self) -> f64 {
        self.each.len() as f64 / (self.whole / 1e3)
    }

    fn p99(&self) -> f64 {
        percentile(&self.each, 99)
    }

    fn add(&mut self, other: Self) {
        self.each.extend(other.each);
        self.whole += other.whole;
    }
}

#[derive(Debug, Default)]
struct Found {
    floor: Vec<f64>,
    floor_p99: Vec<f64>,
    serial: Vec<f64>,
    of_bare: Vec<f64>,
    unflushed: Vec<f64>,
    /// One stream, then a stream for each appender: times serial, and p99 by the bare p99.
    crowds: [(Vec<f64>, Vec<f64>); 2],
}

pub(super) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let folder = tempfile::Builder::new()
        .prefix("append-")
        .tempdir_in(&setting.folder)?;
    let each = setting.size(1_000, 10) as usize;
    let mut found = Found::default();
    for round in 0..setting.rounds {
        let folder = folder.path().join(round.to_string());
        std::fs::create_dir(&folder)?;
        one_round(&folder, each, &mut found).await?;
    }
    show(found, report)
}

/// Bare and ours in turns, then both crowds.
async fn one_round(folder: &Path, each: usize, found: &mut Found) -> Result<(), Failure> {
    let storage = Arc::new(FileStorage::open(FileOptions::new(folder.join("ours")))?);
    let (mut bare, mut serial) = (Times::default(), Times::default());
    let mut file = OpenOptions::new()
        .create_new(true)
        .append(true)
        .open(folder.join("bare"))?;
    let key = key("serial")?;
    // Short turns, so that whatever else the machine does meets both alike.
    let turns = each.div_ceil(TURN);
    for turn in 0..turns {
        bare.add(bare_appends(&mut file, TURN)?);
        let range = turn * TURN..(turn + 1) * TURN;
        let appender = tokio::spawn(appends(Arc::clone(&storage), key.clone(), 0, range));
        serial.add(appender.await??);
    }
    check(&storage, &key, 0..1, turns * TURN).await?;
    let quick = UnsyncedFs::default();
    let quick = FileOptions::new(folder.join("unflushed")).fs(Arc::new(quick));
    let quick = Arc::new(FileStorage::open(quick)?);
    let appender = tokio::spawn(appends(quick, key.clone(), 0, 0..each));
    found.unflushed.push(median(&appender.await??.each));
    found.floor.push(median(&bare.each));
    found.floor_p99.push(bare.p99());
    found.serial.push(serial.rate());
    found.of_bare.push(serial.rate() / bare.rate() * 100.0);
    for (crowd, (rate, p99)) in found.crowds.iter_mut().enumerate() {
        let times = together(&storage, crowd == 0, each / 2).await?;
        rate.push(times.rate() / serial.rate());
        p99.push(times.p99() / bare.p99());
    }
    Ok(())
}

fn show(found: Found, report: &mut Report) -> Result<(), Failure> {
    let floor = "floor: write of a line of 1,088 bytes and its fdatasync";
    report.row(Row::new(floor, "ms", found.floor))?;
    report.row(Row::new("the same, p99", "ms", found.floor_p99))?;
    report.row(Row::new("serial append of 1 KiB", "a second", found.serial))?;
    let row = Row::new("the same, of the floor's rate", "%", found.of_bare);
    report.row(row.bar(Bar::AtLeast(85.0)))?;
    let row = Row::new("the same with flushing left out", "ms", found.unflushed);
    report.row(row)?;
    let names = ["64 appenders on one stream", "64 appenders on 64 streams"];
    let bars = [(15.0, 4.0), (4.0, 12.0)];
    for ((name, (least, most)), (rate, p99)) in names.iter().zip(bars).zip(found.crowds) {
        let row = Row::new(*name, "times serial", rate);
        report.row(row.bar(Bar::AtLeast(least)))?;
        let row = Row::new(format!("{name}, p99"), "times the floor's p99", p99);
        report.row(row.bar(Bar::AtMost(most)))?;
    }
    Ok(())
}

fn bare_appends(file: &mut File, count: usize) -> Result<Times, Failure> {
    let line = [b'x'; PAYLOAD + ENVELOPE];
    let mut times = Times::default();
    let whole = Instant::now();
    for _ in 0..count {
        let began = Instant::now();
        file.write_all(&line)?;
        file.sync_data()?;
        times.each.push(ms(began));
    }
    times.whole = ms(whole);
    Ok(times)
}

async fn appends(
    storage: Arc<FileStorage>,
    key: StreamKey,
    who: usize,
    numbers: Range<usize>,
) -> Result<Times, Failure> {
    let entries: Vec<NewEntry> = numbers
        .map(|number| Ok(NewEntry::new(1, payload(who, number)?)))
        .collect::<Result<_, Failure>>()?;
    let mut times = Times::default();
    let whole = Instant::now();
    for entry in entries {
        let began = Instant::now();
        storage.append(&key, vec![entry]).await?;
        times.each.push(ms(began));
    }
    times.whole = ms(whole);
    Ok(times)
}

/// All appenders at once, on one stream or on a stream each.
async fn together(
    storage: &Arc<FileStorage>,
    one_stream: bool,
    each: usize,
) -> Result<Times, Failure> {
    let key_of = |who: usize| {
        if one_stream {
            key("shared")
        } else {
            key(&format!("own-{who}"))
        }
    };
    let whole = Instant::now();
    let mut appenders = JoinSet::new();
    for who in 0..APPENDERS {
        appenders.spawn(appends(Arc::clone(storage), key_of(who)?, who, 0..each));
    }
    let mut all = Times::default();
    while let Some(times) = appenders.join_next().await {
        all.add(times??);
    }
    all.whole = ms(whole);
    if one_stream {
        check(storage, &key_of(0)?, 0..APPENDERS, each).await?;
    } else {
        for who in 0..APPENDERS {
            check(storage, &key_of(who)?, who..who + 1, each).await?;
        }
    }
    Ok(all)
}

fn key(stream: &str) -> Result<StreamKey, Failure> {
    Ok(StreamKey::new("bench".parse()?, stream.parse()?))
}

/// A JSON string that says whose it is and which.
fn payload(who: usize, number: usize) -> Result<Box<RawValue>, Failure> {
    let begin = format!("\"{who} {number} ");
    let text = format!("{begin:x<width$}\"", width = PAYLOAD - 1);
    Ok(RawValue::from_string(text)?)
}

/// Every entry of every writer is there once, and each writer's in the order in which they were appended.
async fn check(
    storage: &FileStorage,
    key: &StreamKey,
    writers: Range<usize>,
    each: usize,
) -> Result<(), Failure> {
    let mut next = vec![0; writers.len()];
    let mut cursor = Some(0);
    while let Some(from) = cursor {
        let options = ReadOptions::ascending().cursor(from).limit(1_000);
        let page = storage.read(key, options).await?;
        for entry in &page.entries {
            let text = entry.json().map(RawValue::get).unwrap_or_default();
            let mut words = text.trim_start_matches('"').split(' ');
            let who: usize = words.next().unwrap_or_default().parse()?;
            let slot = next
                .get_mut(who.wrapping_sub(writers.start))
                .ok_or("an entry of nobody")?;
            if text != payload(who, *slot)?.get() {
                return Err(format!("entry {} is not number {slot} of {who}", entry.seq).into());
            }
            *slot += 1;
        }
        cursor = page.next;
    }
    if next.iter().all(|count| *count == each) {
        Ok(())
    } else {
        Err(format!("{key:?} has {next:?} entries of its writers and not {each} of each").into())
    }
}
