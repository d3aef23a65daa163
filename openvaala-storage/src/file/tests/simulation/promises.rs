//! What a storage has promised, and whether it keeps it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::executor::block_on;

use super::super::{all, short};
use crate::error::{Error, Result};
use crate::file::FileStorage;
use crate::log::{Appended, LogPath, LogStorage, Order, ReadOptions, StreamKey};

/// A payload.
pub(super) type Text = Arc<str>;

const DAMAGED: &str = "damaged";

/// A state in which a stream may be found.
#[derive(Clone, Debug, Default, PartialEq)]
struct Version {
    acknowledged: Vec<Text>,
    /// Batches that were not acknowledged: a crash may make a prefix of one visible.
    tails: Vec<Vec<Text>>,
}

/// What was promised: all versions of a stream that may be found, one when nothing failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Promises {
    streams: BTreeMap<StreamKey, Vec<Version>>,
    /// Batches were appended at the same time: one flush may have covered several.
    joined: bool,
    /// A deletion of a path that was the last thing that happened.
    half_deleted: Option<LogPath>,
}

impl Promises {
    /// Makes promises of streams that several callers append to at the same time.
    pub(super) fn joined() -> Self {
        Self {
            joined: true,
            ..Self::default()
        }
    }

    pub(super) fn keys(&self) -> Vec<StreamKey> {
        self.streams.keys().cloned().collect()
    }

    pub(super) fn appended(
        &mut self,
        key: &StreamKey,
        batch: Vec<Text>,
        result: &Result<Appended>,
    ) {
        self.half_deleted = None;
        let versions = self.versions(key);
        match result {
            Ok(appended) => {
                let numbers = appended.first..appended.last + 1;
                assert_eq!(numbers.end - numbers.start, batch.len() as u64);
                let is_before =
                    |version: &Version| version.acknowledged.len() as u64 + 1 == appended.first;
                let found = versions.iter().position(is_before);
                let found = found.unwrap_or_else(|| {
                    panic!("I-2: {key} went on with {}", appended.first);
                });
                let mut version = versions.swap_remove(found);
                version.acknowledged.extend(batch);
                version.tails.clear();
                *versions = vec![version];
            }
            Err(_) => {
                for version in versions {
                    version.tails.push(batch.clone());
                }
            }
        }
    }

    pub(super) fn deleted(&mut self, key: &StreamKey, result: &Result<bool>) {
        self.half_deleted = None;
        let versions = self.versions(key);
        match result {
            Ok(_) => *versions = vec![Version::default()],
            Err(_) => versions.push(Version::default()),
        }
    }

    pub(super) fn path_deleted(&mut self, path: &LogPath, result: &Result<bool>) {
        for key in self.keys() {
            if path.contains(&key.path) {
                self.deleted(&key, result);
            }
        }
        self.half_deleted = result.is_err().then(|| path.clone());
    }

    /// Checks that the storage shows what was acknowledged and nothing else.
    pub(super) fn check_running(&self, storage: &FileStorage) {
        for (key, versions) in &self.streams {
            let found = read(storage, key);
            let mut versions = versions.iter();
            assert!(
                versions.any(|version| version.acknowledged == found),
                "I-1, I-3: {key} shows {}",
                brief(&found)
            );
        }
    }

    /// Checks what a process finds after a power cut; from then on that is what is promised.
    pub(super) fn check_after_crash(&mut self, storage: &FileStorage) {
        self.check_found(storage, |_, _| {});
        self.half_deleted = None;
    }

    /// Checks what a process finds after the end of another: what was not flushed can still come or go by a power cut.
    pub(super) fn check_after_kill(&mut self, storage: &FileStorage) {
        self.check_found(storage, |before, found| found.extend_from_slice(before));
    }

