//! What a check finds, what a repair does, and what the status says.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use openvaala_core::protocol::id::ConversationId;
use openvaala_core::protocol::rpc::params::check::{CheckResult, FindingKind};
use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::{Error, LogStorage, NewEntry, StreamKey};
use openvaala_core::{
    CheckOptions, Input, ListConversations, NewConversation, Runtime, RuntimeError, check_data_dir,
};
use pretty_assertions::assert_eq;
use serde_json::value::RawValue;

use super::script::{Script, builder, turn_end};

async fn runtime(data: &Path) -> Runtime {
    let (script, _requests) = Script::new(Vec::new());
    builder(script).data_dir(data).build().await.unwrap()
}

async fn used(runtime: &Runtime) -> ConversationId {
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("hello")).await.unwrap();
    turn_end(&mut events).await;
    conversation.id()
}

/// A data directory that nobody has open, with conversations in it.
async fn prepared(count: usize) -> (tempfile::TempDir, Vec<ConversationId>) {
    let data = tempfile::tempdir().unwrap();
    let runtime = runtime(data.path()).await;
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(used(&runtime).await);
    }
    runtime.shutdown().await;
    (data, ids)
}

fn kinds(result: &CheckResult) -> Vec<(FindingKind, bool)> {
    let findings = result.findings.iter();
    findings.map(|it| (it.kind, it.repaired)).collect()
}

async fn beside(data: &Path) -> CheckResult {
    check_data_dir(data, CheckOptions::default()).await.unwrap()
}

async fn repaired(data: &Path) -> CheckResult {
    let runtime = runtime(data).await;
    let result = runtime.check(CheckOptions::default().repair(true)).await;
    runtime.shutdown().await;
    result.unwrap()
}

fn items_file(data: &Path, id: ConversationId) -> PathBuf {
    let entries = fs::read_dir(data.join(format!("conversations/{id}"))).unwrap();
    let mut files = entries.map(|entry| entry.unwrap().path());
    files
        .find(|path| {
            path.extension().is_some_and(|it| it == "jsonl") && !path.ends_with("metadata.jsonl")
        })
        .unwrap()
}

