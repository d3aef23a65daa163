//! Big entries, long torn ends and many streams: what they may cost. Each runs in a process of its own, whose memory and files are its own.

use std::env;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::Command;

use futures::future::join_all;
use pretty_assertions::assert_eq;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::value::RawValue;

use super::{Bench, all, append, expected, key, lines, new_entry, payload};
use crate::log::{LogStorage, NewEntry, ReadOptions};

const CHILD: &str = "OPENVAALA_TEST_CHILD";
const MIB: usize = 1024 * 1024;

/// Runs a test of this file alone in a process; returns whether this is that process.
fn alone(name: &str) -> bool {
    if env::var_os(CHILD).is_some() {
        return true;
    }
    let name = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", &name, "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
    false
}

fn is_long() -> bool {
    env::var_os("OPENVAALA_LONG").is_some()
}

/// A size that is big: 100 MiB with `OPENVAALA_LONG` set.
fn big() -> usize {
    if is_long() { 100 * MIB } else { 16 * MIB }
}

/// Returns by how much the memory has grown at most while something ran, in bytes.
async fn peak(work: impl Future<Output = ()>) -> usize {
    let status = |name: &str| {
        let text = fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib * 1024
    };
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    work.await;
    status("VmHWM:").saturating_sub(before)
}

#[tokio::test]
async fn r_35_a_big_entry_costs_at_most_three_times_its_size() {
    if !alone("r_35_a_big_entry_costs_at_most_three_times_its_size") {
        return;
    }
    let size = big();
    let bench = Bench::new();
    let key = key("c/s");
    append(&bench.storage, &key, "1").await;
    let appended = peak(async {
        let text = format!("\"{}\"", "x".repeat(size));
        let data = RawValue::from_string(text).unwrap();
        let entry = NewEntry::new(0, data);
        bench.storage.append(&key, vec![entry]).await.unwrap();
    });
    let appended = appended.await;
    assert!(appended <= 3 * size + 4 * MIB, "{appended} to append");
    append(&bench.storage, &key, "3").await;
    for options in [
        ReadOptions::ascending().cursor(1).limit(1),
        ReadOptions::descending().cursor(3).limit(1),
    ] {
        let read = peak(async {
            let page = bench.storage.read(&key, options).await.unwrap();
            let text = page.entries[0].json().unwrap().get();
            assert_eq!(text.len(), size + 2);
            assert!(text[1..=size].bytes().all(|byte| byte == b'x'));
        });
        let read = read.await;
        assert!(read <= 3 * size + 4 * MIB, "{read} to read");
    }
}

#[tokio::test]
async fn r_35_pages_beside_a_big_entry_do_not_hold_it() {
    if !alone("r_35_pages_beside_a_big_entry_do_not_hold_it") {
        return;
    }
    let bench = Bench::new();
    let key = key("c/s");
    for text in ["1", &format!("\"{}\"", "x".repeat(big())), "3", "4"] {
        append(&bench.storage, &key, text).await;
    }
    let dir = bench.dir;
    drop(bench.storage);
    let bench = Bench {
        storage: super::open(dir.path()),
        dir,
    };
    let grown = peak(async {
        let after = ReadOptions::descending().limit(2);
        let page = bench.storage.read(&key, after).await.unwrap();
        let found: Vec<u64> = page.entries.iter().map(|entry| entry.seq).collect();
        assert_eq!(found, [4, 3]);
        let before = ReadOptions::ascending().limit(1);
        let page = bench.storage.read(&key, before).await.unwrap();
        assert_eq!(page.entries[0].seq, 1);
        // What was learned at the first pages leads past the big one.
        let again = ReadOptions::descending().cursor(2).limit(1);
        let page = bench.storage.read(&key, again).await.unwrap();
        assert_eq!(page.entries[0].seq, 1);
    });
    let grown = grown.await;
    assert!(grown <= 8 * MIB, "{grown}");
}

#[tokio::test]
async fn r_05_r_08_a_long_torn_end_is_cut_with_the_memory_of_a_block() {
    if !alone("r_05_r_08_a_long_torn_end_is_cut_with_the_memory_of_a_block") {
        return;
    }
    let bench = Bench::new();
    let head = &lines(4..=4)[..40];
    for (name, begun) in [("zeros", &b""[..]), ("half", head)] {
        let key = key(&format!("c/{name}"));
        bench.plant(&key, &[&lines(1..=3), begun].concat());
        let path = bench.path(&key);
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let end = file.metadata().unwrap().len();
        let torn = big() as u64;
        file.set_len(end + torn).unwrap();
        file.write_all_at(b"xyz", end + torn / 2).unwrap();
        let grown = peak(async {
            assert_eq!(all(&bench.storage, &key).await, expected(1..=3));
            assert_eq!(append(&bench.storage, &key, &payload(4)).await.first, 4);
            assert_eq!(all(&bench.storage, &key).await, expected(1..=4));
        });
        let grown = grown.await;
        assert!(grown <= 8 * MIB, "{grown}");
        let reports = bench.storage.reports().unwrap();
        let report = reports.iter().find(|report| report.key == key).unwrap();
        assert_eq!(report.length, torn + begun.len() as u64);
        let kept = fs::metadata(&report.side_file).unwrap().len();
        assert_eq!(kept, report.length);
    }
}

#[tokio::test]
async fn r_41_many_streams_need_few_open_files() {
    if !alone("r_41_many_streams_need_few_open_files") {
        return;
    }
    let (limit, open, conversations) = if is_long() {
        (1024, 192, 10_000)
    } else {
        (276, 192, 80)
    };
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        },
    )
    .unwrap();
    let bench = Bench::new();
    let keys = |n: usize| (0..5).map(move |stream| key(&format!("c{n}/s{stream}")));
    let mut most = 0;
    for first in (0..conversations).step_by(20) {
        let streams: Vec<_> = (first..first + 20).flat_map(keys).collect();
        let appends = streams
            .iter()
            .map(|key| bench.storage.append(key, vec![new_entry("1")]));
        for appended in join_all(appends).await {
            assert_eq!(appended.unwrap().last, 1);
        }
        let reads = streams.iter().map(|key| all(&bench.storage, key));
        for found in join_all(reads).await {
            assert_eq!(found, [(1, "1".to_owned())]);
        }
        most = most.max(fs::read_dir("/proc/self/fd").unwrap().count());
    }
    assert!(most <= open + 40, "{most} open files");
}
