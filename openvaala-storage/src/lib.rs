//! Append-only JSON logs and JSON records behind two small traits.
//!
//! [`LogStorage`] keeps streams of JSON entries: an append is flushed to disk before it returns, and numbers its entries 1, 2, 3 ….
//! [`RecordStorage`] keeps JSON records by namespace and key, to be listed and filtered. The log is the truth; records
//! are an index that can be rebuilt from it.
//!
//! ```
//! # #[cfg(feature = "file")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let root = dir.path().join("data");
//! use openvaala_storage::file::{FileOptions, FileStorage};
//! use openvaala_storage::{LogStorage, LogStorageExt, ReadOptions, StreamKey};
//! use serde_json::json;
//!
//! let storage = FileStorage::open(FileOptions::new(&root))?;
//! let key = StreamKey::new("conversations/0192f3".parse()?, "metadata".parse()?);
//!
//! // Both entries are on disk when this returns. The time is the caller's.
//! let time = 1_700_000_000_000;
//! let appended = storage.append_json(&key, time, &[json!({"title": "new"}), json!({"title": "A plan"})]).await?;
//! assert_eq!((appended.first, appended.last), (1, 2));
//!
//! let newest = storage.read(&key, ReadOptions::descending().limit(1)).await?;
//! assert_eq!(newest.entries[0].json().unwrap().get(), r#"{"title":"A plan"}"#);
//!
//! let text = std::fs::read_to_string(root.join("conversations/0192f3/metadata.jsonl"))?;
//! assert!(text.starts_with(r#"{"seq":1,"time":1700000000000,"crc":"#));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "file"))]
//! # fn main() {}
//! ```
//!
//! # Back ends
//!
//! Without features the crate has the traits and their values only, and needs no runtime. No back end needs one either: they own
//! their threads, and every executor can wait for them.
//!
//! | feature | brings |
//! | --- | --- |
//! | `file` | `file::FileStorage`: logs as JSON Lines files, one directory a path, one file a stream (Unix) |
//! | `sqlite` | `sqlite::SqliteDatabase`: logs and records in SQLite, on disk or in memory |
//! | `staged` | `StagedLogStorage`, `StagedRecordStorage`: in memory until promoted to a real storage |
//! | `conformance` | the suites that every back end must pass, as macros |
//! | `sim` | `sim::SimFs`: a simulated file system with power cuts and failing disks, for tests (not covered by semver) |
//!
//! # A line of the file back end
//!
//! ```text
//! {"seq":7,"time":1700000000000,"crc":"f79b01f4","data":{"text":"hi"}}
//! ```
//!
//! `crc` is the CRC32C, as 8 lower-case hex digits, of number, comma, time, comma and payload as written in the line: here of
//! `7,1700000000000,{"text":"hi"}`. Payloads are raw JSON text from end to end, so that big integers, key order and spacing survive.
//!
//! # Writing a back end
//!
//! Implement the seven methods of [`LogStorage`] (or of [`RecordStorage`]) for your type, under `#[async_trait]`:
//!
//! 1. `append`: refuse what [`check_batch`] refuses, give the next numbers, flush, return the new [`Fingerprint`].
//! 2. `read`: find the stream or return [`Error::NotFound`]; call [`ReadOptions::check_cursor`]; fetch at most `limit` entries and
//!    let [`ReadOptions::page`] make the page of them.
//! 3. The others are small; wrap what your database says with [`Error::backend`].
//!
//! Then prove it: with the feature `conformance` one line makes a named test for each rule of the contract.
//!
//! ```
//! # #[cfg(all(feature = "conformance", feature = "sqlite"))]
//! mod tests {
//!     # use openvaala_storage::sqlite::{SqliteDatabase, SqliteLogStorage, SqliteOptions};
//!     # fn my_storage() -> SqliteLogStorage {
//!     #     SqliteDatabase::open(SqliteOptions::in_memory()).unwrap().log()
//!     # }
//!     openvaala_storage::log_storage_conformance!(|| async { (my_storage(), ()) });
//! }
//! # fn main() {}
//! ```

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
#[cfg(feature = "file")]
pub mod file;
#[cfg(feature = "file")]
pub mod fs;
mod log;
mod record;
#[cfg(all(feature = "file", any(test, feature = "sim")))]
pub mod sim;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "staged")]
mod staged;

pub use error::{Error, Holder, Result};
pub use log::{
    Appended, Damage, Entry, EntryData, Fingerprint, Listing, LogPath, LogStorage, LogStorageExt,
    MAX_ENTRY_BYTES, MAX_PAGE_BYTES, NewEntry, Order, Page, ReadOptions, StreamId, StreamInfo,
    StreamKey, check_batch,
};
pub use record::{ListOptions, Namespace, Record, RecordPage, RecordStorage, SortBy};
#[cfg(feature = "staged")]
pub use staged::{StagedLogStorage, StagedRecordStorage};
