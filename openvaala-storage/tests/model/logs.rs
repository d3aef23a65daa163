//! Logs against a map of lists.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use openvaala_storage::{
    Appended, Entry, Error, Listing, LogStorage, NewEntry, Order, ReadOptions, StreamKey,
};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::back_end::{BackEnd, Files, SqliteInMemory, SqliteOnDisk, StagedInBoth};
use super::runtime;

/// Streams whose paths lie in each other and beside each other, with names that begin alike.
const STREAMS: [(&str, &str); 6] = [
    ("c/ab", "s"),
    ("c/ab", "s.blobs"),
    ("c/ab/deep", "s"),
    ("c/abc", "s"),
    ("c", "ab"),
    ("d", "s"),
];
const PATHS: [&str; 5] = ["c/ab", "c/abc", "c", "d", "c/ab/deep"];

type Streams = BTreeMap<(&'static str, &'static str), Vec<(i64, String)>>;

/// What there is, and what the last call has to answer.
#[derive(Clone, Debug, Default)]
struct Model {
    streams: Streams,
    answer: Option<Answer>,
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Appended(u64, u64),
    Page(Vec<(u64, i64, String)>, Option<u64>),
    NotFound,
    InvalidCursor,
    Existed(bool),
    Last(Option<u64>),
    Listing(Listing),
    /// What no model answers.
    Failed(String),
}

#[derive(Clone, Debug)]
enum Call {
    Append(usize, Vec<(i64, u16)>),
    Read(usize, ReadOptions),
    Info(usize),
    Delete(usize),
    DeletePath(usize),
    List(Option<usize>),
    Reopen,
}

/// A payload whose size varies from a byte to over 64 KiB.
fn payload(n: u16) -> String {
    match n % 200 {
        0 => format!("\"{}\"", "x".repeat(usize::from(n) + 40_000)),
        1 => format!("{{ \"n\" : {n}{n}{n}{n}{n}{n} }}"),
        _ => n.to_string(),
    }
}

fn contains(path: &str, below: &str) -> bool {
    below == path
        || below
            .strip_prefix(path)
            .is_some_and(|it| it.starts_with('/'))
}

impl Model {
    fn page(&self, stream: usize, options: ReadOptions) -> Answer {
        let Some(entries) = self.streams.get(&STREAMS[stream]) else {
            return Answer::NotFound;
        };
        let last = entries.len() as u64;
        let numbered = (1_u64..).zip(entries);
        let mut found: Vec<_> = match (options.order, options.cursor) {
            (Order::Ascending, cursor) if cursor > last => return Answer::InvalidCursor,
            (Order::Descending, cursor) if cursor > last + 1 => return Answer::InvalidCursor,
            (Order::Ascending, cursor) => numbered.filter(|(seq, _)| *seq > cursor).collect(),
            (Order::Descending, cursor) => {
                let before = if cursor == 0 { last + 1 } else { cursor };
                let mut found: Vec<_> = numbered.filter(|(seq, _)| *seq < before).collect();
                found.reverse();
                found
            }
        };
        let more = found.len() > options.limit.max(1);
        found.truncate(options.limit.max(1));
        let next = found.last().map(|(seq, _)| *seq).filter(|_| more);
        let entries = found
            .into_iter()
            .map(|(seq, (time, text))| (seq, *time, text.clone()));
        Answer::Page(entries.collect(), next)
    }

    fn list(&self, path: Option<&str>) -> Listing {
        let mut listing = Listing::default();
        for (at, stream) in self.streams.keys() {
            let rest = match path {
                None => Some(*at),
                Some(path) if *at == path => {
                    listing.streams.push(stream.parse().unwrap());
                    None
                }
                Some(path) => at
                    .strip_prefix(path)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            if let Some(next) = rest.and_then(|rest| rest.split('/').next()) {
                let child = path.map_or_else(|| next.to_owned(), |path| format!("{path}/{next}"));
                listing.paths.push(child.parse().unwrap());
            }
        }
        listing.paths.sort();
        listing.paths.dedup();
        listing.streams.sort();
        listing
    }
}

struct Logs;

impl ReferenceStateMachine for Logs {
    type State = Model;
    type Transition = Call;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::default()).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Call> {
        let longest = model.streams.values().map(Vec::len).max().unwrap_or(0) as u64;
        let stream = 0..STREAMS.len();
        let batch = prop::collection::vec((any::<i64>(), any::<u16>()), 1..60);
        let order = prop_oneof![Just(Order::Ascending), Just(Order::Descending)];
        let options = (order, 0..=longest + 2, 0_usize..80);
        let options = options.prop_map(|(order, cursor, limit)| ReadOptions {
            order,
            cursor,
            limit,
        });
        prop_oneof![
            6 => (stream.clone(), batch).prop_map(|(stream, batch)| Call::Append(stream, batch)),
            8 => (stream.clone(), options).prop_map(|(stream, options)| Call::Read(stream, options)),
            2 => stream.clone().prop_map(Call::Info),
            1 => stream.prop_map(Call::Delete),
            1 => (0..PATHS.len()).prop_map(Call::DeletePath),
            2 => prop::option::of(0..PATHS.len()).prop_map(Call::List),
            1 => Just(Call::Reopen),
        ]
        .boxed()
    }

