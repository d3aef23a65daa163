//! Listings under any conditions against a plain filter, and the ways in which they are read.

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::SPACE;
use crate::log::Order;
use crate::record::{ListOptions, Namespace, Record, RecordStorage, SortBy};
use crate::sqlite::list::{Cursor, Lead, Query};
use crate::sqlite::{SqliteDatabase, SqliteOptions, SqliteRecordStorage};

const FIELDS: [&str; 2] = ["status", "roots"];
const ROOTS: [&str; 4] = ["/a", "/A", "%", "/a'b"];
const PIECES: [&str; 12] = [
    "Fix ", "fix", "Ä", "ä", "%", "_", "'", "\"", "\0", "😀", "ΟΣ", "İ",
];

#[derive(Clone, Debug)]
struct Row {
    time: i64,
    roots: Vec<&'static str>,
    title: Option<String>,
}

impl Row {
    fn record(&self, key: u8) -> Record {
        let mut data = json!({ "roots": self.roots, "title": self.title, "status": "new" });
        if let [only] = *self.roots {
            data["roots"] = json!(only);
        }
        Record::new(key.to_string(), self.time, to_raw_value(&data).unwrap())
    }
}

#[derive(Clone, Debug)]
struct Asked {
    roots: Vec<&'static str>,
    texts: Vec<String>,
    since: Option<i64>,
    limit: usize,
}

impl Asked {
    fn options(&self) -> ListOptions {
        let options = ListOptions::default()
            .updated_from(self.since)
            .limit(self.limit);
        let roots = self.roots.iter();
        let options = roots.fold(options, |options, root| options.filter("roots", *root));
        let texts = self.texts.iter();
        texts.fold(options, |options, text| options.contains("title", text))
    }

    fn accepts(&self, row: &Row) -> bool {
        let has = |text: &String| {
            let title = row.title.as_ref();
            title.is_some_and(|title| title.to_lowercase().contains(&text.to_lowercase()))
        };
        self.roots.iter().all(|root| row.roots.contains(root))
            && self.texts.iter().all(has)
            && self.since.is_none_or(|since| since <= row.time)
    }
}

fn text(pieces: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let text = prop::collection::vec(prop::sample::select(&PIECES[..]), pieces);
    text.prop_map(|pieces| pieces.concat())
}

fn changes() -> impl Strategy<Value = Vec<(u8, Option<Row>)>> {
    let roots = prop::sample::subsequence(&ROOTS[..], 0..3);
    let row = (0_i64..6, roots, prop::option::weighted(0.9, text(0..6)));
    let row = row.prop_map(|(time, roots, title)| Row { time, roots, title });
    prop::collection::vec((0_u8..25, prop::option::weighted(0.8, row)), 0..60)
}

fn asked() -> impl Strategy<Value = Asked> {
    let roots = prop::sample::subsequence(&ROOTS[..], 0..3);
    let texts = prop::collection::vec(text(0..3), 0..3);
    let rest = (prop::option::of(0_i64..7), 1_usize..12);
    (roots, texts, rest).prop_map(|(roots, texts, (since, limit))| Asked {
        roots,
        texts,
        since,
        limit,
    })
}

fn in_memory() -> SqliteDatabase {
    let namespace = Namespace::new(SPACE, FIELDS).search(["title"]);
    SqliteDatabase::open(SqliteOptions::in_memory().namespaces([namespace])).unwrap()
}

async fn paged(records: &SqliteRecordStorage, mut options: ListOptions) -> Vec<String> {
    let mut keys = Vec::new();
    loop {
        let page = records.list(SPACE, options.clone()).await.unwrap();
        assert!(page.records.len() == options.limit || page.next.is_none());
        keys.extend(page.records.into_iter().map(|record| record.key));
        if page.next.is_none() {
            return keys;
        }
        options.cursor = page.next;
    }
}

