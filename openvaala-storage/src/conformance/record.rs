//! The rules of [`RecordStorage`], one function each, for an empty storage that declares [`namespaces`].

use crate::conformance::{DELICATE_PAYLOADS, raw};
use crate::error::Error;
use crate::log::Order;
use crate::record::{ListOptions, Namespace, Record, RecordStorage, SortBy};

const MAIN: &str = "main";
const OTHER: &str = "other";

const ODD_KEYS: &[&str] = &[
    "",
    "%",
    "_",
    "'",
    "\"",
    "a",
    "a%",
    "A",
    "a\0b",
    "a'; DROP TABLE records; --",
    "ä",
    "😀",
    "k:x",
    "a:b",
];

/// The namespaces that the suite uses: `main` with the fields `status` and `owner`, and `other` without fields.
pub fn namespaces() -> Vec<Namespace> {
    vec![
        Namespace::new(MAIN, ["status", "owner"]),
        Namespace::new(OTHER, [""; 0]),
    ]
}

/// A second `set` replaces time and payload.
pub async fn a_record_is_replaced_by_its_key(storage: &dyn RecordStorage) {
    set(storage, MAIN, "k", 1, "1").await;
    set(storage, MAIN, "k", 2, "2").await;
    set(storage, OTHER, "k", 3, "3").await;
    assert_eq!(get(storage, MAIN, "k").await, Some((2, "2".to_owned())));
    assert_eq!(get(storage, OTHER, "k").await, Some((3, "3".to_owned())));
    assert_eq!(get(storage, MAIN, "absent").await, None);
    assert_eq!(keys(storage, MAIN, ListOptions::default()).await, ["k"]);
}

/// Big integers, spacing, key order, duplicate keys and odd escapes are kept.
pub async fn r_38_payloads_come_back_byte_for_byte(storage: &dyn RecordStorage) {
    for payload in DELICATE_PAYLOADS {
        set(storage, MAIN, "k", -1, payload).await;
        assert_eq!(
            get(storage, MAIN, "k").await,
            Some((-1, (*payload).to_owned()))
        );
    }
}

/// Quotes, wildcards, NUL, case and long keys mean themselves; they sort byte by byte.
pub async fn x_13_keys_are_compared_exactly(storage: &dyn RecordStorage) {
    let long = "k".repeat(1024);
    let mut odd: Vec<&str> = ODD_KEYS.iter().copied().chain([long.as_str()]).collect();
    for (n, key) in odd.iter().enumerate() {
        set(storage, MAIN, key, 0, &n.to_string()).await;
    }
    for (n, key) in odd.iter().enumerate() {
        assert_eq!(
            get(storage, MAIN, key).await,
            Some((0, n.to_string())),
            "{key:?}"
        );
    }
    odd.sort_unstable();
    assert_eq!(paged(storage, ListOptions::default().limit(2)).await, odd);
    assert_eq!(
        paged(
            storage,
            ListOptions::default().limit(2).sort(SortBy::UpdatedAt)
        )
        .await,
        odd
    );
}

/// Missing keys are `None` at their place, a key asked for twice is answered twice.
pub async fn mget_answers_in_the_order_of_the_keys(storage: &dyn RecordStorage) {
    set(storage, MAIN, "a", 1, "1").await;
    set(storage, MAIN, "b", 2, "2").await;
    let wanted = ["b", "x", "a", "b"].map(str::to_owned);
    let found = storage.mget(MAIN, &wanted).await.unwrap();
    let found: Vec<_> = found
        .into_iter()
        .map(|it| it.map(|record| record.key))
        .collect();
    let expected = [Some("b"), None, Some("a"), Some("b")].map(|key| key.map(str::to_owned));
    assert_eq!(found, expected);
}

/// One bad namespace and nothing is written; without one everything is.
pub async fn x_14_mset_is_all_or_none(storage: &dyn RecordStorage) {
    let record = |namespace: &str, key: &str| (namespace.to_owned(), Record::new(key, 0, raw("0")));
    let bad = vec![
        record(MAIN, "a"),
        record("undeclared", "b"),
        record(OTHER, "c"),
    ];
    let error = storage.mset(bad).await.unwrap_err();
    assert!(matches!(error, Error::UnknownNamespace { .. }), "{error}");
    assert_eq!(get(storage, MAIN, "a").await, None);
    storage
        .mset(vec![record(MAIN, "a"), record(OTHER, "c")])
        .await
        .unwrap();
    assert!(get(storage, MAIN, "a").await.is_some() && get(storage, OTHER, "c").await.is_some());
    storage.mset(Vec::new()).await.unwrap();
}

