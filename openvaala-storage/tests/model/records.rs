//! Records against a sorted map.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use openvaala_storage::{ListOptions, Order, Record, RecordStorage, SortBy};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use serde_json::json;
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::back_end::{BackEnd, SqliteInMemory, SqliteOnDisk, StagedInBoth};
use super::runtime;

const NAMESPACES: [&str; 2] = ["main", "other"];
const KEYS: [&str; 9] = ["", "%", "A", "a", "a\0b", "a'b", "ä", "b", "😀"];
const STATUSES: [&str; 4] = ["running", "run%", "", "Running"];

/// Namespace, key: time and payload.
type Rows = BTreeMap<(&'static str, &'static str), (i64, String)>;

/// What there is, and what the last call has to answer.
#[derive(Clone, Debug, Default)]
struct Model {
    rows: Rows,
    answer: Option<Answer>,
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Done,
    Records(Vec<Option<Row>>),
    Deleted(u64),
    Listed(Vec<Row>),
}

type Row = (String, i64, String);

#[derive(Clone, Debug)]
struct NewRow {
    namespace: usize,
    key: usize,
    time: i64,
    status: Option<usize>,
}

#[derive(Clone, Debug)]
struct Listing {
    namespace: usize,
    from: Option<usize>,
    to: Option<usize>,
    by_time: bool,
    down: bool,
    status: Option<usize>,
    limit: usize,
}

#[derive(Clone, Debug)]
enum Call {
    Set(NewRow),
    MSet(Vec<NewRow>),
    MGet(usize, Vec<usize>),
    Delete(usize, usize),
    DeleteRange(usize, Option<usize>, Option<usize>),
    List(Listing),
    Reopen,
}

impl NewRow {
    fn data(&self) -> String {
        match self.status {
            Some(status) => json!({"status": STATUSES[status], "n": self.time}).to_string(),
            None => format!("[ {} ]", self.time),
        }
    }

    fn record(&self) -> Record {
        let data = RawValue::from_string(self.data()).unwrap();
        Record::new(KEYS[self.key], self.time, data)
    }
}

fn in_range(key: &str, from: Option<usize>, to: Option<usize>) -> bool {
    from.is_none_or(|from| KEYS[from] <= key) && to.is_none_or(|to| key < KEYS[to])
}

impl Model {
    fn take(&mut self, row: &NewRow) {
        let place = (NAMESPACES[row.namespace], KEYS[row.key]);
        self.rows.insert(place, (row.time, row.data()));
    }

    fn get(&self, namespace: usize, key: usize) -> Option<Row> {
        let (time, data) = self.rows.get(&(NAMESPACES[namespace], KEYS[key]))?;
        Some((KEYS[key].to_owned(), *time, data.clone()))
    }

    fn list(&self, listing: &Listing) -> Vec<Row> {
        let wanted = listing.status.map(|n| json!(STATUSES[n]));
        let mut found: Vec<Row> = self
            .rows
            .iter()
            .filter(|((namespace, _), _)| *namespace == NAMESPACES[listing.namespace])
            .filter(|((_, key), _)| in_range(key, listing.from, listing.to))
            .filter(|(_, (_, data))| {
                let data: serde_json::Value = serde_json::from_str(data).unwrap();
                wanted
                    .as_ref()
                    .is_none_or(|wanted| data.get("status") == Some(wanted))
            })
            .map(|((_, key), (time, data))| ((*key).to_owned(), *time, data.clone()))
            .collect();
        found.sort_by(|one, two| {
            let by_time = match listing.by_time {
                true => one.1.cmp(&two.1),
                false => Ordering::Equal,
            };
            by_time.then_with(|| one.0.cmp(&two.0))
        });
        if listing.down {
            found.reverse();
        }
        found
    }
}

struct Records;