    /// Checks what is found; `settle` gets the versions from before and the one that was found.
    fn check_found(
        &mut self,
        storage: &FileStorage,
        settle: impl Fn(&[Version], &mut Vec<Version>),
    ) {
        let (mut whole, mut gone) = (Vec::new(), Vec::new());
        for (key, versions) in &mut self.streams {
            let found = read(storage, key);
            let fits = |version: &Version| {
                let surplus = found.strip_prefix(version.acknowledged.as_slice());
                surplus.is_some_and(|surplus| is_prefix(surplus, &version.tails, self.joined))
            };
            assert!(
                versions.iter().any(fits),
                "I-1, I-3: {key} has {} instead of one of {}",
                brief(&found),
                versions
                    .iter()
                    .map(Version::brief)
                    .collect::<Vec<_>>()
                    .join(" or ")
            );
            let is_half = self.half_deleted.as_ref();
            let existed = versions
                .iter()
                .any(|version| !version.acknowledged.is_empty());
            if is_half.is_some_and(|path| path.contains(&key.path)) && existed {
                let list = if found.is_empty() {
                    &mut gone
                } else {
                    &mut whole
                };
                list.push(key.to_string());
            }
            let mut now = vec![Version {
                acknowledged: found,
                tails: Vec::new(),
            }];
            settle(versions, &mut now);
            now.dedup();
            *versions = now;
        }
        assert!(
            whole.is_empty() || gone.is_empty(),
            "a path was deleted by half: {whole:?} are there, {gone:?} are not"
        );
    }

    fn versions(&mut self, key: &StreamKey) -> &mut Vec<Version> {
        let new = || vec![Version::default()];
        self.streams.entry(key.clone()).or_insert_with(new)
    }
}

impl Version {
    fn brief(&self) -> String {
        let tails: Vec<String> = self.tails.iter().map(|tail| brief(tail)).collect();
        format!("{} + {tails:?}", brief(&self.acknowledged))
    }
}

/// Tells whether entries are a prefix of one of the batches, or of several one after the other.
///
/// Where a power cut has lost the beginning of a batch but not its end, the lost entries are served as damaged: nobody can tell that
/// from damage of acknowledged ones, which is never cut. The last one is always whole.
fn is_prefix(surplus: &[Text], tails: &[Vec<Text>], joined: bool) -> bool {
    if surplus.is_empty() {
        return true;
    }
    if surplus.last().is_some_and(|text| **text == *DAMAGED) {
        return false;
    }
    let is_like = |(found, sent): (&Text, &Text)| found == sent || **found == *DAMAGED;
    tails.iter().any(|tail| {
        let fits = surplus.iter().zip(tail).all(is_like);
        let rest = surplus.get(tail.len()..).unwrap_or_default();
        fits && (rest.is_empty() || joined && is_prefix(rest, tails, joined))
    })
}

/// Reads a stream in both directions and checks that the numbers are dense.
fn read(storage: &FileStorage, key: &StreamKey) -> Vec<Text> {
    let info = block_on(storage.info(key)).unwrap();
    let Some(info) = info else {
        let read = block_on(storage.read(key, ReadOptions::ascending()));
        assert!(matches!(read, Err(Error::NotFound { .. })), "{read:?}");
        return Vec::new();
    };
    let ascending = block_on(all(storage, key));
    let descending = backwards(storage, key, ascending.len() / 3 + 1);
    assert!(ascending == descending, "{key}: the directions disagree");
    let mut texts = Vec::new();
    for (number, (seq, text)) in (1..).zip(ascending) {
        assert_eq!(seq, number, "I-2: {key}");
        texts.push(text.into());
    }
    assert_eq!(info.last, texts.len() as u64, "{key}");
    texts
}

fn backwards(storage: &FileStorage, key: &StreamKey, limit: usize) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut options = ReadOptions::descending().limit(limit);
    assert_eq!(options.order, Order::Descending);
    loop {
        let page = block_on(storage.read(key, options)).unwrap();
        found.extend(page.entries.iter().map(short));
        match page.next {
            Some(next) => options.cursor = next,
            None => break,
        }
    }
    found.reverse();
    found
}

fn brief(texts: &[Text]) -> String {
    let head = |text: &Text| text.chars().take(12).collect::<String>();
    format!("{:?}", texts.iter().map(head).collect::<Vec<_>>())
}