fn all_files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all_files(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[tokio::test]
async fn a_sound_directory_has_no_findings_and_is_not_changed_by_a_check_or_a_repair_of_nothing() {
    let (data, ids) = prepared(3).await;
    let before = all_files(data.path());
    let result = beside(data.path()).await;
    assert_eq!(all_files(data.path()), before);
    assert_eq!((result.conversations, result.streams), (3, 6));
    assert!(
        result.entries >= 6 && result.findings.is_empty(),
        "{result:?}"
    );
    // Its owner finds the same, in the trash as well, and the index agrees.
    let runtime = runtime(data.path()).await;
    runtime.delete_conversation(ids[0]).await.unwrap();
    let owned = runtime
        .check(CheckOptions::default().repair(true))
        .await
        .unwrap();
    assert_eq!((owned.conversations, owned.findings), (3, Vec::new()));
    // So does somebody beside it.
    assert_eq!(kinds(&beside(data.path()).await), []);
    let only = CheckOptions::default().conversation(Some(ids[1]));
    assert_eq!(runtime.check(only).await.unwrap().conversations, 1);
}

#[tokio::test]
async fn an_unknown_conversation_and_a_missing_directory_are_errors() {
    let (data, _) = prepared(1).await;
    let unknown: ConversationId = "01890000-0000-7000-8000-000000000000".parse().unwrap();
    let only = CheckOptions::default().conversation(Some(unknown));
    let error = check_data_dir(data.path(), only).await.unwrap_err();
    assert!(
        matches!(error, RuntimeError::ConversationNotFound { id } if id == unknown),
        "{error}"
    );
    let missing = data.path().join("missing");
    let error = check_data_dir(&missing, CheckOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(error, RuntimeError::Storage(_)), "{error}");
    assert!(!missing.exists());
}

/// I-4: what is cut is kept in a side file, and named with stream, offset and length.
#[tokio::test]
async fn r_05_a_torn_end_is_named_and_a_repair_cuts_it_into_a_side_file_and_the_status_says_so() {
    let (data, ids) = prepared(2).await;
    let file = items_file(data.path(), ids[0]);
    let sound = fs::read(&file).unwrap();
    append(&file, b"{\"seq\":99,\"ti");
    let result = beside(data.path()).await;
    assert_eq!(kinds(&result), [(FindingKind::TornTail, false)]);
    let found = &result.findings[0];
    assert_eq!(
        (found.offset, found.length),
        (Some(sound.len() as u64), Some(13))
    );
    assert_eq!(
        found.place,
        format!(
            "conversations/{}/{}",
            ids[0],
            file.file_stem().unwrap().to_str().unwrap()
        )
    );
    let runtime = runtime(data.path()).await;
    let result = runtime
        .check(CheckOptions::default().repair(true))
        .await
        .unwrap();
    assert_eq!(kinds(&result), [(FindingKind::TornTail, true)]);
    assert_eq!(fs::read(&file).unwrap(), sound);
    assert_eq!(
        fs::read(file.with_extension("torn-1")).unwrap(),
        b"{\"seq\":99,\"ti"
    );
    let degraded = runtime.status().await.unwrap().degraded;
    assert_eq!(degraded.len(), 1, "{degraded:?}");
    for part in [
        found.place.as_str(),
        &format!("13 bytes at {}", sound.len()),
        "torn-1",
    ] {
        assert!(degraded[0].contains(part), "{part} is not in {degraded:?}");
    }
    assert_eq!(
        kinds(&runtime.check(CheckOptions::default()).await.unwrap()),
        []
    );
}

/// I-5: the others are served; the bytes of the damaged one stay.
#[tokio::test]
async fn r_10_a_damaged_middle_is_named_with_its_place_and_never_touched() {
    let (data, ids) = prepared(2).await;
    let file = items_file(data.path(), ids[1]);
    let mut bytes = fs::read(&file).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    bytes[end / 2] ^= 0x20;
    fs::write(&file, &bytes).unwrap();
    let result = repaired(data.path()).await;
    assert_eq!(kinds(&result), [(FindingKind::DamagedEntry, false)]);
    let found = &result.findings[0];
    assert_eq!((found.seq, found.offset), (Some(1), Some(0)));
    assert_eq!(found.length.unwrap() as usize, end + 1);
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[tokio::test]
async fn half_copies_and_directories_of_another_name_are_found() {
    let (data, ids) = prepared(2).await;
    let place = |name: &str| data.path().join("conversations").join(name);
    let half = "01890000-0000-7000-8000-000000000001";
    fs::create_dir(place(half)).unwrap();
    fs::copy(items_file(data.path(), ids[0]), place(half).join("s.jsonl")).unwrap();
    fs::create_dir(place("copy-of-mine")).unwrap();
    let metadata = place(&ids[0].to_string()).join("metadata.jsonl");
    fs::copy(metadata, place("copy-of-mine").join("metadata.jsonl")).unwrap();
    let result = repaired(data.path()).await;
    let expected = [
        (FindingKind::HalfCopy, true),
        (FindingKind::WrongName, false),
    ];
    assert_eq!(kinds(&result), expected);
    assert!(result.findings[1].message.contains(&ids[0].to_string()));
    assert!(
        data.path()
            .join("leftovers")
            .join(half)
            .join("s.jsonl")
            .exists()
    );
    assert!(!place(half).exists() && place("copy-of-mine").exists());
    assert_eq!(
        kinds(&beside(data.path()).await),
        [(FindingKind::WrongName, false)]
    );
}

#[tokio::test]
async fn r_25_an_interrupted_deletion_and_restoration_are_found_beside_and_finished_by_the_owner() {
    let (data, ids) = prepared(2).await;
    let first = runtime(data.path()).await;
    for id in &ids {
        first.delete_conversation(*id).await.unwrap();
    }
    first.restore_conversation(ids[1]).await.unwrap();
    first.shutdown().await;
    drop(first);
    let place = |under: &str, id: ConversationId| data.path().join(under).join(id.to_string());
    fs::rename(place("trash", ids[0]), place("conversations", ids[0])).unwrap();
    fs::create_dir_all(data.path().join("trash")).unwrap();
    fs::rename(place("conversations", ids[1]), place("trash", ids[1])).unwrap();
    let expected = [
        (FindingKind::InterruptedDeletion, false),
        (FindingKind::InterruptedRestoration, false),
    ];
    assert_eq!(kinds(&beside(data.path()).await), expected);
    assert_eq!(kinds(&repaired(data.path()).await), []);
    assert!(place("trash", ids[0]).exists() && place("conversations", ids[1]).exists());
}

/// I-6: an index that says something else than the logs is named, and made anew from them.
#[tokio::test]
async fn x_04_a_stale_index_is_found_and_made_anew() {
    let (data, ids) = prepared(2).await;
    let runtime = runtime(data.path()).await;
    // A conversation that was copied into the running server's directory.
    let (other, copied) = prepared(1).await;
    let name = format!("conversations/{}", copied[0]);
    fs::rename(other.path().join(&name), data.path().join(&name)).unwrap();
    let result = runtime.check(CheckOptions::default()).await.unwrap();
    assert_eq!(kinds(&result), [(FindingKind::StaleIndex, false)]);
    let result = runtime
        .check(CheckOptions::default().repair(true))
        .await
        .unwrap();
    assert_eq!(kinds(&result), [(FindingKind::StaleIndex, true)]);
    let listed = runtime.list(ListConversations::default()).await.unwrap();
    assert_eq!(listed.conversations.len(), ids.len() + 1);
    assert_eq!(
        kinds(&runtime.check(CheckOptions::default()).await.unwrap()),
        []
    );
}

#[tokio::test]
async fn r_53_a_newer_format_of_the_directory_is_refused_and_nothing_is_changed() {
    let (data, _) = prepared(1).await;
    fs::write(data.path().join("openvaala.format"), "999\n").unwrap();
    let before = all_files(data.path());
    let (script, _requests) = Script::new(Vec::new());
    let built = builder(script).data_dir(data.path()).build().await;
    let error = built.unwrap_err();
    let newer = matches!(
        &error,
        RuntimeError::Storage(Error::NewerFormat {
            found: 999,
            supported: 1,
            ..
        })
    );
    assert!(newer, "{error:?}");
    assert_eq!(all_files(data.path()), before);
    // What it knows it reads.
    assert_eq!(kinds(&beside(data.path()).await), []);
}

/// As somebody who is no administrator: for those a mode stops nothing, so the lock file is a directory here.
#[tokio::test]
async fn r_45_a_directory_that_cannot_be_written_is_named_and_can_be_checked() {
    let (data, _) = prepared(1).await;
    let lock = data.path().join("openvaala.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let (script, _requests) = Script::new(Vec::new());
    let built = builder(script).data_dir(data.path()).build().await;
    let error = built.unwrap_err();
    let named = matches!(&error, RuntimeError::Storage(Error::Io { path, .. }) if *path == lock);
    assert!(named, "{error:?}");
    assert_eq!(kinds(&beside(data.path()).await), []);
}

#[tokio::test]
async fn r_53_entries_of_a_newer_format_are_named_and_left() {
    let (data, ids) = prepared(1).await;
    let key = format!("conversations/{}", ids[0]);
    let key = StreamKey::new(key.parse().unwrap(), "metadata".parse().unwrap());
    let entry = r#"{"format":7,"kind":"conversation","id":"x","shape":"new"}"#;
    let entry = NewEntry::new(1, RawValue::from_string(entry.to_owned()).unwrap());
    let storage = FileStorage::open(FileOptions::new(data.path())).unwrap();
    storage.append(&key, vec![entry]).await.unwrap();
    drop(storage);
    let result = repaired(data.path()).await;
    assert_eq!(kinds(&result), [(FindingKind::NewerFormat, false)]);
}

#[tokio::test]
async fn a_conversation_that_is_served_without_its_metadata_is_named_and_left() {
    let (data, ids) = prepared(2).await;
    let place = data.path().join(format!("conversations/{}", ids[0]));
    fs::remove_file(place.join("metadata.jsonl")).unwrap();
    let result = repaired(data.path()).await;
    assert_eq!(kinds(&result), [(FindingKind::Unreadable, false)]);
    assert_eq!(
        result.findings[0].place,
        format!("conversations/{}", ids[0])
    );
    assert!(place.exists());
}
