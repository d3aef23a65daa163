//! What an append costs beside a bare write and its fdatasync, alone and among others.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::{LogStorage, NewEntry, ReadOptions, StreamKey};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
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
/// How many times the tenth percentile the mean of a steady floor may be.
const STEADY: f64 = 2.0;

/// How long things took, in milliseconds, and how many there were a second.
#[derive(Debug)]
struct Times {
    each: Vec<f64>,
    whole: f64,
}

impl Times {
    const fn new() -> Self {
        Self {
            each: Vec::new(),
            whole: 0.0,
        }
    }

    fn rate(&self) -> f64 {
        self.each.len() as f64 / (self.whole / 1e3)
    }

    fn p99(&self) -> f64 {
        percentile(&self.each, 99)
    }

    /// A thread that loses the processor for a while makes the mean of what it does much longer than the quickest of it.
    fn is_steady(&self) -> bool {
        self.whole / self.each.len() as f64 <= STEADY * percentile(&self.each, 10)
    }

    fn add(&mut self, other: Self) {
        self.each.extend(other.each);
        self.whole += other.whole;
    }
}

/// What one round found.
#[derive(Debug)]
struct Found {
    steady: bool,
    floor: f64,
    floor_p99: f64,
    against_itself: f64,
    hopped: f64,
    serial: f64,
    of_bare: f64,
    unflushed: f64,
    /// One stream, then a stream for each appender: times serial, and p99 by the bare p99.
    crowds: [(f64, f64); 2],
}

pub(super) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let folder = tempfile::Builder::new()
        .prefix("append-")
        .tempdir_in(&setting.folder)?;
    let each = setting.size(1_000, 10) as usize;
    let mut found = Vec::with_capacity(setting.rounds);
    for round in 0..setting.rounds {
        let folder = folder.path().join(round.to_string());
        std::fs::create_dir(&folder)?;
        found.push(one_round(&folder, each).await?);
    }
    show(found, report)
}

/// Bare, bare again, bare on a thread of its own, and ours in turns; then both crowds.
async fn one_round(folder: &Path, each: usize) -> Result<Found, Failure> {
    let storage = Arc::new(FileStorage::open(FileOptions::new(folder.join("ours")))?);
    let mut bare = [bare_file(folder, "bare-0")?, bare_file(folder, "bare-1")?];
    let (hop, thread) = Hop::start(bare_file(folder, "hop")?);
    let key = key("serial")?;
    let mut times = [const { Times::new() }; 4];
    let turns = each.div_ceil(TURN);
    for turn in 0..turns {
        // Short turns, each time another one first, so that whatever else the machine does meets all alike.
        for place in 0..times.len() {
            let which = (turn + place) % times.len();
            let took = match which {
                0 | 1 => bare_appends(&mut bare[which], TURN)?,
                2 => tokio::spawn(hop.clone().appends(TURN)).await??,
                _ => {
                    let range = turn * TURN..(turn + 1) * TURN;
                    let storage = Arc::clone(&storage);
                    tokio::spawn(appends(storage, key.clone(), 0, range)).await??
                }
            };
            times[which].add(took);
        }
    }
    drop(hop);
    thread
        .join()
        .map_err(|_| "the thread of bare appends panicked")?;
    check(&storage, &key, 0..1, turns * TURN).await?;
    let [bare, again, hopped, serial] = times;
    let mut crowds = [(0.0, 0.0); 2];
    for (crowd, figures) in crowds.iter_mut().enumerate() {
        let times = together(&storage, crowd == 0, each / 2).await?;
        *figures = (times.rate() / serial.rate(), times.p99() / bare.p99());
    }
    Ok(Found {
        steady: bare.is_steady() && again.is_steady(),
        floor: median(&bare.each),
        floor_p99: bare.p99(),
        against_itself: again.rate() / bare.rate() * 100.0,
        hopped: hopped.rate() / bare.rate() * 100.0,
        serial: serial.rate(),
        of_bare: serial.rate() / bare.rate() * 100.0,
        unflushed: unflushed(folder, &key, each).await?,
        crowds,
    })
}

