//! A server with very many conversations: what a start, a page and an open conversation cost, counted and not timed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::conversation::ListParams;
use openvaala_protocol::rpc::params::server::ReindexParams;
use openvaala_tests::fake_model::FakeModel;
use openvaala_tests::notice::is_long;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::strace::{self, Attached, Fault};
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::support::{conversation_in, fill, log_line, sandbox_with_model, stop};

/// How many conversations there are.
const CONVERSATIONS: usize = 5_000;

/// How many of a list are asked for.
const PAGE: usize = 50;

/// How long a call of a held reindex takes at the most, in microseconds: longer than any test waits.
const HELD: u64 = 600_000_000;

#[tokio::test]
async fn u_023_a_start_and_the_first_page_read_no_more_of_many_conversations_than_of_few() {
    if !strace::available("u_023: what a start reads, among 5,000 conversations") {
        return;
    }
    let few = start_and_first_page(PAGE * 2).await;
    let many = start_and_first_page(CONVERSATIONS).await;
    println!(
        "with {} conversations: {few:?}; with {CONVERSATIONS}: {many:?}",
        PAGE * 2
    );
    // A page may look into those that it shows, and into no other.
    assert!(many.logs <= PAGE, "{many:?}");
    assert!(
        many.bytes_of_logs <= few.bytes_of_logs + (64 << 10),
        "{few:?} {many:?}"
    );
    // The check in the background reads the index a fixed number of times: its pages, then its rows.
    let most = 4 * many.index + (1 << 20);
    assert!(many.bytes_of_index <= most, "{few:?} {many:?}");
}

#[tokio::test]
async fn r_41_ten_thousand_conversations_need_few_open_files() {
    let (sandbox, _model) = many(if is_long() { 10_000 } else { CONVERSATIONS }).await;
    let limited = ["prlimit", "--nofile=1024", "--"].map(str::to_owned);
    let server = sandbox.serve_under(&limited).unwrap();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let open = || {
        fs::read_dir(format!("/proc/{}/fd", server.pid()))
            .unwrap()
            .count()
    };
    let mut most = open();
    for folder in sandbox.conversations().iter().take(600) {
        let conversation = conversation_in(folder);
        watcher.subscribe(conversation, None).await;
        assert!(!watcher.items(conversation).await.is_empty());
        most = most.max(open());
    }
    for folder in sandbox.conversations().iter().take(300) {
        let turn = watcher.ask(conversation_in(folder), "go on").await;
        assert_eq!(turn.status, TurnStatus::Completed, "I-7");
        most = most.max(open());
    }
    println!("at most {most} open files");
    assert!(most <= 256, "{most} open files");
    stop(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u_027_while_a_reindex_reads_everything_all_else_is_answered() {
    if !strace::available("u_027: a reindex that takes its time") {
        return;
    }
    let (sandbox, _model) = many(500).await;
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let used = watcher.create(&sandbox.project()).await;
    watcher.ask(used, "before").await;
    // It comes to one in the middle, and goes no further.
    let held = &sandbox.conversations()[250];
    let fault = Fault::delay("openat", HELD).on(&held.join("metadata.jsonl"));
    let attached = Attached::to(server.pid(), &fault, &sandbox.root().join("strace"));
    let other = Watcher::connect(&server.discovery).await;
    let reindex = tokio::spawn(async move {
        let reindexed = other.client.call::<method::ServerReindex>(ReindexParams {});
        reindexed.await.expect("it reindexes")
    });
    for n in 0..20 {
        let turn = watcher.ask(used, &format!("look at {n}")).await;
        assert_eq!(turn.status, TurnStatus::Completed);
        let fresh = watcher.create(&sandbox.project()).await;
        let turn = watcher.ask(fresh, "new").await;
        assert_eq!(turn.status, TurnStatus::Completed);
        let page = first_page(&watcher).await;
        assert_eq!(page.len(), PAGE);
        assert!(!watcher.items(page[PAGE - 1]).await.is_empty());
    }
    assert!(
        !reindex.is_finished(),
        "it was done before anything was asked"
    );
    drop(attached);
    let report = reindex.await.unwrap();
    // Those that came meanwhile are in the index by themselves.
    assert!((501..=521).contains(&report.conversations), "{report:?}");
    assert_eq!(report.damaged, Vec::<String>::new());
    assert_eq!(watcher.list().await.unwrap().len(), 521, "I-6");
    stop(server).await;
}

/// A server's data directory with that many conversations, all in its index.
pub(crate) async fn many(count: usize) -> (Sandbox, FakeModel) {
    let (sandbox, model) = sandbox_with_model();
    fill(&sandbox, 1).await;
    multiply(&sandbox, count - 1);
    let _ = sandbox.run(&["reindex"]).expect_code(0);
    sandbox.stop_server();
    (sandbox, model)
}

/// Copies the only conversation; every id is another one in each copy.
fn multiply(sandbox: &Sandbox, copies: usize) {
    let folders = sandbox.conversations();
    let [original] = folders.as_slice() else {
        panic!("{folders:?}");
    };
    let id = conversation_in(original).to_string();
    // Ids begin with their time, in units of 65 seconds: what was made together begins with one of two of these.
    let begin = u32::from_str_radix(&id[..8], 16).unwrap();
    let files: Vec<_> = fs::read_dir(original)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                fs::read_to_string(path).unwrap(),
            )
        })
        .collect();
    for n in 0..u32::try_from(copies).unwrap() {
        let moved = |text: &str| {
            let other = |k: u32| format!("{:08x}-", begin - 2 * (n + 1) + k);
            text.replace(&format!("{begin:08x}-"), &other(0))
                .replace(&format!("{:08x}-", begin + 1), &other(1))
        };
        let folder = original.parent().unwrap().join(moved(&id));
        fs::create_dir(&folder).unwrap();
        for (name, text) in &files {
            let lines = moved(text);
            let lines: String = lines
                .lines()
                .enumerate()
                .map(|(at, line)| sealed(at + 1, line))
                .collect();
            fs::write(folder.join(moved(name)), lines).unwrap();
        }
    }
}

