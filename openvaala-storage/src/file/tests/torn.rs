//! Ends of files that are no whole entries.

use std::fs;

use pretty_assertions::assert_eq;

use super::{Bench, all, append, expected, key, lines, open, payload};
use crate::file::{FileOptions, FileStorage, Report};
use crate::log::{LogStorage, StreamKey};

/// Reads, appends and reads again; returns the reports.
async fn recovers(bench: &Bench, key: &StreamKey, kept: u64) -> Vec<Report> {
    let before = bench.bytes(key);
    assert_eq!(all(&bench.storage, key).await, expected(1..=kept), "{key}");
    assert_eq!(bench.bytes(key), before, "reading has changed {key}");
    let appended = append(&bench.storage, key, &payload(kept + 1)).await;
    assert_eq!((appended.first, appended.last), (kept + 1, kept + 1));
    assert_eq!(
        all(&bench.storage, key).await,
        expected(1..=kept + 1),
        "{key}"
    );
    let strict = bench.bytes(key);
    let text = str::from_utf8(&strict).unwrap();
    assert_eq!(
        text.lines().filter(|line| !line.trim().is_empty()).count() as u64,
        kept + 1
    );
    assert!(text.ends_with('\n'));
    let reports = bench.storage.reports().unwrap().into_iter();
    reports.filter(|report| report.key == *key).collect()
}

#[tokio::test]
async fn r_05_r_07_a_cut_at_every_byte_of_the_last_three_entries_costs_only_what_is_torn() {
    let bench = Bench::new();
    let whole = lines(1..=5);
    let ends: Vec<usize> = (0..=5).map(|n| lines(1..=n).len()).collect();
    for cut in ends[2]..=whole.len() {
        let key = key(&format!("c/s{cut}"));
        bench.plant(&key, &whole[..cut]);
        // A line that lacks only its line break is whole.
        let kept = (1..=5).rev().find(|n| ends[*n] <= cut + 1).unwrap();
        let torn = cut.saturating_sub(ends[kept]);
        let reports = recovers(&bench, &key, kept as u64).await;
        if torn == 0 {
            assert_eq!(reports, [], "{cut}");
            continue;
        }
        let side_file = bench.dir.path().join(format!("{key}.torn-1"));
        assert_eq!(fs::read(&side_file).unwrap(), &whole[ends[kept]..cut]);
        let (offset, length) = (ends[kept] as u64, torn as u64);
        assert_eq!(
            reports,
            [Report {
                key,
                offset,
                length,
                side_file
            }]
        );
    }
}

#[tokio::test]
async fn r_08_zeros_after_a_power_cut_are_cut() {
    let bench = Bench::new();
    let half = &lines(4..=4)[..20];
    for zeros in [1, 511, 512, 4096, 65_536] {
        for (name, between) in [("whole", &b""[..]), ("half", half)] {
            let key = key(&format!("c/{name}-{zeros}"));
            bench.plant(&key, &[&lines(1..=3), between, &vec![0; zeros]].concat());
            let reports = recovers(&bench, &key, 3).await;
            let cut: Vec<u64> = reports.iter().map(|report| report.length).collect();
            assert_eq!(cut, [(zeros + between.len()) as u64]);
        }
    }
}

#[tokio::test]
async fn r_07_fused_lines_at_the_end_are_cut_and_kept_aside() {
    let bench = Bench::new();
    let key = key("c/s");
    let fused = [&lines(3..=3)[..30], &lines(3..=3)].concat();
    bench.plant(&key, &[lines(1..=2), fused.clone()].concat());
    let reports = recovers(&bench, &key, 2).await;
    assert_eq!(fs::read(&reports[0].side_file).unwrap(), fused);
}

#[tokio::test]
async fn r_56_files_without_an_entry_are_empty_streams() {
    let bench = Bench::new();
    for (name, bytes, cuts) in [
        ("empty", &b""[..], 0),
        ("blank", b"\n \r\n\n", 0),
        ("blank-unfinished", b"\n   ", 0),
        ("torn", b"{\"seq\":1,\"ti", 1),
        ("text", b"hello\nworld\n", 1),
    ] {
        let key = key(&format!("c/{name}"));
        bench.plant(&key, bytes);
        assert_eq!(bench.storage.info(&key).await.unwrap().unwrap().last, 0);
        assert_eq!(recovers(&bench, &key, 0).await.len(), cuts, "{name}");
    }
}

#[tokio::test]
async fn r_39_windows_line_ends_blank_lines_and_a_byte_order_mark_are_tolerated() {
    let bench = Bench::new();
    let text = String::from_utf8(lines(1..=3)).unwrap();
    let key = key("c/s");
    let odd = format!("\u{feff}{}\r\n\r\n", text.replace('\n', "\r\n\n"));
    bench.plant(&key, odd.as_bytes());
    assert_eq!(recovers(&bench, &key, 3).await, []);
    assert!(bench.bytes(&key).starts_with(odd.as_bytes()));
}

#[tokio::test]
async fn a_second_tear_gets_a_side_file_of_its_own() {
    let bench = Bench::new();
    let key = key("c/s");
    for n in 1..=2 {
        let mut bytes = lines(1..=1);
        bytes.extend_from_slice(b"torn");
        bench.plant(&key, &bytes);
        append(&bench.storage, &key, &payload(2)).await;
        assert!(bench.dir.path().join(format!("c/s.torn-{n}")).exists());
    }
    assert!(bench.storage.delete(&key).await.unwrap());
    let left: Vec<_> = fs::read_dir(bench.dir.path())
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert!(!left.contains(&"c".into()), "{left:?}");
}

#[tokio::test]
async fn reading_only_serves_the_whole_entries_and_changes_nothing() {
    let bench = Bench::new();
    let key = key("c/s");
    let bytes = [lines(1..=2), b"{\"seq\":3".to_vec()].concat();
    bench.plant(&key, &bytes);
    let reader = FileStorage::open_read_only(FileOptions::new(bench.dir.path())).unwrap();
    assert_eq!(all(&reader, &key).await, expected(1..=2));
    assert_eq!(bench.bytes(&key), bytes);
    // What the owner appends is seen.
    append(&bench.storage, &key, &payload(3)).await;
    assert_eq!(all(&reader, &key).await, expected(1..=3));
}

#[tokio::test]
async fn a_sound_stream_is_not_written_by_opening_or_reading() {
    let bench = Bench::new();
    let key = key("c/s");
    bench.plant(&key, &lines(1..=3));
    let before = fs::metadata(bench.path(&key)).unwrap().modified().unwrap();
    drop(bench.storage);
    let storage = open(bench.dir.path());
    assert_eq!(all(&storage, &key).await, expected(1..=3));
    assert_eq!(
        fs::metadata(bench.dir.path().join("c/s.jsonl"))
            .unwrap()
            .modified()
            .unwrap(),
        before
    );
    assert_eq!(storage.reports().unwrap(), []);
}
