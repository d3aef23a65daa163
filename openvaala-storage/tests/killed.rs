//! A program that is killed while it writes records.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions};
use openvaala_storage::{ListOptions, Namespace, Record, RecordStorage};
use pretty_assertions::assert_eq;
use serde_json::value::to_raw_value;

/// Set in the program that is killed: the database file.
const DATABASE: &str = "OPENVAALA_TEST_KILLED_DATABASE";
const RECORDS: usize = 1_000;

fn open(path: &str) -> SqliteDatabase {
    let namespaces = [Namespace::new("main", ["round"]).search(["title"])];
    SqliteDatabase::open(SqliteOptions::file(path).namespaces(namespaces)).unwrap()
}

fn batch(round: u64) -> Vec<(String, Record)> {
    let data = serde_json::json!({ "round": round.to_string(), "title": format!("Round {round}") });
    let data = to_raw_value(&data).unwrap();
    let record = |n| Record::new(format!("k{n:04}"), round as i64, data.clone());
    (0..RECORDS)
        .map(|n| ("main".to_owned(), record(n)))
        .collect()
}

/// The program that is killed, as a test of its own; it does nothing when it is run as one.
#[tokio::test]
async fn program_that_writes_until_it_is_killed() {
    let Some(path) = env::var_os(DATABASE) else {
        return;
    };
    let records = open(path.to_str().unwrap()).records();
    for round in 1.. {
        records.mset(batch(round)).await.unwrap();
        println!("wrote {round}");
    }
}

/// Kills the program somewhere in the batch after the one that it told of last, and returns the number of that one.
fn write_and_kill(path: &str, rounds: usize) -> u64 {
    let mut program = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::program_that_writes_until_it_is_killed",
            "--nocapture",
        ])
        .env(DATABASE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let told = lines.map_while(|line| line.ok()).filter_map(|line| {
        let (_, round) = line.split_once("wrote ")?;
        round.parse().ok()
    });
    let last = told.take(rounds).last().unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    last
}

/// I-1 for records: what was acknowledged is there; and of what was not, all or nothing.
#[tokio::test]
async fn x_14_a_batch_of_a_thousand_is_whole_or_absent_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let rounds = if env::var_os("OPENVAALA_LONG").is_some() {
        50
    } else {
        4
    };
    for kill in 1..=rounds {
        let path = dir
            .path()
            .join(format!("{kill}.db"))
            .to_str()
            .unwrap()
            .to_owned();
        let told = write_and_kill(&path, kill % 4 + 1);
        let database = open(&path);
        database.check().await.unwrap();
        let all = ListOptions::default().limit(2 * RECORDS);
        let found = database.records().list("main", all.clone()).await.unwrap();
        let round = u64::try_from(found.records[0].updated_at).unwrap();
        assert!(round >= told, "{round} is older than {told}");
        let seen: Vec<_> = found
            .records
            .iter()
            .map(|it| (&*it.key, it.data.get()))
            .collect();
        let expected = batch(round);
        let expected: Vec<_> = expected
            .iter()
            .map(|(_, it)| (&*it.key, it.data.get()))
            .collect();
        assert_eq!(seen, expected);
        for options in [
            all.clone().filter("round", round.to_string()),
            all.contains("title", format!("ROUND {round}")),
        ] {
            let found = database.records().list("main", options).await.unwrap();
            assert_eq!(found.records.len(), RECORDS);
        }
    }
}
