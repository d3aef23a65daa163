//! The benchmark of the storage at a tiny size: what it prints, and that it looks at what it measures.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use openvaala_tests::binary;
use pretty_assertions::{assert_eq, assert_ne};
use tempfile::TempDir;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_openvaala-bench"));
    command.args(arguments).output().unwrap()
}

/// Runs a command that has to succeed and gives what it prints.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = bench(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that has to fail and gives what it says.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = bench(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Runs one measure once at its smallest size and gives the names of its rows, each of which has figures.
#[track_caller]
fn measures(name: &str) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().to_str().unwrap();
    let binary = binary::openvaala().to_str().unwrap();
    let text = printed(&[
        name, "--dir", dir, "--scale", "0.00001", "--rounds", "1", "--binary", binary,
    ]);
    let left: Vec<_> = fs::read_dir(dir).unwrap().collect();
    assert!(left.is_empty(), "{name} left {left:?}");
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("| measure | unit | value | bar | floor | x floor |")
    );
    assert_eq!(lines.next(), Some("| --- | --- | --- | --- | --- | --- |"));
    let rows: Vec<Vec<&str>> = lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let last = lines.next().unwrap();
    assert!(
        last.starts_with("load ") && last.contains("rounds: 1"),
        "{last}"
    );
    rows.iter().map(|row| name_of(row)).collect()
}

/// The name in a row of six cells, whose value is a number and whose bar is empty at another size than its own.
#[track_caller]
fn name_of(row: &[&str]) -> String {
    let [name, _, value, "", floor, ratio] = row else {
        panic!("{row:?} is no row without a bar");
    };
    let value: f64 = value.parse().unwrap();
    assert!(value.is_finite() && value >= 0.0, "{row:?}");
    for cell in [floor, ratio] {
        assert!(cell.is_empty() || cell.parse::<f64>().is_ok(), "{row:?}");
    }
    (*name).to_owned()
}

#[test]
fn the_bench_measures_appends_beside_a_bare_write() {
    assert_eq!(
        measures("append"),
        [
            "rounds with a steady floor, which count",
            "floor: write of a line of 1,088 bytes and its fdatasync",
            "the same, p99",
            "the same again, of the floor's rate",
            "the same on a thread of its own, of the floor's rate",
            "serial append of 1 KiB",
            "the same, of the floor's rate",
            "the same with flushing left out",
            "64 appenders on one stream",
            "64 appenders on one stream, p99",
            "64 appenders on 64 streams",
            "64 appenders on 64 streams, p99",
        ]
    );
}

#[test]
fn the_bench_measures_long_histories() {
    assert_eq!(
        measures("open"),
        [
            "open a log of 700 MB, last page shown",
            "the same, memory growth",
            "without an offset index, last page shown",
            "the same, until a page in the middle is quick",
            "open a log of 700 MB with 5,000 turns",
            "the same, memory growth",
        ]
    );
    assert_eq!(
        measures("entries"),
        [
            "open a conversation of 1,000,000 items",
            "the same, last page",
            "the same, first page",
            "the same, memory growth",
            "page of 100 anywhere, median",
            "page of 100 anywhere, p99",
        ]
    );
}

#[test]
fn the_bench_measures_many_conversations() {
    assert_eq!(
        measures("list"),
        [
            "list 50 of 50,000, no filter, p99",
            "list 50 of 50,000, rare text, p99",
            "list 50 of 50,000, absent text, p99",
            "list 50 of 50,000, common text, p99",
            "list 50 of 50,000, two letters, p99",
            "server ready with 50,000 conversations, fresh index",
            "runtime built, all directories checked",
        ]
    );
    assert_eq!(
        measures("reindex"),
        [
            "reindex of 10,000 conversations, 1,000,000 items, 2 GiB",
            "the same, memory growth",
            "a list, or a conversation opened and read, beside reindexing, p99",
            "the same, the longest",
        ]
    );
    assert_eq!(
        measures("many"),
        [
            "server ready with 10,000 conversations of 5 sessions",
            "the same, open files",
            "the same after a visit to 400 of them",
        ]
    );
}

