//! What other programs and other users do to the files of a server.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use openvaala_protocol::client::ClientError;
use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::server::ReindexParams;
use openvaala_tests::binary;
use openvaala_tests::checker::{When, check};
use openvaala_tests::mounts::{self, ReadOnly};
use openvaala_tests::notice::{is_root, not_run};
use openvaala_tests::running::Running;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::watcher::{TurnEnd, Watcher};
use pretty_assertions::assert_eq;

use crate::support::{
    conversations_on_disk, expect_recovered, fill, item_log, sandbox_with_model, stop,
};

#[tokio::test]
async fn r_45_a_data_directory_that_is_read_only_is_named_and_left_as_it_is() {
    if !mounts::available("r_45: a read-only bind mount") {
        return;
    }
    let (sandbox, _model) = sandbox_with_model();
    let journal = fill(&sandbox, 1).await;
    let mount = ReadOnly::mount(sandbox.data());
    let data = sandbox.data().to_str().unwrap();
    let _ = sandbox
        .run(&["serve"])
        .expect_code(1)
        .expect_stderr(&[data]);
    drop(mount);
    expect_recovered(&sandbox, journal).await;
}

#[test]
fn r_45_a_data_directory_of_somebody_else_is_named_to_a_user_who_may_not_write_it() {
    if !is_root() {
        not_run(
            "r_45: another user's data directory",
            "becoming another user needs root",
        );
        return;
    }
    let sandbox = Sandbox::new();
    let copy = sandbox.root().join("openvaala");
    fs::copy(binary::openvaala(), &copy).unwrap();
    fs::create_dir_all(sandbox.data()).unwrap();
    let owned = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(sandbox.root())
        .status();
    assert!(owned.is_ok_and(|status| status.success()));
    fs::set_permissions(sandbox.data(), fs::Permissions::from_mode(0o500)).unwrap();
    let arguments = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let like = sandbox.command(&["serve"]);
    let mut command = Command::new("setpriv");
    command.args(arguments).arg(&copy).arg("serve");
    command.env_clear().current_dir(sandbox.project());
    command.envs(
        like.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let outcome = Running::start(command).finish();
    let data = sandbox.data().to_str().unwrap();
    let _ = outcome.expect_code(1).expect_stderr(&[data]);
}

#[tokio::test]
async fn r_49_what_another_program_does_to_an_open_log_is_noticed_before_the_next_append() {
    let half = br#"{"seq":99,"time":17"#.as_slice();
    let foreign = b"not a line of this log\n".as_slice();
    for (name, appended) in [("half a line", half), ("a foreign line", foreign)] {
        let (sandbox, _model) = sandbox_with_model();
        let server = sandbox.serve();
        let mut watcher = Watcher::connect(&server.discovery).await;
        let conversation = watcher.create(&sandbox.project()).await;
        watcher.ask(conversation, "one").await;
        let log = item_log(&sandbox, conversation);
        let mut file = OpenOptions::new().append(true).open(&log).unwrap();
        file.write_all(appended).unwrap();
        let turn = watcher.ask(conversation, "two").await;
        assert_eq!(turn.status, TurnStatus::Completed, "{name}");
        stop(server).await;
        // I-4: it is out of the way, and it is kept.
        check(sandbox.data(), &watcher.journal, When::Settled);
        let kept = files_below(sandbox.data())
            .into_iter()
            .filter(|path| *path != log);
        let mut kept = kept.filter_map(|path| fs::read(path).ok());
        let is_kept = kept.any(|bytes| bytes.windows(appended.len()).any(|part| part == appended));
        assert!(is_kept, "I-4: {name} is nowhere to be found");
    }
}

#[tokio::test]
async fn r_49_a_log_that_was_replaced_is_read_anew_and_nothing_goes_to_the_old_file() {
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    watcher.ask(conversation, "one").await;
    let log = item_log(&sandbox, conversation);
    let copy = log.with_extension("copy");
    fs::copy(&log, &copy).unwrap();
    let old = sandbox.root().join("old");
    fs::hard_link(&log, &old).unwrap();
    fs::rename(&copy, &log).unwrap();
    let length = fs::metadata(&old).unwrap().len();
    let turn = watcher.ask(conversation, "two").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    assert_eq!(fs::metadata(&old).unwrap().len(), length);
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
}

#[tokio::test]
async fn r_49_a_log_that_was_shortened_goes_on_where_it_ends_now() {
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    watcher.ask(conversation, "one").await;
    watcher.ask(conversation, "two").await;
    let log = item_log(&sandbox, conversation);
    let text = fs::read_to_string(&log).unwrap();
    let kept = text.lines().count() - 2;
    let shorter: String = text.split_inclusive('\n').take(kept).collect();
    let file = OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(shorter.len() as u64).unwrap();
    // What it had in memory is not what is there now: that is told, if it does not simply go on with what is there.
    let mut other = Watcher::connect(&server.discovery).await;
    match other.try_subscribe(conversation, None).await {
        Err(ClientError::Rpc(error)) => assert!(error.message.contains("cut back"), "{error}"),
        Err(error) => panic!("{error}"),
        Ok(_) => {
            let end = other.try_ask(conversation, "three").await;
            assert_ne!(end.ok(), Some(TurnEnd::Gone));
        }
    }
    stop(server).await;
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    watcher.subscribe(conversation, None).await;
    let turn = watcher.ask(conversation, "four").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    stop(server).await;
    let after = fs::read_to_string(&log).unwrap();
    assert!(after.starts_with(&shorter));
    let numbers = after
        .lines()
        .map(|line| line.split([':', ',']).nth(1).unwrap().parse().unwrap());
    let numbers: Vec<usize> = numbers.collect();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "I-2");
}

