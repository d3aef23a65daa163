//! `LogStorage`: append-only streams of JSON entries.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use openvaala_core::storage::{
    Appended, Entry, EntryData, Error, Fingerprint, Listing, LogPath, LogStorage, NewEntry, Order,
    Page, ReadOptions, Result, StreamInfo, StreamKey, check_batch,
};
use tokio::sync::Mutex;

/// Streams in memory. No method waits while it holds the lock, so each is done as a whole or not at all.
#[derive(Debug, Default)]
pub(crate) struct MemoryLogs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<StreamKey, Stream>,
    /// Counts all appends there ever were: so a stream that is begun anew has another fingerprint than before.
    appends: u64,
}

#[derive(Debug, Default)]
struct Stream {
    entries: Vec<Entry>,
    changed: u64,
}

impl Stream {
    fn info(&self) -> StreamInfo {
        StreamInfo {
            last: self.entries.len() as u64,
            fingerprint: Fingerprint::new(self.changed.to_string()),
        }
    }
}

#[async_trait]
impl LogStorage for MemoryLogs {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        check_batch(&batch)?;
        let mut state = self.0.lock().await;
        state.appends += 1;
        let changed = state.appends;
        let stream = state.streams.entry(key.clone()).or_default();
        let first = stream.info().last + 1;
        let entries = (first..).zip(batch).map(|(seq, new)| Entry {
            seq,
            time: new.time,
            data: EntryData::Json(new.data),
        });
        stream.entries.extend(entries);
        stream.changed = changed;
        // A storage that outlives the program flushes here, before anybody is told.
        let StreamInfo { last, fingerprint } = stream.info();
        Ok(Appended {
            first,
            last,
            fingerprint,
        })
    }

    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page> {
        let state = self.0.lock().await;
        let Some(stream) = state.streams.get(key) else {
            return Err(Error::NotFound { key: key.clone() });
        };
        let (last, cursor) = (stream.info().last, options.cursor);
        options.check_cursor(last)?;
        let entries = stream.entries.iter();
        let limit = options.limit.max(1);
        let page: Vec<Entry> = match options.order {
            Order::Ascending => entries
                .filter(|it| it.seq > cursor)
                .take(limit)
                .cloned()
                .collect(),
            Order::Descending => {
                let older = entries.rev().filter(|it| cursor == 0 || it.seq < cursor);
                older.take(limit).cloned().collect()
            }
        };
        Ok(options.page(page, last))
    }

    async fn fingerprint(&self, key: &StreamKey) -> Result<Option<Fingerprint>> {
        Ok(self.info(key).await?.map(|info| info.fingerprint))
    }

    async fn info(&self, key: &StreamKey) -> Result<Option<StreamInfo>> {
        Ok(self.0.lock().await.streams.get(key).map(Stream::info))
    }

    async fn list(&self, path: Option<&LogPath>) -> Result<Listing> {
        let depth = path.map_or(0, |path| path.segments().count());
        let (mut paths, mut streams) = (BTreeSet::new(), BTreeSet::new());
        for key in self.0.lock().await.streams.keys() {
            let below: Vec<&str> = key.path.segments().take(depth + 1).collect();
            match path {
                Some(path) if !path.contains(&key.path) => {}
                Some(path) if *path == key.path => drop(streams.insert(key.stream.clone())),
                _ => drop(paths.insert(below.join("/").parse()?)),
            }
        }
        Ok(Listing {
            paths: paths.into_iter().collect(),
            streams: streams.into_iter().collect(),
        })
    }

    async fn delete(&self, key: &StreamKey) -> Result<bool> {
        Ok(self.0.lock().await.streams.remove(key).is_some())
    }

    async fn delete_path(&self, path: &LogPath) -> Result<bool> {
        let streams = &mut self.0.lock().await.streams;
        let before = streams.len();
        streams.retain(|key, _| !path.contains(&key.path));
        Ok(streams.len() < before)
    }
}
