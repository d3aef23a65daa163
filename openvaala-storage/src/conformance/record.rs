//! The rules of [`RecordStorage`], one function each, for an empty storage that declares [`namespaces`].

use crate::conformance::{DELICATE_PAYLOADS, raw};
use crate::error::Error;
use crate::log::Order;
use crate::record::{ListOptions, Namespace, Record, RecordStorage, SortBy};

const MAIN: &str = "main";
const OTHER: &str = "other";

const SORTS: [SortBy; 2] = [SortBy::Key, SortBy::UpdatedAt];

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

/// The namespaces that the suite uses: `main` with the fields `status` and `owner`, and `title` and `status` to be searched; and
/// `other` without fields.
pub fn namespaces() -> Vec<Namespace> {
    vec![
        Namespace::new(MAIN, ["status", "owner"]).search(["title", "status"]),
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

/// A field with several values has each of them; what is no string among them is passed over.
pub async fn any_value_of_an_array_may_be_the_one(storage: &dyn RecordStorage) {
    for (key, data) in [
        ("a", r#"{"owner":["x","y","x"]}"#),
        ("b", r#"{"owner":["y",7,null,["x"]]}"#),
        ("c", r#"{"owner":[]}"#),
        ("d", r#"{"owner":"x"}"#),
        ("e", r#"{"owner":"[\"x\"]"}"#),
    ] {
        set(storage, MAIN, key, 1, data).await;
    }
    for (owners, expected) in [
        (vec!["x"], vec!["a", "d"]),
        (vec!["y"], vec!["a", "b"]),
        (vec!["y", "x"], vec!["a"]),
        (vec!["7"], vec![]),
    ] {
        for sort in SORTS {
            let options = ListOptions::default().limit(1).sort(sort);
            let options = owners
                .iter()
                .fold(options, |options, owner| options.filter("owner", *owner));
            let found = paged(storage, options).await;
            assert_eq!(found, expected, "{owners:?} {sort:?}");
        }
    }
    set(storage, MAIN, "a", 2, r#"{"owner":["z"]}"#).await;
    let by_x = ListOptions::default().filter("owner", "x");
    assert_eq!(keys(storage, MAIN, by_x).await, ["d"]);
}

/// A text is found wherever it stands, in any case, and means itself, however odd or long it is.
pub async fn x_13_a_text_is_found_as_it_is(storage: &dyn RecordStorage) {
    let long = "Überlang %_".repeat(94);
    let titles = [
        "Fix the ÄPFEL parser",
        "100% of it",
        "100 parts of it",
        "snake_case",
        "snakeXcase",
        "it's \"quoted\"",
        "a\0B",
        "😀 emoji 😀😀",
        "ΣΊΣΥΦΟΣ",
        "İstanbul",
        "",
        "back\\slash * [a-z]",
        "'; DROP TABLE records; --",
        &long,
    ];
    for (n, title) in titles.iter().enumerate() {
        let data = serde_json::json!({ "title": title }).to_string();
        set(storage, MAIN, &format!("{n:02}"), n as i64, &data).await;
    }
    set(storage, MAIN, "no text", 0, r#"{"title":["snake_case"]}"#).await;
    let texts = [
        "äpf",
        "ÄPFEL P",
        "%",
        "_",
        "it",
        "IT'S \"q",
        "\0b",
        "😀😀",
        "σίσυφος",
        "i\u{307}st",
        "i",
        "s",
        "",
        "\\s",
        "[a-z]",
        "*",
        "'; drop",
        "absent text",
        &long,
        &long[..1000],
    ];
    for text in texts {
        let has = |title: &&str| title.to_lowercase().contains(&text.to_lowercase());
        let with = titles.iter().enumerate().filter(|(_, title)| has(title));
        let mut expected: Vec<_> = with.map(|(n, _)| format!("{n:02}")).collect();
        for order in [Order::Ascending, Order::Descending] {
            for sort in SORTS {
                let options = ListOptions::default().sort(sort).order(order).limit(2);
                let found = paged(storage, options.contains("title", text)).await;
                assert_eq!(found, expected, "{text:?} {sort:?} {order:?}");
            }
            expected.reverse();
        }
    }
}

/// Filters, texts and an update time must all hold, whichever of them is rare.
pub async fn every_condition_of_a_listing_must_hold(storage: &dyn RecordStorage) {
    for n in 0..60_i64 {
        let status = if n % 2 == 0 { "running" } else { "idle" };
        let owner = if n % 3 == 0 { r#"["x","y"]"# } else { r#""y""# };
        let title = if n % 5 == 0 { "Pears" } else { "Apples" };
        let data = format!(r#"{{"status":"{status}","owner":{owner},"title":"{title}"}}"#);
        set(storage, MAIN, &format!("{n:02}"), 100 - n, &data).await;
        set(storage, OTHER, &format!("{n:02}"), 100 - n, &data).await;
    }
    let all = ListOptions::default().updated_from(Some(51));
    let all = all.range(Some("01".to_owned()), None);
    type Rule = fn(&i64) -> bool;
    let table: [(ListOptions, Rule); 7] = [
        (all.clone(), |_| true),
        (all.clone().contains("title", "PEAR"), |n| n % 5 == 0),
        (all.clone().filter("status", "running"), |n| n % 2 == 0),
        (
            all.clone().filter("owner", "x").contains("title", "pear"),
            |n| n % 15 == 0,
        ),
        (
            all.clone().contains("title", "a").contains("status", "IDL"),
            |n| n % 2 == 1,
        ),
        (
            all.clone()
                .filter("owner", "y")
                .filter("status", "idle")
                .contains("title", "app"),
            |n| n % 2 == 1 && n % 5 != 0,
        ),
        (
            all.clone()
                .filter("owner", "x")
                .filter("owner", "y")
                .contains("title", "absent"),
            |_| false,
        ),
    ];
    for (options, rule) in table {
        // The keys rise, the times fall.
        let mut expected: Vec<_> = (1..50).filter(rule).map(|n| format!("{n:02}")).collect();
        for (sort, order) in [
            (SortBy::Key, Order::Ascending),
            (SortBy::UpdatedAt, Order::Descending),
            (SortBy::UpdatedAt, Order::Ascending),
            (SortBy::Key, Order::Descending),
        ] {
            if (sort, order) == (SortBy::UpdatedAt, Order::Ascending) {
                expected.reverse();
            }
            for limit in [1, 7, 60] {
                let options = options.clone().sort(sort).order(order).limit(limit);
                assert_eq!(
                    paged(storage, options.clone()).await,
                    expected,
                    "{options:?}"
                );
            }
        }
    }
}

/// A record is found by its present text, at its present time.
pub async fn texts_follow_changes_and_deletions(storage: &dyn RecordStorage) {
    let by = |text: &str| {
        let options = ListOptions::default().contains("title", text);
        options.sort(SortBy::UpdatedAt)
    };
    for key in ["a", "b", "c"] {
        set(storage, MAIN, key, 1, r#"{"title":"old"}"#).await;
    }
    set(storage, MAIN, "a", 2, r#"{"title":"new"}"#).await;
    set(storage, MAIN, "b", 0, r#"{"title":"old"}"#).await;
    assert_eq!(keys(storage, MAIN, by("old")).await, ["b", "c"]);
    assert_eq!(keys(storage, MAIN, by("new")).await, ["a"]);
    set(storage, MAIN, "a", 2, "{}").await;
    assert_eq!(keys(storage, MAIN, by("new")).await, [""; 0]);
    storage.delete(MAIN, "b").await.unwrap();
    storage.delete_range(MAIN, Some("c"), None).await.unwrap();
    assert_eq!(keys(storage, MAIN, by("")).await, [""; 0]);
    set(storage, MAIN, "c", 7, r#"{"title":"again"}"#).await;
    assert_eq!(keys(storage, MAIN, by("")).await, ["c"]);
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
        refuses(storage, options, field).await;
    }
    // What may be filtered by need not be searched, and the other way round.
    for field in ["owner", "", "title\0", "title' OR 1 --"] {
        let options = ListOptions::default().contains(field, "x");
        refuses(storage, options, field).await;
    }
    let options = ListOptions::default().filter("title", "x");
    refuses(storage, options, "title").await;
}

async fn refuses(storage: &dyn RecordStorage, options: ListOptions, field: &str) {
    let error = storage.list(MAIN, options).await.unwrap_err();
    let named = matches!(&error, Error::UnknownField { field: named, .. } if named == field);
    assert!(named, "{error}");
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
    let data = r#"{"status":"s","title":"t"}"#;
    let all = ListOptions::default();
    let narrowed = [
        all.clone(),
        all.clone().filter("status", "s"),
        all.clone().contains("title", "T"),
        all.updated_from(Some(5)),
    ];
    for (narrowed, sort) in narrowed.iter().flat_map(|it| SORTS.map(|sort| (it, sort))) {
        for (deleted, added) in [(true, false), (false, true), (true, true)] {
            storage.delete_range(MAIN, None, None).await.unwrap();
            for key in ["b", "c", "d", "e"] {
                set(storage, MAIN, key, 5, data).await;
            }
            let options = narrowed.clone().sort(sort).limit(2);
            let page = storage.list(MAIN, options.clone()).await.unwrap();
            if deleted {
                storage.delete(MAIN, "c").await.unwrap();
            }
            if added {
                set(storage, MAIN, "a", 5, data).await;
            }
            let options = options.cursor(page.next);
            let rest = storage.list(MAIN, options.clone()).await.unwrap();
            let rest: Vec<_> = rest.records.iter().map(|it| it.key.as_str()).collect();
            assert_eq!(
                rest,
                ["d", "e"],
                "{options:?}, deleted {deleted}, added {added}"
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