    fn apply(mut model: Model, call: &Call) -> Model {
        model.answer = match call {
            Call::Append(stream, batch) => {
                let entries = model.streams.entry(STREAMS[*stream]).or_default();
                let first = entries.len() as u64 + 1;
                entries.extend(batch.iter().map(|(time, n)| (*time, payload(*n))));
                Some(Answer::Appended(first, entries.len() as u64))
            }
            Call::Read(stream, options) => Some(model.page(*stream, *options)),
            Call::Info(stream) => {
                let stream = model.streams.get(&STREAMS[*stream]);
                Some(Answer::Last(stream.map(|entries| entries.len() as u64)))
            }
            Call::Delete(stream) => {
                let gone = model.streams.remove(&STREAMS[*stream]);
                Some(Answer::Existed(gone.is_some()))
            }
            Call::DeletePath(path) => {
                let before = model.streams.len();
                model
                    .streams
                    .retain(|(at, _), _| !contains(PATHS[*path], at));
                Some(Answer::Existed(model.streams.len() < before))
            }
            Call::List(path) => Some(Answer::Listing(model.list(path.map(|n| PATHS[n])))),
            Call::Reopen => None,
        };
        model
    }
}

struct Subject {
    runtime: Runtime,
    storage: Option<Box<dyn LogStorage>>,
    dir: TempDir,
}

struct Against<B>(PhantomData<B>);

impl<B: BackEnd<dyn LogStorage>> StateMachineTest for Against<B> {
    type SystemUnderTest = Subject;
    type Reference = Logs;

    fn init_test(_: &Model) -> Subject {
        let dir = tempfile::tempdir().unwrap();
        Subject {
            runtime: runtime(),
            storage: Some(B::open(&dir)),
            dir,
        }
    }

    fn apply(mut subject: Subject, model: &Model, call: Call) -> Subject {
        if let Call::Reopen = call {
            if B::LASTS {
                // Closed before it is opened: it holds a lock.
                subject.storage = None;
                subject.storage = Some(B::open(&subject.dir));
            }
            return subject;
        }
        let storage = subject.storage.as_deref().unwrap();
        let answer = subject.runtime.block_on(ask(storage, call));
        assert_eq!(Some(answer), model.answer);
        subject
    }
}

fn key(stream: usize) -> StreamKey {
    let (path, stream) = STREAMS[stream];
    StreamKey::new(path.parse().unwrap(), stream.parse().unwrap())
}

async fn ask(storage: &dyn LogStorage, call: Call) -> Answer {
    match call {
        Call::Append(stream, batch) => {
            let entry = |(time, n): (i64, u16)| {
                NewEntry::new(time, RawValue::from_string(payload(n)).unwrap())
            };
            let batch = batch.into_iter().map(entry).collect();
            let Appended { first, last, .. } = storage.append(&key(stream), batch).await.unwrap();
            Answer::Appended(first, last)
        }
        Call::Read(stream, options) => match storage.read(&key(stream), options).await {
            Ok(page) => Answer::Page(page.entries.iter().map(short).collect(), page.next),
            Err(Error::NotFound { .. }) => Answer::NotFound,
            Err(Error::InvalidCursor { .. }) => Answer::InvalidCursor,
            Err(error) => Answer::Failed(error.to_string()),
        },
        Call::Info(stream) => {
            let info = storage.info(&key(stream)).await.unwrap();
            Answer::Last(info.map(|info| info.last))
        }
        Call::Delete(stream) => Answer::Existed(storage.delete(&key(stream)).await.unwrap()),
        Call::DeletePath(path) => {
            let path = PATHS[path].parse().unwrap();
            Answer::Existed(storage.delete_path(&path).await.unwrap())
        }
        Call::List(path) => {
            let path = path.map(|n| PATHS[n].parse().unwrap());
            Answer::Listing(storage.list(path.as_ref()).await.unwrap())
        }
        Call::Reopen => unreachable!("it is no question"),
    }
}

fn short(entry: &Entry) -> (u64, i64, String) {
    let text = entry.json().map(|data| data.get().to_owned());
    (entry.seq, entry.time, text.unwrap())
}

prop_state_machine! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn r_26_r_28_r_29_files_behave_as_a_map_of_lists(sequential 1..40 => Against<Files>);

    #[test]
    fn x_17_sqlite_on_disk_behaves_as_a_map_of_lists(sequential 1..40 => Against<SqliteOnDisk>);

    #[test]
    fn x_17_sqlite_in_memory_behaves_as_a_map_of_lists(sequential 1..40 => Against<SqliteInMemory>);

    #[test]
    fn x_17_staged_logs_behave_as_a_map_of_lists(sequential 1..40 => Against<StagedInBoth>);
}