#[test]
fn the_bench_measures_one_large_entry() {
    assert_eq!(
        measures("large"),
        [
            "one entry of 100 MiB written, peak memory",
            "the same, time",
            "one entry of 100 MiB read, peak memory",
            "the same, time",
            "pages of its neighbours, peak memory",
        ]
    );
}

#[test]
fn a_history_that_is_not_what_was_written_gives_no_figure() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().to_str().unwrap();
    let arguments = [
        "entries", "--dir", dir, "--scale", "0.00001", "--rounds", "1", "--keep",
    ];
    let first = printed(&arguments);
    assert!(first.contains("page of 100 anywhere, p99"), "{first}");
    let log = logs(folder.path()).into_keys();
    let log = log.max_by_key(|path| fs::metadata(folder.path().join(path)).unwrap().len());
    let log = folder.path().join(log.unwrap());
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).unwrap();
    let output = bench(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("an entry is no item: Damaged"), "{said}");
}

#[test]
fn the_same_plan_gives_the_same_directory_and_another_seed_another_one() {
    let folder = TempDir::new().unwrap();
    let generate = |name: &str, seed: &str| {
        let dir = folder.path().join(name);
        let text = printed(&[
            "generate",
            dir.to_str().unwrap(),
            "--conversations",
            "7",
            "--items",
            "500",
            "--sessions",
            "3",
            "--turns",
            "2",
            "--item-bytes",
            "700",
            "--seed",
            seed,
        ]);
        assert_eq!(text, "");
        logs(&dir)
    };
    let first = generate("first", "5");
    let items: usize = first
        .iter()
        .filter(|(path, _)| !path.ends_with("metadata.jsonl"))
        .map(|(_, text)| text.lines().count())
        .sum();
    // A conversation has a log of states and one of items for each of its sessions.
    assert_eq!((first.len(), items), (7 * 4, 500));
    assert_eq!(generate("second", "5"), first);
    assert_ne!(generate("third", "6"), first);
}

#[test]
fn lines_have_the_length_that_was_asked_for_on_average() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("data");
    let _ = printed(&[
        "generate",
        dir.to_str().unwrap(),
        "--conversations",
        "1",
        "--items",
        "2000",
        "--item-bytes",
        "2000",
    ]);
    let items = logs(&dir).into_iter();
    let bytes: usize = items
        .filter(|(path, _)| !path.ends_with("metadata.jsonl"))
        .map(|(_, text)| text.len())
        .sum();
    let mean = bytes / 2_000;
    assert!((1_800..2_200).contains(&mean), "{mean} bytes a line");
}

#[test]
fn the_bench_refuses_what_it_does_not_know_and_names_it() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().to_str().unwrap();
    for (arguments, said) in [
        (vec!["speed"], "there is no \"speed\""),
        (
            vec!["storage", "--only", "append,disk"],
            "there is no measure \"disk\"",
        ),
        (
            vec!["append", "--rounds", "0"],
            "--rounds must be at least 1",
        ),
        (vec!["append", "--rounds", "few"], "--rounds few"),
        (vec!["append", "--quick", "1"], "--quick is not known here"),
        (vec!["generate"], "DIR is missing"),
        (
            vec!["generate", dir, "--items", "5"],
            "--conversations is missing",
        ),
        (
            vec!["generate", dir, "--conversations", "5", "--items", "4"],
            "one item a session",
        ),
        (
            vec![
                "list", "--dir", dir, "--scale", "0.00001", "--binary", "/nowhere",
            ],
            "there is no /nowhere",
        ),
    ] {
        let message = refused(&arguments);
        assert!(message.contains(said), "{arguments:?}: {message}");
    }
}

#[test]
fn generating_into_a_directory_with_conversations_leaves_it_alone() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().to_str().unwrap();
    let arguments = ["generate", dir, "--conversations", "2", "--items", "9"];
    assert_eq!(printed(&arguments), "");
    let before = logs(folder.path());
    let message = refused(&arguments);
    assert!(message.contains("holds conversations already"), "{message}");
    assert_eq!(logs(folder.path()), before);
}

/// All logs below a folder with their text, by path.
fn logs(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(current).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "jsonl") {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                found.insert(name.to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}