/// Of two records with one key in one call the later stays.
pub async fn mset_takes_the_later_of_two_equal_keys(storage: &dyn RecordStorage) {
    let record = |time| {
        (
            MAIN.to_owned(),
            Record::new("k", time, raw(&time.to_string())),
        )
    };
    storage.mset(vec![record(1), record(2)]).await.unwrap();
    assert_eq!(get(storage, MAIN, "k").await, Some((2, "2".to_owned())));
}

/// `delete` removes the record of its namespace only.
pub async fn delete_tells_whether_there_was_one(storage: &dyn RecordStorage) {
    set(storage, MAIN, "k", 0, "0").await;
    set(storage, OTHER, "k", 0, "0").await;
    assert!(storage.delete(MAIN, "k").await.unwrap());
    assert!(!storage.delete(MAIN, "k").await.unwrap());
    assert!(get(storage, OTHER, "k").await.is_some());
}

/// Empty, inverted and open ranges; the end is exclusive; other namespaces stay.
pub async fn x_15_delete_range_stays_in_its_bounds(storage: &dyn RecordStorage) {
    let cases: &[(Option<&str>, Option<&str>, &[&str])] = &[
        (Some("b"), Some("b"), &["a", "b", "ba", "c"]),
        (Some("c"), Some("a"), &["a", "b", "ba", "c"]),
        (Some("b"), Some("c"), &["a", "c"]),
        (Some("b"), None, &["a"]),
        (None, Some("b"), &["b", "ba", "c"]),
        (None, None, &[]),
    ];
    for (from, to, left) in cases {
        for key in ["a", "b", "ba", "c"] {
            set(storage, MAIN, key, 0, "{\"status\":\"s\"}").await;
            set(storage, OTHER, key, 0, "0").await;
        }
        let deleted = storage.delete_range(MAIN, *from, *to).await.unwrap();
        assert_eq!(deleted, 4 - left.len() as u64, "{from:?}..{to:?}");
        assert_eq!(keys(storage, MAIN, ListOptions::default()).await, *left);
        let filtered = ListOptions::default().filter("status", "s");
        assert_eq!(keys(storage, MAIN, filtered).await, *left);
        assert_eq!(keys(storage, OTHER, ListOptions::default()).await.len(), 4);
    }
}

/// Both sorts, both directions, a range, pages of every size.
pub async fn listings_give_each_record_once_in_order(storage: &dyn RecordStorage) {
    let records = [("a", 3), ("b", 1), ("c", 3), ("d", 2), ("e", -1), ("f", 3)];
    for (key, time) in records {
        set(storage, MAIN, key, time, "0").await;
        set(storage, OTHER, key, time, "0").await;
    }
    for (sort, order, expected) in [
        (SortBy::Key, Order::Ascending, ["b", "c", "d", "e"]),
        (SortBy::Key, Order::Descending, ["e", "d", "c", "b"]),
        (SortBy::UpdatedAt, Order::Ascending, ["e", "b", "d", "c"]),
        (SortBy::UpdatedAt, Order::Descending, ["c", "d", "b", "e"]),
    ] {
        for limit in 0..=5 {
            let options = ListOptions::default().sort(sort).order(order).limit(limit);
            let options = options.range(Some("b".to_owned()), Some("f".to_owned()));
            assert_eq!(
                paged(storage, options).await,
                expected,
                "{sort:?} {order:?} {limit}"
            );
        }
    }
}