#[tokio::test]
async fn r_51_a_conversation_from_another_data_directory_is_listed_and_goes_on() {
    let (other, _model) = sandbox_with_model();
    let mut journal = fill(&other, 2).await;
    let (sandbox, _model) = sandbox_with_model();
    journal
        .conversations
        .extend(fill(&sandbox, 1).await.conversations);
    let copied = other.conversations();
    // One while nothing runs …
    copy_into(&sandbox, &copied[0]);
    let server = sandbox.serve();
    let mut watcher = Watcher::with_journal(&server.discovery, journal).await;
    assert_eq!(watcher.list().await.unwrap().len(), 2);
    // … and one under a running server.
    copy_into(&sandbox, &copied[1]);
    let reindexed = watcher
        .client
        .call::<method::ServerReindex>(ReindexParams {});
    let reindexed = reindexed.await.unwrap();
    assert_eq!(
        (reindexed.conversations, reindexed.damaged),
        (3, Vec::new())
    );
    assert_eq!(watcher.list().await.unwrap().len(), 3);
    for conversation in conversations_on_disk(&sandbox) {
        watcher.subscribe(conversation, None).await;
        assert!(!watcher.items(conversation).await.is_empty());
        let turn = watcher.ask(conversation, "go on").await;
        assert_eq!(turn.status, TurnStatus::Completed);
    }
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
}

#[tokio::test]
async fn r_53_data_of_a_newer_version_is_refused_and_no_byte_of_it_is_touched() {
    let (sandbox, _model) = sandbox_with_model();
    fill(&sandbox, 1).await;
    let format = sandbox.data().join("openvaala.format");
    let text = fs::read_to_string(&format).unwrap();
    let newer = text.replace('1', "2");
    assert_ne!(newer, text);
    fs::write(&format, newer).unwrap();
    let before = contents(sandbox.data());
    let refused = sandbox.run(&["serve"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let said = refused.stderr.to_lowercase();
    assert!(
        said.contains("newer") || said.contains("version"),
        "{refused:?}"
    );
    assert_eq!(contents(sandbox.data()), before);
}

#[tokio::test]
async fn r_54_under_any_umask_nobody_else_may_read_or_write_anything() {
    let (sandbox, _model) = sandbox_with_model();
    let wrapper = ["sh", "-c", r#"umask 000; exec "$0" "$@""#].map(str::to_owned);
    let server = sandbox.serve_under(&wrapper).unwrap();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    watcher.ask(conversation, "look around").await;
    // A torn tail makes a side file.
    let log = item_log(&sandbox, conversation);
    let mut file = OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"{\"seq\":").unwrap();
    watcher.ask(conversation, "one").await;
    watcher.list().await.unwrap();
    let modes_of = |folder: &Path| {
        let all = files_below(folder).into_iter().map(|path| {
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
            (path, mode)
        });
        all.collect::<Vec<_>>()
    };
    for folder in [sandbox.data(), sandbox.state()] {
        let open: Vec<_> = modes_of(folder)
            .into_iter()
            .filter(|(_, mode)| mode & 0o077 != 0)
            .collect();
        assert_eq!(open, []);
    }
    let names: Vec<PathBuf> = files_below(sandbox.data());
    assert!(
        names.iter().any(|path| path.ends_with("metadata.db-wal")),
        "{names:?}"
    );
    stop(server).await;
}

/// Everything below a folder and the folder itself.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = files_below(folder)
        .into_iter()
        .filter(|path| path.is_file());
    files
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

fn copy_into(sandbox: &Sandbox, folder: &Path) {
    let to = sandbox.data().join("conversations");
    let copied = Command::new("cp").arg("-a").arg(folder).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()));
}
