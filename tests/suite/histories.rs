//! Histories that users of other runtimes have lost.

use std::fs;
use std::path::Path;
use std::process::Command;

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::event::Entry;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::session::{ItemsOrder, ItemsParams};
use openvaala_tests::checker::{When, check};
use openvaala_tests::mounts::{self, ReadOnly, SmallDisk};
use openvaala_tests::watcher::{TurnEnd, Watcher};
use pretty_assertions::assert_eq;

use crate::support::{fill, item_log, listed, sandbox_with_model, stop};

#[tokio::test]
async fn u_001_half_a_record_before_another_on_one_line_costs_only_these_and_is_told() {
    let (sandbox, _model) = sandbox_with_model();
    let journal = fill(&sandbox, 1).await;
    let conversation = *journal.conversations.keys().next().unwrap();
    let log = item_log(&sandbox, conversation);
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() > 3);
    let mut damaged: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    damaged[1] = format!("{}{}", &lines[1][..lines[1].len() / 2], lines[1]);
    fs::write(&log, damaged.join("\n") + "\n").unwrap();

    assert_eq!(listed(&sandbox).await.len(), 1);
    let server = sandbox.serve();
    let watcher = Watcher::connect(&server.discovery).await;
    let params = ItemsParams {
        conversation_id: conversation,
        session_id: None,
        order: ItemsOrder::Ascending,
        cursor: 0,
        limit: Some(1_000),
    };
    let page = watcher
        .client
        .call::<method::SessionItems>(params)
        .await
        .unwrap();
    let numbers = page.items.iter().map(|entry| match entry {
        Entry::Item { seq, .. } => (*seq, true),
        Entry::Damaged { seq, .. } => (*seq, false),
        other => panic!("{other:?}"),
    });
    let expected = (1..=lines.len() as u64).map(|seq| (seq, seq != 2));
    assert_eq!(numbers.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    stop(server).await;
}

#[tokio::test]
async fn u_003_numbers_out_of_order_hide_no_conversation() {
    let (sandbox, _model) = sandbox_with_model();
    let journal = fill(&sandbox, 2).await;
    let before = listed(&sandbox).await;
    let conversation = *journal.conversations.keys().next().unwrap();
    for log in [
        item_log(&sandbox, conversation),
        sandbox
            .data()
            .join(format!("conversations/{conversation}/metadata.jsonl")),
    ] {
        let text = fs::read_to_string(&log).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(1, 2);
        fs::write(&log, lines.join("\n") + "\n").unwrap();
    }
    let after = listed(&sandbox).await;
    let ids = |list: &[openvaala_protocol::conversation::Conversation]| {
        list.iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&after), ids(&before));
}

#[tokio::test]
async fn u_009_an_item_that_names_a_turn_which_is_not_there_hides_no_item() {
    let (sandbox, _model) = sandbox_with_model();
    let journal = fill(&sandbox, 1).await;
    let conversation = *journal.conversations.keys().next().unwrap();
    let log = item_log(&sandbox, conversation);
    let text = fs::read_to_string(&log).unwrap();
    let broken: String = text
        .lines()
        .enumerate()
        .map(|(n, line)| relinked(line, n == 1))
        .collect();
    assert_ne!(broken, text);
    fs::write(&log, &broken).unwrap();
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    assert_eq!(
        watcher.items(conversation).await.len(),
        text.lines().count()
    );
    watcher.subscribe(conversation, None).await;
    let turn = watcher.ask(conversation, "go on").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    stop(server).await;
}

/// A line of a log, with another turn if wanted and a checksum that is right.
fn relinked(line: &str, other_turn: bool) -> String {
    let (head, data) = line.split_once(",\"data\":").unwrap();
    let data = data.strip_suffix('}').unwrap();
    let head = head.split_once(",\"crc\"").unwrap().0;
    let data = if other_turn {
        let (before, rest) = data.split_once("\"turn\":\"").unwrap();
        format!(
            "{before}\"turn\":\"01890000-0000-7000-8000-000000000000{}",
            &rest[36..]
        )
    } else {
        data.to_owned()
    };
    let numbers = head
        .trim_start_matches("{\"seq\":")
        .replace("\"time\":", "");
    let crc = crc32c::crc32c(format!("{numbers},{data}").as_bytes());
    format!("{head},\"crc\":\"{crc:08x}\",\"data\":{data}}}\n")
}