/// A line of a log with the checksum that it must have.
fn sealed(seq: usize, line: &str) -> String {
    let (head, data) = line.split_once(",\"data\":").unwrap();
    let time = head
        .split(',')
        .nth(1)
        .unwrap()
        .trim_start_matches("\"time\":");
    log_line(seq, time.parse().unwrap(), data.strip_suffix('}').unwrap())
}

/// What was read of the data directory.
#[derive(Debug, Default)]
struct Reads {
    logs: usize,
    bytes_of_logs: u64,
    bytes_of_index: u64,
    /// How long the index is.
    index: u64,
}

/// What a start of a server with that many conversations reads, until it has told the first page of the list.
async fn start_and_first_page(count: usize) -> Reads {
    let (sandbox, _model) = many(count).await;
    let log = sandbox.root().join("strace");
    let trace = [
        "strace",
        "-D",
        "-f",
        "-q",
        "-y",
        "-s",
        "0",
        "-e",
        "trace=openat,read,pread64,readv,preadv",
        "-o",
    ];
    let mut wrapper = trace.map(str::to_owned).to_vec();
    wrapper.push(log.display().to_string());
    let server = sandbox.serve_under(&wrapper).unwrap();
    let watcher = Watcher::connect(&server.discovery).await;
    assert_eq!(first_page(&watcher).await.len(), PAGE);
    stop(server).await;
    let mut reads = reads(&fs::read_to_string(&log).unwrap(), sandbox.data());
    reads.index = fs::metadata(sandbox.data().join("metadata.db"))
        .unwrap()
        .len();
    reads
}

async fn first_page(watcher: &Watcher) -> Vec<ConversationId> {
    let params = ListParams {
        limit: Some(u32::try_from(PAGE).unwrap()),
        ..ListParams::default()
    };
    let page = watcher
        .client
        .call::<method::ConversationList>(params)
        .await;
    page.unwrap()
        .conversations
        .into_iter()
        .map(|one| one.id)
        .collect()
}

fn reads(strace: &str, data: &Path) -> Reads {
    let logs = data.join("conversations").display().to_string();
    let index = data.join("metadata.db").display().to_string();
    let (mut reads, mut opened) = (Reads::default(), BTreeSet::new());
    // A call that another thread cuts in two says its end, and how much it read, in a line of its own.
    let mut begun = BTreeMap::new();
    for line in strace.lines() {
        let (thread, call) = line.split_once(' ').unwrap_or_default();
        let mut call = call.trim_start().to_owned();
        if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread.to_owned(), begin.to_owned());
            continue;
        }
        if call.starts_with("<... ") {
            let Some(begin) = begun.remove(thread) else {
                continue;
            };
            call = begin + &call;
        }
        let result = call.rsplit_once(" = ").map_or("", |(_, result)| result);
        if call.starts_with("openat") {
            if call.contains(".jsonl") && call.contains(&logs) {
                opened.insert(call.split('"').nth(1).unwrap_or_default().to_owned());
            }
            continue;
        }
        let bytes: u64 = result
            .split([' ', '<'])
            .next()
            .and_then(|it| it.parse().ok())
            .unwrap_or(0);
        if call.contains(&logs) {
            reads.bytes_of_logs += bytes;
        } else if call.contains(&index) {
            reads.bytes_of_index += bytes;
        }
    }
    reads.logs = opened.len();
    reads
}
