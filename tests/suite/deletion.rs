//! Deletions, restorations and emptied trash under a server that is killed at any call.

use std::fs;
use std::path::{Path, PathBuf};

use openvaala_protocol::client::{Client, ClientError};
use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::conversation::{DeleteParams, RestoreParams};
use openvaala_protocol::rpc::params::trash::{EmptyParams, ListParams};
use openvaala_tests::checker::{When, check};
use openvaala_tests::journal::Journal;
use openvaala_tests::notice::is_long;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::strace::{self, Attached, Fault};
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use rustix::process::Signal;

use crate::support::{sandbox_with_model, stop};

/// Where no loop over n comes to.
const END: u32 = 300;

/// The calls at which a change of the files can end.
const CALLS: [&str; 6] = [
    "rename,renameat,renameat2",
    "unlink,unlinkat,rmdir",
    "mkdir,mkdirat",
    "openat",
    "write,pwrite64,writev",
    "fdatasync,fsync",
];

/// What is asked for when the kill comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Work {
    Delete,
    Restore,
    Empty,
}

#[tokio::test]
async fn r_24_r_25_a_deletion_of_a_server_that_is_killed_anywhere_is_whole_or_not_begun() {
    at_every_call(Work::Delete).await;
}

#[tokio::test]
async fn r_24_r_25_a_restoration_of_a_server_that_is_killed_anywhere_is_whole_or_not_begun() {
    at_every_call(Work::Restore).await;
}

#[tokio::test]
async fn r_24_r_25_a_trash_whose_emptying_is_killed_anywhere_is_whole_or_empty_and_its_space_is_free()
 {
    at_every_call(Work::Empty).await;
}

async fn at_every_call(work: Work) {
    if !strace::available(&format!("r_25: kills in {work:?}")) {
        return;
    }
    let (sandbox, _model) = sandbox_with_model();
    let mut journal = Journal::default();
    for calls in CALLS {
        let mut n = 1;
        loop {
            let (met, after) = killed_at(&sandbox, journal, work, calls, n).await;
            journal = after;
            if !met {
                break;
            }
            assert!(n < END, "{calls}: there is no end to them");
            n += if is_long() { 1 } else { 1 + n / 4 };
        }
        println!("{work:?}: {calls}: none at {n}");
    }
}

/// Does the work with a new conversation under a kill at the n-th call, and looks what is left; whether the kill came.
async fn killed_at(
    sandbox: &Sandbox,
    journal: Journal,
    work: Work,
    calls: &str,
    n: u32,
) -> (bool, Journal) {
    let server = sandbox.serve();
    let mut watcher = Watcher::with_journal(&server.discovery, journal).await;
    let id = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(id, "look around").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    if work != Work::Delete {
        perform(&watcher.client, Work::Delete, id).await.unwrap();
    }
    let log = sandbox.root().join("strace");
    let attached = Attached::to(server.pid(), &Fault::kill(calls).nth(n), &log);
    let told = perform(&watcher.client, work, id).await;
    drop(attached);
    let ended = tokio::task::spawn_blocking(move || {
        server.signal(Signal::TERM);
        server.finish()
    });
    let met = ended.await.unwrap().code.is_none();
    assert!(met || told.is_ok(), "{work:?} {calls} {n}: {told:?}");
    watcher.drain_to_the_end().await;

    let server = sandbox.serve();
    let mut watcher = Watcher::with_journal(&server.discovery, watcher.journal).await;
    let is_listed = watcher.list().await.unwrap().iter().any(|it| it.id == id);
    let is_trashed = trash(&watcher.client).await.contains(&id);
    let found = format!(
        "{work:?} {calls} {n}: told {told:?}, listed {is_listed}, in the trash {is_trashed}"
    );
    match work {
        Work::Delete => assert!(
            is_trashed != is_listed && (told.is_err() || is_trashed),
            "I-1: {found}"
        ),
        Work::Restore => assert!(
            is_trashed != is_listed && (told.is_err() || is_listed),
            "I-1: {found}"
        ),
        Work::Empty => assert!(!is_listed && (told.is_err() || !is_trashed), "I-1: {found}"),
    }
    if is_listed || is_trashed {
        if is_trashed {
            perform(&watcher.client, Work::Restore, id).await.unwrap();
        }
        watcher.subscribe(id, None).await;
        let turn = watcher.ask(id, "go on").await;
        assert_eq!(turn.status, TurnStatus::Completed, "{found}");
    } else {
        watcher.journal.conversations.remove(&id);
        wait::until("its space to be free", || {
            match named(sandbox.data(), id).as_slice() {
                [] => Ok(()),
                left => Err(format!("{found}: {left:?}")),
            }
        });
    }
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
    (met, watcher.journal)
}

async fn perform(client: &Client, work: Work, id: ConversationId) -> Result<(), ClientError> {
    let conversation_id = id;
    match work {
        Work::Delete => {
            let deleted =
                client.call::<method::ConversationDelete>(DeleteParams { conversation_id });
            assert!(deleted.await?.in_trash);
        }
        Work::Restore => {
            let restored =
                client.call::<method::ConversationRestore>(RestoreParams { conversation_id });
            restored.await?;
        }
        Work::Empty => {
            let params = EmptyParams {
                conversation_ids: vec![id],
                older_than_seconds: None,
            };
            client.call::<method::TrashEmpty>(params).await?;
        }
    }
    Ok(())
}

async fn trash(client: &Client) -> Vec<ConversationId> {
    let listed = client.call::<method::TrashList>(ListParams {}).await;
    let listed = listed.expect("the trash can be listed").conversations;
    listed.into_iter().map(|one| one.id).collect()
}

/// Everything below a folder that has the id in its path.
fn named(folder: &Path, id: ConversationId) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        if path.to_string_lossy().contains(&id.to_string()) {
            found.push(path);
        } else if path.is_dir() {
            found.extend(named(&path, id));
        }
    }
    found
}