/// A filter compares the whole value; several filters must all hold; values that are no strings are not found.
pub async fn filters_must_all_hold_exactly(storage: &dyn RecordStorage) {
    for (key, data) in [
        ("a", r#"{"status":"running","owner":"x"}"#),
        ("b", r#"{"status":"running","owner":"y"}"#),
        ("c", r#"{"status":"run%","owner":"x"}"#),
        ("d", r#"{"status":7,"owner":"x"}"#),
        ("e", r#"{"nested":{"status":"running"},"owner":"x"}"#),
        ("f", "[\"status\",\"running\"]"),
    ] {
        set(storage, MAIN, key, 0, data).await;
    }
    let by = |filters: &[(&str, &str)]| {
        let options = ListOptions::default().limit(1);
        filters.iter().fold(options, |options, (field, value)| {
            options.filter(*field, *value)
        })
    };
    assert_eq!(
        paged(storage, by(&[("status", "running")])).await,
        ["a", "b"]
    );
    assert_eq!(
        paged(storage, by(&[("status", "running"), ("owner", "x")])).await,
        ["a"]
    );
    assert_eq!(paged(storage, by(&[("status", "run%")])).await, ["c"]);
    assert_eq!(paged(storage, by(&[("status", "7")])).await, [""; 0]);
    assert_eq!(
        paged(storage, by(&[("owner", "x"), ("owner", "y")])).await,
        [""; 0]
    );
}

/// A record is found by its present value only.
pub async fn filters_follow_changes_and_deletions(storage: &dyn RecordStorage) {
    let by = |value: &str| ListOptions::default().filter("status", value);
    set(storage, MAIN, "a", 0, r#"{"status":"running"}"#).await;
    set(storage, MAIN, "a", 0, r#"{"status":"done"}"#).await;
    assert_eq!(keys(storage, MAIN, by("running")).await, [""; 0]);
    assert_eq!(keys(storage, MAIN, by("done")).await, ["a"]);
    storage.delete(MAIN, "a").await.unwrap();
    set(storage, MAIN, "a", 0, "{}").await;
    assert_eq!(keys(storage, MAIN, by("done")).await, [""; 0]);
}

/// A filter on a field that is not declared is an error that names it, whatever its text.
pub async fn x_13_an_undeclared_field_is_refused(storage: &dyn RecordStorage) {
    for field in ["colour", "", "status'; --", "data"] {
        let options = ListOptions::default().filter(field, "x");
        let error = storage.list(MAIN, options).await.unwrap_err();
        let named = matches!(&error, Error::UnknownField { field: named, .. } if named == field);
        assert!(named, "{error}");
    }
}

/// Every method refuses a namespace that is not declared.
pub async fn an_undeclared_namespace_is_refused_everywhere(storage: &dyn RecordStorage) {
    let name = "undeclared";
    let results = [
        storage.set(name, Record::new("k", 0, raw("0"))).await.err(),
        storage.get(name, "k").await.err(),
        storage.mget(name, &["k".to_owned()]).await.err(),
        storage.delete(name, "k").await.err(),
        storage.delete_range(name, None, None).await.err(),
        storage.list(name, ListOptions::default()).await.err(),
    ];
    for error in results {
        let error = error.expect("the namespace is not declared");
        assert!(matches!(error, Error::UnknownNamespace { .. }), "{error}");
    }
}

/// Deleting the record at the cursor, adding others before it, or both, neither repeats nor skips a record.
pub async fn a_cursor_stays_right_while_records_change(storage: &dyn RecordStorage) {
    for sort in [SortBy::Key, SortBy::UpdatedAt] {
        for (deleted, added) in [(true, false), (false, true), (true, true)] {
            storage.delete_range(MAIN, None, None).await.unwrap();
            for key in ["b", "c", "d", "e"] {
                set(storage, MAIN, key, 5, "0").await;
            }
            let options = ListOptions::default().sort(sort).limit(2);
            let page = storage.list(MAIN, options.clone()).await.unwrap();
            if deleted {
                storage.delete(MAIN, "c").await.unwrap();
            }
            if added {
                set(storage, MAIN, "a", 5, "0").await;
            }
            let rest = storage.list(MAIN, options.cursor(page.next)).await.unwrap();
            let rest: Vec<_> = rest.records.iter().map(|it| it.key.as_str()).collect();
            assert_eq!(
                rest,
                ["d", "e"],
                "{sort:?}, deleted {deleted}, added {added}"
            );
        }
    }
}

/// A cursor belongs to the sort that made it.
pub async fn a_cursor_of_another_sort_is_refused(storage: &dyn RecordStorage) {
    for key in ["a", "b"] {
        set(storage, MAIN, key, 0, "0").await;
    }
    let by_key = ListOptions::default().limit(1);
    let cursor = storage.list(MAIN, by_key.clone()).await.unwrap().next;
    let by_time = by_key.clone().sort(SortBy::UpdatedAt).cursor(cursor);
    for options in [by_time, by_key.cursor(Some("nonsense".to_owned()))] {
        let error = storage.list(MAIN, options).await.unwrap_err();
        assert!(matches!(error, Error::InvalidCursor { .. }), "{error}");
    }
}

async fn set(storage: &dyn RecordStorage, namespace: &str, key: &str, time: i64, data: &str) {
    storage
        .set(namespace, Record::new(key, time, raw(data)))
        .await
        .unwrap();
}

async fn get(storage: &dyn RecordStorage, namespace: &str, key: &str) -> Option<(i64, String)> {
    let record = storage.get(namespace, key).await.unwrap()?;
    assert_eq!(record.key, key);
    Some((record.updated_at, record.data.get().to_owned()))
}

async fn keys(storage: &dyn RecordStorage, namespace: &str, options: ListOptions) -> Vec<String> {
    let page = storage.list(namespace, options).await.unwrap();
    assert_eq!(page.next, None);
    page.records.into_iter().map(|record| record.key).collect()
}

async fn paged(storage: &dyn RecordStorage, mut options: ListOptions) -> Vec<String> {
    let mut keys = Vec::new();
    loop {
        let page = storage.list(MAIN, options.clone()).await.unwrap();
        assert!(page.records.len() <= options.limit.max(1));
        keys.extend(page.records.into_iter().map(|record| record.key));
        if page.next.is_none() {
            return keys;
        }
        options.cursor = page.next;
    }
}