impl ReferenceStateMachine for Records {
    type State = Model;
    type Transition = Call;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::default()).boxed()
    }

    fn transitions(_: &Model) -> BoxedStrategy<Call> {
        let namespace = 0..NAMESPACES.len();
        let key = 0..KEYS.len();
        let bound = prop::option::of(key.clone());
        let status = prop::option::of(0..STATUSES.len());
        let row = (namespace.clone(), key.clone(), -2_i64..3, status.clone());
        let row = row.prop_map(|(namespace, key, time, status)| NewRow {
            namespace,
            key,
            time,
            status,
        });
        // Only the namespace `main` declares a field.
        let listing = (
            namespace.clone(),
            bound.clone(),
            bound.clone(),
            any::<(bool, bool)>(),
        );
        let listing = (listing, status, 0_usize..5).prop_map(|(place, status, limit)| {
            let (namespace, from, to, (by_time, down)) = place;
            Listing {
                namespace,
                from,
                to,
                by_time,
                down,
                status: status.filter(|_| namespace == 0),
                limit,
            }
        });
        prop_oneof![
            4 => row.clone().prop_map(Call::Set),
            3 => prop::collection::vec(row, 0..12).prop_map(Call::MSet),
            2 => (namespace.clone(), prop::collection::vec(key.clone(), 0..5))
                .prop_map(|(namespace, keys)| Call::MGet(namespace, keys)),
            1 => (namespace.clone(), key).prop_map(|(namespace, key)| Call::Delete(namespace, key)),
            1 => (namespace, bound.clone(), bound)
                .prop_map(|(namespace, from, to)| Call::DeleteRange(namespace, from, to)),
            8 => listing.prop_map(Call::List),
            1 => Just(Call::Reopen),
        ]
        .boxed()
    }

    fn apply(mut model: Model, call: &Call) -> Model {
        model.answer = Some(match call {
            Call::Set(row) => {
                model.take(row);
                Answer::Done
            }
            Call::MSet(rows) => {
                rows.iter().for_each(|row| model.take(row));
                Answer::Done
            }
            Call::MGet(namespace, keys) => {
                let found = keys.iter().map(|key| model.get(*namespace, *key));
                Answer::Records(found.collect())
            }
            Call::Delete(namespace, key) => {
                let gone = model.rows.remove(&(NAMESPACES[*namespace], KEYS[*key]));
                Answer::Deleted(u64::from(gone.is_some()))
            }
            Call::DeleteRange(namespace, from, to) => {
                let before = model.rows.len();
                model.rows.retain(|(at, key), _| {
                    *at != NAMESPACES[*namespace] || !in_range(key, *from, *to)
                });
                Answer::Deleted((before - model.rows.len()) as u64)
            }
            Call::List(listing) => Answer::Listed(model.list(listing)),
            Call::Reopen => Answer::Done,
        });
        model
    }
}

struct Subject {
    runtime: Runtime,
    storage: Option<Box<dyn RecordStorage>>,
    dir: TempDir,
}

struct Against<B>(PhantomData<B>);

impl<B: BackEnd<dyn RecordStorage>> StateMachineTest for Against<B> {
    type SystemUnderTest = Subject;
    type Reference = Records;

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

async fn ask(storage: &dyn RecordStorage, call: Call) -> Answer {
    match call {
        Call::Set(row) => {
            let namespace = NAMESPACES[row.namespace];
            storage.set(namespace, row.record()).await.unwrap();
            Answer::Done
        }
        Call::MSet(rows) => {
            let records = rows
                .iter()
                .map(|row| (NAMESPACES[row.namespace].to_owned(), row.record()));
            storage.mset(records.collect()).await.unwrap();
            Answer::Done
        }
        Call::MGet(namespace, keys) => {
            let keys: Vec<String> = keys.iter().map(|key| KEYS[*key].to_owned()).collect();
            let found = storage.mget(NAMESPACES[namespace], &keys).await.unwrap();
            Answer::Records(found.into_iter().map(|it| it.map(row)).collect())
        }
        Call::Delete(namespace, key) => {
            let deleted = storage.delete(NAMESPACES[namespace], KEYS[key]).await;
            Answer::Deleted(u64::from(deleted.unwrap()))
        }
        Call::DeleteRange(namespace, from, to) => {
            let (from, to) = (from.map(|n| KEYS[n]), to.map(|n| KEYS[n]));
            let deleted = storage.delete_range(NAMESPACES[namespace], from, to).await;
            Answer::Deleted(deleted.unwrap())
        }
        Call::List(listing) => Answer::Listed(list(storage, listing).await),
        Call::Reopen => unreachable!("it is no question"),
    }
}

/// Reads a listing page by page.
async fn list(storage: &dyn RecordStorage, listing: Listing) -> Vec<Row> {
    let bound = |n: Option<usize>| n.map(|n| KEYS[n].to_owned());
    let mut options = ListOptions::default()
        .range(bound(listing.from), bound(listing.to))
        .limit(listing.limit);
    if listing.by_time {
        options = options.sort(SortBy::UpdatedAt);
    }
    if listing.down {
        options = options.order(Order::Descending);
    }
    if let Some(status) = listing.status {
        options = options.filter("status", STATUSES[status]);
    }
    let mut rows = Vec::new();
    loop {
        let page = storage
            .list(NAMESPACES[listing.namespace], options.clone())
            .await
            .unwrap();
        assert!(page.records.len() <= listing.limit.max(1));
        rows.extend(page.records.into_iter().map(row));
        if page.next.is_none() {
            return rows;
        }
        options.cursor = page.next;
    }
}

fn row(record: Record) -> Row {
    (record.key, record.updated_at, record.data.get().to_owned())
}

prop_state_machine! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn x_11_x_13_x_15_records_on_disk_behave_as_a_sorted_map(sequential 1..40 => Against<SqliteOnDisk>);

    #[test]
    fn x_11_x_13_x_15_records_in_memory_behave_as_a_sorted_map(sequential 1..40 => Against<SqliteInMemory>);

    #[test]
    fn x_11_x_13_x_15_staged_records_behave_as_a_sorted_map(sequential 1..40 => Against<StagedInBoth>);
}