/// The median of an append whose flush does nothing.
async fn unflushed(folder: &Path, key: &StreamKey, each: usize) -> Result<f64, Failure> {
    let options = FileOptions::new(folder.join("unflushed")).fs(Arc::new(UnsyncedFs::default()));
    let storage = Arc::new(FileStorage::open(options)?);
    let appender = tokio::spawn(appends(storage, key.clone(), 0, 0..each));
    Ok(median(&appender.await??.each))
}

/// Ratios to a floor that was disturbed say nothing: rounds with a steady floor count, and without one there is no verdict.
fn show(mut found: Vec<Found>, report: &mut Report) -> Result<(), Failure> {
    let steady = found.iter().filter(|found| found.steady).count();
    let row = Row::new(
        "rounds with a steady floor, which count",
        "",
        vec![steady as f64],
    );
    report.row(row)?;
    if steady > 0 {
        found.retain(|found| found.steady);
    }
    let of = |figure: fn(&Found) -> f64| found.iter().map(figure).collect::<Vec<f64>>();
    let judged = |row: Row, bar| if steady > 0 { row.bar(bar) } else { row };
    let floor = "floor: write of a line of 1,088 bytes and its fdatasync";
    report.row(Row::new(floor, "ms", of(|found| found.floor)))?;
    report.row(Row::new("the same, p99", "ms", of(|found| found.floor_p99)))?;
    let itself = of(|found| found.against_itself);
    report.row(Row::new("the same again, of the floor's rate", "%", itself))?;
    let hopped = of(|found| found.hopped);
    report.row(Row::new(
        "the same on a thread of its own, of the floor's rate",
        "%",
        hopped,
    ))?;
    report.row(Row::new(
        "serial append of 1 KiB",
        "a second",
        of(|found| found.serial),
    ))?;
    let row = Row::new(
        "the same, of the floor's rate",
        "%",
        of(|found| found.of_bare),
    );
    report.row(judged(row, Bar::AtLeast(85.0)))?;
    let unflushed = of(|found| found.unflushed);
    report.row(Row::new("the same with flushing left out", "ms", unflushed))?;
    let names = ["64 appenders on one stream", "64 appenders on 64 streams"];
    for (crowd, (name, (least, most))) in names.iter().zip([(15.0, 4.0), (4.0, 12.0)]).enumerate() {
        let (rate, p99) = found.iter().map(|found| found.crowds[crowd]).unzip();
        report.row(judged(
            Row::new(*name, "times serial", rate),
            Bar::AtLeast(least),
        ))?;
        let row = Row::new(format!("{name}, p99"), "times the floor's p99", p99);
        report.row(judged(row, Bar::AtMost(most)))?;
    }
    Ok(())
}

fn bare_file(folder: &Path, name: &str) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    Ok(options
        .create_new(true)
        .append(true)
        .open(folder.join(name))?)
}

/// The way to a thread that does nothing but bare appends: what a storage with one hop would cost.
///
/// The thread ends with the last of these.
#[derive(Clone, Debug)]
struct Hop(mpsc::Sender<oneshot::Sender<io::Result<()>>>);

impl Hop {
    fn start(mut file: File) -> (Self, JoinHandle<()>) {
        let (ask, asked) = mpsc::channel::<oneshot::Sender<io::Result<()>>>();
        let thread = thread::spawn(move || {
            for reply in asked {
                // Whoever asked waits for it.
                let _ = reply.send(bare_append(&mut file));
            }
        });
        (Self(ask), thread)
    }

    async fn appends(self, count: usize) -> Result<Times, Failure> {
        let mut times = Times::new();
        let whole = Instant::now();
        for _ in 0..count {
            let began = Instant::now();
            let (reply, done) = oneshot::channel();
            self.0.send(reply)?;
            done.await??;
            times.each.push(ms(began));
        }
        times.whole = ms(whole);
        Ok(times)
    }
}

fn bare_append(file: &mut File) -> io::Result<()> {
    file.write_all(&[b'x'; PAYLOAD + ENVELOPE])?;
    file.sync_data()
}

fn bare_appends(file: &mut File, count: usize) -> Result<Times, Failure> {
    let mut times = Times::new();
    let whole = Instant::now();
    for _ in 0..count {
        let began = Instant::now();
        bare_append(file)?;
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
    let mut times = Times::new();
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
    let mut all = Times::new();
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
