//! One page of a listing: chosen, sorted, and with the cursor of the next one.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use openvaala_core::storage::{Error, ListOptions, Order, Record, RecordPage, Result, SortBy};
use serde_json::Value;

/// Where a record stands in a listing; by key all have the same time.
type Place = (i64, String);

/// Lists the records of a namespace; the fields of the filters are known to be declared.
pub(crate) fn page(
    records: &BTreeMap<String, Record>,
    options: &ListOptions,
) -> Result<RecordPage> {
    let after = options
        .cursor
        .as_deref()
        .map(|cursor| read_cursor(cursor, options.sort));
    let after = after.transpose()?;
    let is_wanted = |(place, record): &(Place, &Record)| {
        let is_after = |after: &Place| compare(after, place, options.order) == Ordering::Less;
        after.as_ref().is_none_or(is_after) && matches(record, options)
    };
    let placed = records
        .values()
        .map(|record| (place(record, options.sort), record));
    let mut found: Vec<_> = placed.filter(is_wanted).collect();
    found.sort_by(|(a, _), (b, _)| compare(a, b, options.order));

    let limit = options.limit.max(1);
    let is_more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| is_more);
    Ok(RecordPage {
        next: last.map(|(place, _)| write_cursor(place, options.sort)),
        records: found
            .into_iter()
            .map(|(_, record)| record.clone())
            .collect(),
    })
}

/// Whether a key lies in a range; `None` is an open end.
pub(crate) fn within(key: &str, from: Option<&str>, to: Option<&str>) -> bool {
    from.is_none_or(|from| from <= key) && to.is_none_or(|to| key < to)
}

fn matches(record: &Record, options: &ListOptions) -> bool {
    let data: Value = serde_json::from_str(record.data.get()).unwrap_or_default();
    let has =
        |(field, value): &(String, String)| data.get(field).and_then(Value::as_str) == Some(value);
    within(&record.key, options.from.as_deref(), options.to.as_deref())
        && options.filters.iter().all(has)
}

fn place(record: &Record, sort: SortBy) -> Place {
    let time = match sort {
        SortBy::Key => 0,
        SortBy::UpdatedAt => record.updated_at,
    };
    (time, record.key.clone())
}

fn compare(a: &Place, b: &Place, order: Order) -> Ordering {
    match order {
        Order::Ascending => a.cmp(b),
        Order::Descending => b.cmp(a),
    }
}

/// A cursor is the place of the last record, not a count: so it stays right while records come and go.
fn write_cursor(place: &Place, sort: SortBy) -> String {
    let (time, key) = place;
    format!("{sort:?} {time} {key}")
}

fn read_cursor(cursor: &str, sort: SortBy) -> Result<Place> {
    let of_this_sort = cursor.strip_prefix(&format!("{sort:?} "));
    let place = of_this_sort.and_then(|rest| {
        let (time, key) = rest.split_once(' ')?;
        Some((time.parse().ok()?, key.to_owned()))
    });
    place.ok_or_else(|| Error::InvalidCursor {
        cursor: cursor.to_owned(),
        reason: "it was made by another storage, or for another way of sorting",
    })
}