#[tokio::test]
async fn u_011_what_cannot_be_written_is_told_and_no_turn_goes_on_as_if_nothing_were() {
    if !mounts::available("u_011: a conversation's folder that becomes read-only") {
        return;
    }
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    watcher.ask(conversation, "one").await;
    stop(server).await;
    // A fresh server opens the files anew.
    let folder = sandbox.data().join(format!("conversations/{conversation}"));
    let mount = ReadOnly::mount(&folder);
    let server = sandbox.serve();
    let mut again = Watcher::with_journal(&server.discovery, watcher.journal).await;
    let told = match again.try_ask(conversation, "two").await {
        Err(error) => error.to_string(),
        Ok(TurnEnd::NotWritten(message)) => message,
        Ok(other) => panic!("it went on as if nothing were: {other:?}"),
    };
    assert!(told.to_lowercase().contains("read-only"), "{told}");
    drop(mount);
    again.subscribe(conversation, None).await;
    let turn = again.ask(conversation, "three").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    stop(server).await;
    check(sandbox.data(), &again.journal, When::Settled);
}

#[tokio::test]
async fn u_012_a_very_long_first_message_is_listed_and_goes_on() {
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(conversation, &"long ".repeat(1 << 20)).await;
    assert_eq!(turn.status, TurnStatus::Completed);
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
    let listed = sandbox.run(&["list", "--json"]).expect_code(0).stdout;
    assert!(listed.contains(&conversation.to_string()), "{listed}");
    let again = sandbox.run(&["exec", "--last", "and now?"]).expect_code(0);
    assert!(again.stdout.contains("heard: and now?"), "{again:?}");
    sandbox.stop_server();
}

#[test]
fn u_014_a_full_disk_leaves_the_configuration_as_it_was() {
    if !mounts::available("u_014: a full disk under the configuration") {
        return;
    }
    let mut sandbox = openvaala_tests::sandbox::Sandbox::new();
    let disk = SmallDisk::mount(&sandbox.root().join("small"));
    let config = sandbox.root().join("small/config");
    sandbox.set("OPENVAALA_CONFIG_DIR", &config);
    let add = |name: &str| {
        let url = "http://127.0.0.1:9/v1";
        sandbox.run(&["provider", "add", name, "--base-url", url, "--model", "m"])
    };
    let _ = add("first").expect_code(0);
    let before = texts(&config);
    disk.fill_but(0);
    let failed = add("second");
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.to_lowercase().contains("space"), "{failed:?}");
    assert_eq!(texts(&config), before);
    disk.free();
    let _ = add("second").expect_code(0);
    drop(disk);
}

/// The files below a folder and what they say.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let listing = Command::new("find")
        .arg(folder)
        .args(["-type", "f"])
        .output()
        .unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    let mut all: Vec<_> = listing
        .lines()
        .map(|path| (path.to_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn u_015_without_being_asked_nothing_is_ever_deleted_however_old_it_is() {
    let (sandbox, _model) = sandbox_with_model();
    let journal = fill(&sandbox, 3).await;
    let old = Command::new("find")
        .arg(sandbox.data().join("conversations"))
        .args(["-exec", "touch", "-d", "5 years ago", "{}", "+"])
        .status();
    assert!(old.is_ok_and(|status| status.success()));
    for _ in 0..2 {
        assert_eq!(listed(&sandbox).await.len(), 3);
        let _ = sandbox.run(&["reindex"]).expect_code(0);
    }
    check(sandbox.data(), &journal, When::Settled);
}
