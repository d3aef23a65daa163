//! What only the file back end can get wrong: torn and damaged files, failing disks, other programs.

#[cfg(target_os = "linux")]
mod big;
mod damage;
mod faults;
mod faulty;
mod lock;
mod outside;
mod places;
mod sharing;
mod simulation;
mod torn;

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use tempfile::TempDir;

use crate::file::line::encode;
use crate::file::{FileOptions, FileStorage};
use crate::log::{
    Appended, Entry, EntryData, LogStorage, LogStorageExt, NewEntry, ReadOptions, StreamKey,
};

/// A storage on a directory of its own.
struct Bench {
    dir: TempDir,
    storage: FileStorage,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path());
        Self { dir, storage }
    }

    fn path(&self, key: &StreamKey) -> PathBuf {
        self.dir.path().join(format!("{key}.jsonl"))
    }

    /// Writes a stream's file behind the storage's back.
    fn plant(&self, key: &StreamKey, bytes: &[u8]) {
        let path = self.path(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn bytes(&self, key: &StreamKey) -> Vec<u8> {
        fs::read(self.path(key)).unwrap()
    }
}

fn open(root: &Path) -> FileStorage {
    FileStorage::open(FileOptions::new(root)).unwrap()
}

fn key(text: &str) -> StreamKey {
    let (path, stream) = text.rsplit_once('/').unwrap();
    StreamKey::new(path.parse().unwrap(), stream.parse().unwrap())
}

fn payload(n: u64) -> String {
    format!("{{\"n\":{n},\"text\":\"ä{n}\"}}")
}

/// The file of a stream with the entries of `payload` from one number to another.
fn lines(numbers: RangeInclusive<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in numbers {
        encode(&mut bytes, n, n as i64, &payload(n));
    }
    bytes
}

fn new_entry(text: &str) -> NewEntry {
    NewEntry::new(7, RawValue::from_string(text.to_owned()).unwrap())
}

async fn append(storage: &FileStorage, key: &StreamKey, text: &str) -> Appended {
    storage.append(key, vec![new_entry(text)]).await.unwrap()
}

/// A short form of an entry: its number, and its payload or `damaged`.
fn short(entry: &Entry) -> (u64, String) {
    let text = match &entry.data {
        EntryData::Json(data) => data.get().to_owned(),
        EntryData::Damaged(_) => "damaged".to_owned(),
    };
    (entry.seq, text)
}

fn expected(numbers: RangeInclusive<u64>) -> Vec<(u64, String)> {
    numbers.map(|n| (n, payload(n))).collect()
}

async fn all(storage: &FileStorage, key: &StreamKey) -> Vec<(u64, String)> {
    let entries = storage.read_all(key).await.unwrap();
    entries.iter().map(short).collect()
}

/// Reads a stream in pages, with all of what is known of each entry.
async fn paged(storage: &FileStorage, key: &StreamKey, mut options: ReadOptions) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let page = storage.read(key, options).await.unwrap();
        found.extend(page.entries.iter().map(|entry| format!("{entry:?}")));
        match page.next {
            Some(next) => options.cursor = next,
            None => return found,
        }
    }
}
