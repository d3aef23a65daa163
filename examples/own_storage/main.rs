//! Conversations in a storage of your own: here the simplest that keeps the contract, two maps in memory.
//!
//! Run it with `cargo run -p openvaala-examples --example own_storage`, and see it pass the suites that every
//! storage must pass with `cargo test -p openvaala-examples --example own_storage`.

mod logs;
mod place;
mod records;
mod stream;
mod table;

use std::error::Error;
use std::sync::Arc;

use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::protocol::event::Entry;
use openvaala_core::storage::LogStorage;
use openvaala_core::{FeedEvent, Input, NewConversation, Runtime, RuntimeBuilder};

use self::logs::MemoryLogs;
use self::records::MemoryRecords;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let logs = Arc::new(MemoryLogs::default());
    // The runtime says which records it keeps, and by which of their fields it looks for them.
    let records = Arc::new(MemoryRecords::new(RuntimeBuilder::namespaces()));
    let runtime = Runtime::builder()
        .logs(Arc::clone(&logs) as Arc<dyn LogStorage>)
        .records(records)
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

    for conversation in logs.list(Some(&"conversations".parse()?)).await?.paths {
        println!("{conversation}");
        for stream in logs.list(Some(&conversation)).await?.streams {
            println!("  {stream}");
        }
    }
    Ok(())
}

/// One test for each rule of the two contracts.
#[cfg(test)]
mod tests {
    mod logs {
        use crate::logs::MemoryLogs;

        openvaala_storage::log_storage_conformance!(|| async { (MemoryLogs::default(), ()) });
    }

    mod records {
        use openvaala_storage::conformance::record::namespaces;

        use crate::records::MemoryRecords;

        openvaala_storage::record_storage_conformance!(|| async {
            (MemoryRecords::new(namespaces()), ())
        });
    }
}
