//! Wrong logs: each is right but for one fault.

use std::sync::Arc;

use async_trait::async_trait;
use openvaala_storage::conformance::log_rules;
use openvaala_storage::sqlite::{SqliteDatabase, SqliteLogStorage, SqliteOptions};
use openvaala_storage::{
    Appended, Error, Fingerprint, Listing, LogPath, LogStorage, NewEntry, Order, Page, ReadOptions,
    Result, StreamInfo, StreamKey,
};
use pretty_assertions::assert_eq;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio::task::yield_now;

use super::broken;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    AcceptsAnEmptyBatch,
    AcceptsAnyCursor,
    AnswersEmptyForUnknown,
    ChangesFingerprintOnRead,
    ConstantFingerprint,
    CursorIsInclusive,
    DeletesByPrefix,
    DeletionHidesNothing,
    EncodesAnew,
    FlattensListings,
    ForgetsAbsentFingerprints,
    ForgetsPaths,
    IgnoresLimit,
    IgnoresOrder,
    ListsInReverse,
    LosesTheLastOfABatch,
    MovesOverAnything,
    NumbersFromOneAlways,
    SaysNoMoreTooEarly,
    SplitsBatches,
    TellsOfNoDeletion,
    WrongNextCursor,
    ZeroesTimes,
}

/// What each fault breaks, among others.
const PROVEN: [(Fault, &str); 23] = [
    (
        Fault::MovesOverAnything,
        "a_path_is_never_moved_onto_another",
    ),
    (Fault::AcceptsAnEmptyBatch, "an_empty_batch_is_refused"),
    (
        Fault::AcceptsAnyCursor,
        "r_28_a_cursor_beyond_the_end_is_refused",
    ),
    (
        Fault::AnswersEmptyForUnknown,
        "an_unknown_stream_is_absent_in_every_way",
    ),
    (
        Fault::ChangesFingerprintOnRead,
        "fingerprints_change_with_every_append",
    ),
    (
        Fault::ConstantFingerprint,
        "fingerprints_change_with_every_append",
    ),
    (
        Fault::CursorIsInclusive,
        "r_29_pages_of_every_size_give_each_entry_once",
    ),
    (
        Fault::DeletesByPrefix,
        "r_26_deleting_a_path_removes_exactly_its_subtree",
    ),
    (
        Fault::DeletionHidesNothing,
        "r_28_a_deleted_stream_begins_again_at_one",
    ),
    (Fault::EncodesAnew, "r_38_payloads_come_back_byte_for_byte"),
    (Fault::FlattensListings, "listings_are_sorted_and_direct"),
    (
        Fault::ForgetsAbsentFingerprints,
        "fingerprints_of_many_are_those_of_each",
    ),
    (Fault::ForgetsPaths, "streams_do_not_touch_each_other"),
    (Fault::IgnoresLimit, "a_limit_of_zero_counts_as_one"),
    (
        Fault::IgnoresOrder,
        "r_29_pages_of_every_size_give_each_entry_once",
    ),
    (Fault::ListsInReverse, "listings_are_sorted_and_direct"),
    (Fault::LosesTheLastOfABatch, "numbers_are_dense_from_one"),
    (Fault::NumbersFromOneAlways, "numbers_are_dense_from_one"),
    (
        Fault::SaysNoMoreTooEarly,
        "r_29_pages_of_every_size_give_each_entry_once",
    ),
    (
        Fault::SplitsBatches,
        "r_31_concurrent_batches_are_dense_and_contiguous",
    ),
    (
        Fault::TellsOfNoDeletion,
        "an_unknown_stream_is_absent_in_every_way",
    ),
    (
        Fault::WrongNextCursor,
        "r_29_pages_of_every_size_give_each_entry_once",
    ),
    (Fault::ZeroesTimes, "a_batch_keeps_its_order_and_times"),
];

#[tokio::test]
async fn every_wrong_log_breaks_the_rule_that_it_is_against() {
    let mut found = Vec::new();
    for (fault, rule) in PROVEN {
        let names = broken(log_rules(), || wrong(fault)).await;
        found.push((fault, names.contains(rule).then_some(rule)));
    }
    assert_eq!(found, PROVEN.map(|(fault, rule)| (fault, Some(rule))));
    assert_eq!(broken(log_rules(), || wrong(Fault::None)).await, [].into());
}

fn wrong(fault: Fault) -> Arc<dyn LogStorage> {
    let database = SqliteDatabase::open(SqliteOptions::in_memory()).unwrap();
    Arc::new(Wrong {
        inner: database.log(),
        fault,
    })
}

#[derive(Debug)]
struct Wrong {
    inner: SqliteLogStorage,
    fault: Fault,
}

impl Wrong {
    fn key(&self, key: &StreamKey) -> StreamKey {
        match self.fault {
            Fault::ForgetsPaths => StreamKey::new("c".parse().unwrap(), "s".parse().unwrap()),
            _ => key.clone(),
        }
    }

    fn entry(&self, mut entry: NewEntry) -> NewEntry {
        match self.fault {
            Fault::ZeroesTimes => entry.time = 0,
            Fault::EncodesAnew => {
                if let Ok(value) = serde_json::from_str::<Value>(entry.data.get()) {
                    entry.data = to_raw_value(&value).unwrap();
                }
            }
            _ => {}
        }
        entry
    }

