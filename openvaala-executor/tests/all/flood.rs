//! Output that fits nowhere.

use std::fs;
use std::sync::Arc;

use openvaala_executor::commands::CommandId;
use openvaala_executor::output::MemoryOutput;
use openvaala_executor::tool::Cancel;
use serde_json::json;

use super::session::Session;
use super::support::text;

/// Memory of this process, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

/// Runs a command that writes `mebi` MiB, of which 1 MiB is kept, and looks at memory meanwhile.
async fn flood(mebi: u64, source: &str) {
    let session = Session::open().await;
    let sink = Arc::new(MemoryOutput::new(1 << 20));
    let line = format!("{source} | head -c {mebi}M");
    let args = json!({ "command": line, "yield_ms": 250 });
    let before = resident();
    let output = session
        .call_with("bash", args, Cancel::never(), sink.clone())
        .await
        .unwrap();
    assert!(text(&output).len() <= 30_000);
    let command = session.commands.get(CommandId::new(1)).await.unwrap();
    let mut most = resident();
    while !command.is_ended() {
        let args = json!({ "id": 1, "wait_ms": 1_000 });
        let read = session.call("bash_output", args).await.unwrap();
        assert!(text(&read).len() <= 31_000, "{}", text(&read).len());
        most = most.max(resident());
    }
    assert_eq!(sink.written(), mebi << 20);
    assert_eq!(command.info().bytes, mebi << 20);
    // Other tests run in the same process.
    let grown = most.saturating_sub(before);
    assert!(grown < 32 * 1024, "memory grew by {grown} KiB");
}

#[tokio::test]
async fn output_of_any_length_leaves_memory_as_it_is() {
    let long = std::env::var_os("OPENVAALA_LONG").is_some();
    let mebi = if long { 1_024 } else { 64 };
    flood(mebi, "yes").await;
    flood(mebi, "tr '\\0' x </dev/zero").await;
}
