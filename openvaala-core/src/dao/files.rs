//! What only the file storage of a data directory knows: torn ends of streams, and what it has had to suffer.

use openvaala_storage::{Error, StreamKey};
#[cfg(feature = "file")]
use {openvaala_storage::file::FileStorage, std::sync::Arc};

/// The file storage behind a log, where there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    #[cfg(feature = "file")]
    storage: Option<Arc<FileStorage>>,
}

#[cfg(feature = "file")]
impl Files {
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
    pub(crate) const fn new(storage: Arc<FileStorage>) -> Self {
        Self {
            storage: Some(storage),
        }
    }

    /// What does not work as it should, a line each.
    pub(crate) async fn degraded(&self) -> Vec<String> {
        let Some(storage) = &self.storage else {
            return Vec::new();
        };
        let health = match storage.health().await {
            Ok(health) => health,
            Err(error) => return vec![error.to_string()],
        };
        let mut lines = Vec::new();
        if let Some(key) = health.full {
            lines.push(format!(
                "the disk was full when {key} was last written: free some space, the next message tries again"
            ));
        }
        lines.extend(health.poisoned.iter().map(|key| {
            format!("{key} could not be written or flushed; its next use recovers it up to the last acknowledged entry")
        }));
        lines.extend(health.cuts.iter().map(|cut| {
            let (key, offset, length) = (&cut.key, cut.offset, cut.length);
            let side = cut.side_file.display();
            format!("the end of {key} was torn: {length} bytes at {offset} were cut and are kept in {side}")
        }));
        lines
    }

    /// The offset and length of the bytes at the end of a stream that are no entries.
    pub(crate) async fn torn_tail(&self, key: &StreamKey) -> Result<Option<(u64, u64)>, Error> {
        let Some(storage) = &self.storage else {
            return Ok(None);
        };
        let torn = storage.torn_tail(key).await?;
        Ok(torn.map(|torn| (torn.offset, torn.length)))
    }

    /// Cuts those bytes into a side file; says whether there were any.
    pub(crate) async fn cut_torn_tail(&self, key: &StreamKey) -> Result<bool, Error> {
        match &self.storage {
            Some(storage) => storage.cut_torn_tail(key).await,
            None => Ok(false),
        }
    }
}

#[cfg(not(feature = "file"))]
#[allow(clippy::unused_async, reason = "the twins with the feature wait")]
impl Files {
    pub(crate) async fn degraded(&self) -> Vec<String> {
        Vec::new()
    }

    pub(crate) async fn torn_tail(&self, _: &StreamKey) -> Result<Option<(u64, u64)>, Error> {
        Ok(None)
    }

    pub(crate) async fn cut_torn_tail(&self, _: &StreamKey) -> Result<bool, Error> {
        Ok(false)
    }
}