    fn seen(&self, info: StreamInfo) -> StreamInfo {
        let fingerprint = match self.fault {
            Fault::ConstantFingerprint => Fingerprint::new("same"),
            _ => info.fingerprint,
        };
        StreamInfo {
            fingerprint,
            ..info
        }
    }
}

#[async_trait]
impl LogStorage for Wrong {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        let key = self.key(key);
        let mut batch: Vec<NewEntry> = batch.into_iter().map(|entry| self.entry(entry)).collect();
        let wanted = batch.len();
        match self.fault {
            Fault::AcceptsAnEmptyBatch if batch.is_empty() => {
                let fingerprint = Fingerprint::new("none");
                let (first, last) = (1, 0);
                return Ok(Appended {
                    first,
                    last,
                    fingerprint,
                });
            }
            Fault::LosesTheLastOfABatch if wanted > 1 => drop(batch.pop()),
            Fault::SplitsBatches if wanted > 1 => {
                let mut first = None;
                let mut appended = None;
                for entry in batch {
                    yield_now().await;
                    let one = self.inner.append(&key, vec![entry]).await?;
                    first.get_or_insert(one.first);
                    appended = Some(one);
                }
                let mut appended = appended.unwrap();
                appended.first = first.unwrap();
                return Ok(appended);
            }
            _ => {}
        }
        let mut appended = self.inner.append(&key, batch).await?;
        match self.fault {
            Fault::NumbersFromOneAlways => {
                (appended.first, appended.last) = (1, wanted as u64);
            }
            Fault::LosesTheLastOfABatch => appended.last = appended.first + wanted as u64 - 1,
            Fault::ConstantFingerprint => appended.fingerprint = Fingerprint::new("same"),
            _ => {}
        }
        Ok(appended)
    }

    async fn read(&self, key: &StreamKey, mut options: ReadOptions) -> Result<Page> {
        let key = self.key(key);
        match self.fault {
            Fault::IgnoresOrder => options.order = Order::Ascending,
            Fault::IgnoresLimit => options.limit = usize::MAX,
            Fault::CursorIsInclusive if options.cursor > 0 => match options.order {
                Order::Ascending => options.cursor -= 1,
                Order::Descending => options.cursor += 1,
            },
            _ => {}
        }
        let read = self.inner.read(&key, options).await;
        let mut page = match (self.fault, read) {
            (Fault::AnswersEmptyForUnknown, Err(Error::NotFound { .. }))
            | (Fault::AcceptsAnyCursor, Err(Error::InvalidCursor { .. })) => Page::default(),
            (_, read) => read?,
        };
        match self.fault {
            Fault::SaysNoMoreTooEarly => page.next = None,
            Fault::WrongNextCursor => page.next = page.next.map(|next| next + 1),
            Fault::ChangesFingerprintOnRead => {
                let again = NewEntry::new(0, to_raw_value(&0).unwrap());
                self.inner.append(&key, vec![again]).await?;
            }
            _ => {}
        }
        Ok(page)
    }

    async fn fingerprint(&self, key: &StreamKey) -> Result<Option<Fingerprint>> {
        let info = self.info(key).await?;
        Ok(info.map(|info| info.fingerprint))
    }

    async fn fingerprints(&self, keys: &[StreamKey]) -> Vec<Result<Option<Fingerprint>>> {
        let mut found = Vec::new();
        for key in keys {
            found.push(self.fingerprint(key).await);
        }
        if self.fault == Fault::ForgetsAbsentFingerprints {
            found.retain(|found| !matches!(found, Ok(None)));
        }
        found
    }

    async fn info(&self, key: &StreamKey) -> Result<Option<StreamInfo>> {
        let info = self.inner.info(&self.key(key)).await?;
        Ok(info.map(|info| self.seen(info)))
    }

    async fn list(&self, path: Option<&LogPath>) -> Result<Listing> {
        let mut listing = self.inner.list(path).await?;
        match self.fault {
            Fault::ListsInReverse => {
                listing.paths.reverse();
                listing.streams.reverse();
            }
            Fault::FlattensListings => {
                for path in listing.paths.clone() {
                    let below = self.inner.list(Some(&path)).await?;
                    listing.paths.extend(below.paths);
                }
            }
            _ => {}
        }
        Ok(listing)
    }

    async fn delete(&self, key: &StreamKey) -> Result<bool> {
        let key = self.key(key);
        match self.fault {
            Fault::DeletionHidesNothing => Ok(self.inner.info(&key).await?.is_some()),
            Fault::TellsOfNoDeletion => self.inner.delete(&key).await.map(|_| true),
            _ => self.inner.delete(&key).await,
        }
    }

    async fn delete_path(&self, path: &LogPath) -> Result<bool> {
        if self.fault == Fault::DeletesByPrefix
            && let Some((parent, _)) = path.as_str().rsplit_once('/')
        {
            let siblings = self.inner.list(Some(&parent.parse()?)).await?.paths;
            let alike = siblings
                .iter()
                .filter(|it| it.as_str().starts_with(path.as_str()));
            for sibling in alike {
                self.inner.delete_path(sibling).await?;
            }
            return Ok(true);
        }
        self.inner.delete_path(path).await
    }

    async fn rename_path(&self, from: &LogPath, to: &LogPath) -> Result<bool> {
        if self.fault == Fault::MovesOverAnything {
            self.inner.delete_path(to).await?;
        }
        self.inner.rename_path(from, to).await
    }
}
