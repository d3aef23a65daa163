//! A storage around another one: it counts what goes through, and its tests prove that it changes nothing.
//!
//! Run it with `cargo run -p openvaala-examples --example custom_storage`, and see it pass the suite that every
//! storage must pass with `cargo test -p openvaala-examples --example custom_storage`.

mod metered;

use std::error::Error;
use std::sync::Arc;

use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::protocol::event::Entry;
use openvaala_core::storage::sqlite::{SqliteDatabase, SqliteOptions};
use openvaala_core::{FeedEvent, Input, NewConversation, Runtime, RuntimeBuilder};

use self::metered::MeteredLogs;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = SqliteOptions::in_memory().namespaces(RuntimeBuilder::namespaces());
    let database = SqliteDatabase::open(options)?;
    let logs = Arc::new(MeteredLogs::new(database.log()));
    let runtime = Runtime::builder()
        .logs(logs.clone())
        .records(Arc::new(database.records()))
        .provider("demo", Arc::new(DemoProvider::new()))
        .build()
        .await?;
    let conversation = runtime.create(NewConversation::default()).await?;
    let mut events = conversation.subscribe(None).await?;
    conversation.send(Input::text("what can you do?")).await?;
    while let Some(event) = events.next().await {
        let FeedEvent::Entry { entry, .. } = event else {
            continue;
        };
        if matches!(&*entry, Entry::Turn { turn, .. } if turn.ended_at.is_some()) {
            break;
        }
    }
    runtime.shutdown().await;

    let meter = logs.meter();
    println!("{} entries in {} appends", meter.entries, meter.appends);
    Ok(())
}

/// One test for each rule of the contract: this is all it takes.
#[cfg(test)]
mod tests {
    use openvaala_core::storage::sqlite::{SqliteDatabase, SqliteOptions};

    use crate::metered::MeteredLogs;

    openvaala_storage::log_storage_conformance!(|| async {
        let database = SqliteDatabase::open(SqliteOptions::in_memory()).unwrap();
        (MeteredLogs::new(database.log()), ())
    });
}
