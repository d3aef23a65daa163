//! Logs and records in one SQLite database, on disk or in memory.
//!
//! One thread owns the connection that writes; readers have connections of their own, so that a listing never waits for a
//! write. The database is in WAL mode, except on network file systems. Appends to a log are flushed (`synchronous=FULL`) before they return; records are an
//! index that can be rebuilt and use [`Durability`], by default `NORMAL`.
//!
//! ```
//! use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions};
//! use openvaala_storage::{Namespace, Record, RecordStorage};
//! use serde_json::value::to_raw_value;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = SqliteOptions::in_memory().namespaces([Namespace::new("conversation", ["status"])]);
//! let records = SqliteDatabase::open(options)?.records();
//! let data = to_raw_value(&serde_json::json!({"status": "running"}))?;
//! records.set("conversation", Record::new("c1", 1_700_000_000_000, data)).await?;
//! assert!(records.get("conversation", "c1").await?.is_some());
//! # Ok(())
//! # }
//! ```

mod check;
mod database;
mod failure;
mod file_system;
mod list;
mod log;
mod open;
mod record;
mod schema;
#[cfg(test)]
mod tests;
mod worker;

pub use self::database::{Durability, Opened, SqliteDatabase, SqliteOptions};
pub use self::log::SqliteLogStorage;
pub use self::record::SqliteRecordStorage;