async fn compare(changes: Vec<(u8, Option<Row>)>, questions: Vec<Asked>) {
    let database = in_memory();
    let records = database.records();
    let mut rows = BTreeMap::new();
    for (key, row) in changes {
        match row {
            Some(row) => {
                records.set(SPACE, row.record(key)).await.unwrap();
                rows.insert(key.to_string(), row);
            }
            None => {
                let existed = rows.remove(&key.to_string()).is_some();
                assert_eq!(
                    records.delete(SPACE, &key.to_string()).await.unwrap(),
                    existed
                );
            }
        }
    }
    database.check().await.unwrap();
    for asked in questions {
        let found = rows.iter().filter(|(_, row)| asked.accepts(row));
        let mut by_key: Vec<_> = found.map(|(key, row)| (row.time, key.clone())).collect();
        let mut by_time = by_key.clone();
        by_time.sort();
        for order in [Order::Ascending, Order::Descending] {
            for (sort, expected) in [(SortBy::Key, &by_key), (SortBy::UpdatedAt, &by_time)] {
                let expected: Vec<_> = expected.iter().map(|(_, key)| key.clone()).collect();
                let options = asked.options().sort(sort).order(order);
                assert_eq!(
                    paged(&records, options).await,
                    expected,
                    "{asked:?} {sort:?} {order:?}"
                );
            }
            by_key.reverse();
            by_time.reverse();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn x_13_any_listing_gives_what_a_plain_filter_gives(
        changes in changes(),
        questions in prop::collection::vec(asked(), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(compare(changes, questions));
    }
}

/// Whatever leads: it is looked up, not gone through, and what it gives need not be sorted.
#[tokio::test]
async fn no_listing_by_time_sorts_what_it_reads() {
    let plain = ListOptions::default().sort(SortBy::UpdatedAt);
    let by_root = plain.clone().filter("roots", "/a");
    let by_text = plain.clone().contains("title", "x");
    let by_both = by_root.clone().contains("title", "x").updated_from(Some(1));
    let cases = [
        (plain, Lead::Records),
        (by_root, Lead::Filter(0)),
        (by_text, Lead::Text(0)),
        (by_both.clone(), Lead::Filter(0)),
        (by_both, Lead::Text(0)),
    ];
    let database = in_memory();
    for (options, lead) in cases {
        for order in [Order::Ascending, Order::Descending] {
            for cursor in [None, Some(Cursor::UpdatedAt(3, "k".to_owned()))] {
                let query = Query::new(SPACE, &options.clone().order(order), cursor, lead);
                let explain = format!("EXPLAIN QUERY PLAN {}", query.sql);
                let plan = database.read(move |owner| {
                    let transaction = owner.read()?;
                    let mut plan = transaction.prepare(&explain)?;
                    let steps = plan
                        .query_map(rusqlite::params_from_iter(query.values), |row| {
                            row.get::<_, String>("detail")
                        })?;
                    steps.collect::<rusqlite::Result<Vec<_>>>()
                });
                let plan = plan.await.unwrap();
                assert!(plan[0].starts_with("SEARCH lead USING"), "{plan:?}");
                let rest = plan
                    .iter()
                    .filter(|it| it.contains("SCAN") || it.contains("TEMP"));
                assert_eq!(rest.count(), 0, "{plan:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_rarest_condition_leads() {
    let database = in_memory();
    let rows = (0..1_500_i64).map(|n| {
        let roots = match n % 500 {
            0 => vec!["/rare", "/all"],
            _ => vec!["/all"],
        };
        let data = json!({ "roots": roots, "title": "t", "status": "new" });
        let record = Record::new(n.to_string(), n, to_raw_value(&data).unwrap());
        (SPACE.to_owned(), record)
    });
    database.records().mset(rows.collect()).await.unwrap();
    let by_time = ListOptions::default().sort(SortBy::UpdatedAt);
    let by_text = by_time.clone().contains("title", "t");
    let cases = [
        (by_time.clone(), Lead::Records),
        (by_text.clone(), Lead::Text(0)),
        (by_time.clone().filter("roots", "/all"), Lead::Filter(0)),
        (by_text.clone().filter("roots", "/all"), Lead::Text(0)),
        (
            by_text.filter("roots", "/all").filter("roots", "/rare"),
            Lead::Filter(1),
        ),
        (
            by_time.filter("roots", "/all").filter("status", "new"),
            Lead::Filter(0),
        ),
    ];
    for (options, expected) in cases {
        let asked = options.clone();
        let lead = database.read(move |owner| Lead::choose(&*owner.read()?, SPACE, &asked));
        assert_eq!(lead.await.unwrap(), expected, "{options:?}");
    }
}
