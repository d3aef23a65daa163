//! One entry of 100 MiB: what it takes of memory to write and to read.

use std::path::Path;
use std::time::Instant;

use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::{LogStorage, NewEntry, ReadOptions, StreamKey};
use serde_json::value::RawValue;

use super::{Setting, ms};
use crate::Failure;
use crate::fresh::{self, Figures};
use crate::generate::Plan;
use crate::memory::Growth;
use crate::report::{Bar, Report, Row};

const BYTES: u64 = 100 << 20;
const LEAST: u64 = 1 << 20;

pub(super) fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    // Of the plan only the size of an item is used.
    let plan = Plan::new(1, 1, setting.size(BYTES, LEAST));
    let mut all = [const { Vec::new() }; 5];
    for _ in 0..setting.rounds {
        let folder = tempfile::Builder::new()
            .prefix("large-")
            .tempdir_in(&setting.folder)?;
        let written = fresh::probe("large-append", folder.path(), &plan)?;
        let read = fresh::probe("large-read", folder.path(), &plan)?;
        let names = [
            (&written, "times"),
            (&written, "ms"),
            (&read, "times"),
            (&read, "ms"),
            (&read, "beside"),
        ];
        for (figures, (from, name)) in all.iter_mut().zip(names) {
            figures.extend(from.get(name));
        }
    }
    let [written, write_ms, read, read_ms, beside] = all;
    let row = Row::new(
        "one entry of 100 MiB written, peak memory",
        "times its size",
        written,
    );
    report.row(row.bar(Bar::AtMost(3.0)))?;
    report.row(Row::new("the same, time", "ms", write_ms))?;
    let row = Row::new(
        "one entry of 100 MiB read, peak memory",
        "times its size",
        read,
    );
    report.row(row.bar(Bar::AtMost(3.0)))?;
    report.row(Row::new("the same, time", "ms", read_ms))?;
    report.row(Row::new(
        "pages of its neighbours, peak memory",
        "times its size",
        beside,
    ))
}

fn key() -> Result<StreamKey, Failure> {
    Ok(StreamKey::new("bench".parse()?, "large".parse()?))
}

fn large(bytes: usize) -> Result<Box<RawValue>, Failure> {
    let mut text = String::with_capacity(bytes);
    text.push('"');
    text.extend("0123456789abcdef".chars().cycle().take(bytes - 2));
    text.push('"');
    Ok(RawValue::from_string(text)?)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn small(number: u64) -> Result<Vec<NewEntry>, Failure> {
    Ok(vec![NewEntry::new(
        1,
        RawValue::from_string(number.to_string())?,
    )])
}

/// The large entry is the second of three.
pub(super) async fn probe_append(data: &Path, bytes: u64) -> Result<Figures, Failure> {
    let storage = FileStorage::open(FileOptions::new(data))?;
    storage.append(&key()?, small(1)?).await?;
    let growth = Growth::begin()?;
    let entry = NewEntry::new(1, large(bytes as usize)?);
    let began = Instant::now();
    storage.append(&key()?, vec![entry]).await?;
    let took = ms(began);
    let times = growth.highest()? / mebibytes(bytes);
    storage.append(&key()?, small(3)?).await?;
    Ok([("times".to_owned(), times), ("ms".to_owned(), took)].into())
}

pub(super) async fn probe_read(data: &Path, bytes: u64) -> Result<Figures, Failure> {
    let size = mebibytes(bytes);
    let storage = FileStorage::open(FileOptions::new(data))?;
    let growth = Growth::begin()?;
    for (options, wanted) in [
        (ReadOptions::descending().limit(1), "3"),
        (ReadOptions::ascending().limit(1), "1"),
        (ReadOptions::ascending().cursor(2).limit(1), "3"),
    ] {
        let page = storage.read(&key()?, options).await?;
        let found: Vec<_> = page
            .entries
            .iter()
            .filter_map(|entry| entry.json())
            .map(RawValue::get)
            .collect();
        if found != [wanted] {
            return Err(format!("a neighbour is not {wanted}").into());
        }
    }
    let beside = growth.highest()? / size;
    let growth = Growth::begin()?;
    let began = Instant::now();
    let page = storage
        .read(&key()?, ReadOptions::ascending().cursor(1).limit(1))
        .await?;
    let took = ms(began);
    let times = growth.highest()? / size;
    let found = page.entries.first().and_then(|entry| entry.json());
    if found.map(RawValue::get) != Some(large(bytes as usize)?.get()) {
        return Err("the large entry is not what was written".into());
    }
    let figures = [("times", times), ("ms", took), ("beside", beside)];
    Ok(figures
        .map(|(name, figure)| (name.to_owned(), figure))
        .into())
}
