//! `LogStorage`: append-only streams of JSON entries, by path and name.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use openvaala_core::storage::{
    Appended, Error, Fingerprint, Listing, LogPath, LogStorage, NewEntry, Page, ReadOptions,
    Result, StreamInfo, StreamKey, check_batch, check_rename,
};
use tokio::sync::Mutex;

use crate::stream::Stream;

/// Streams in memory. No method waits while it holds the lock, so each is done as a whole or not at all.
#[derive(Debug, Default)]
pub(crate) struct MemoryLogs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<StreamKey, Stream>,
    /// Counts all appends there ever were: so a stream that is begun anew has another fingerprint than before.
    appends: u64,
}

#[async_trait]
impl LogStorage for MemoryLogs {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        check_batch(&batch)?;
        let state = &mut *self.0.lock().await;
        state.appends += 1;
        let stream = state.streams.entry(key.clone()).or_default();
        // A storage that outlives the program flushes before it returns from here.
        Ok(stream.append(batch, state.appends))
    }

    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page> {
        match self.0.lock().await.streams.get(key) {
            Some(stream) => stream.read(options),
            None => Err(Error::NotFound { key: key.clone() }),
        }
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
            let begin: Vec<&str> = key.path.segments().take(depth + 1).collect();
            match path {
                Some(path) if !path.contains(&key.path) => {}
                Some(path) if *path == key.path => drop(streams.insert(key.stream.clone())),
                _ => drop(paths.insert(begin.join("/").parse()?)),
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

    async fn rename_path(&self, from: &LogPath, to: &LogPath) -> Result<bool> {
        check_rename(from, to)?;
        let streams = &mut self.0.lock().await.streams;
        let old: Vec<StreamKey> = streams
            .keys()
            .filter(|key| from.contains(&key.path))
            .cloned()
            .collect();
        if !old.is_empty() && streams.keys().any(|key| to.contains(&key.path)) {
            return Err(Error::PathExists { path: to.clone() });
        }
        for key in &old {
            let path = format!("{to}{}", &key.path.as_str()[from.as_str().len()..]).parse()?;
            if let Some(stream) = streams.remove(key) {
                streams.insert(StreamKey::new(path, key.stream.clone()), stream);
            }
        }
        Ok(!old.is_empty())
    }
}
