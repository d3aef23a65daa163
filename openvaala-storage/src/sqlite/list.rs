//! The query of a listing and its cursor.
//!
//! The text of a query is put together from fixed pieces; every value is bound.

use rusqlite::types::Value;

use crate::error::{Error, Result};
use crate::log::Order;
use crate::record::{ListOptions, Record, SortBy};

const MAX_LIMIT: usize = 1_000_000;

/// A listing as SQL text and its values.
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Query {
    pub(super) fn new(namespace: &str, declared: &[String], options: &ListOptions) -> Result<Self> {
        let (condition, values) = range(namespace, options.from.as_deref(), options.to.as_deref());
        let mut query = Self {
            sql: format!("SELECT key, updated_at, data FROM records WHERE {condition}"),
            values,
        };
        for (field, value) in &options.filters {
            if !declared.contains(field) {
                return Err(Error::UnknownField {
                    namespace: namespace.to_owned(),
                    field: field.clone(),
                    declared: declared.to_vec(),
                });
            }
            query.push(
                " AND key IN (SELECT key FROM record_fields WHERE namespace = ? AND field = ? AND value = ?)",
                [namespace.to_owned().into(), field.clone().into(), value.clone().into()],
            );
        }
        query.after(options)?;
        query.sort(options);
        Ok(query)
    }

    fn after(&mut self, options: &ListOptions) -> Result<()> {
        let Some(cursor) = &options.cursor else {
            return Ok(());
        };
        match (Cursor::parse(cursor, options.sort)?, options.order) {
            (Cursor::Key(key), Order::Ascending) => self.push(" AND key > ?", [key.into()]),
            (Cursor::Key(key), Order::Descending) => self.push(" AND key < ?", [key.into()]),
            (Cursor::UpdatedAt(time, key), Order::Ascending) => {
                self.push(" AND (updated_at, key) > (?, ?)", [time.into(), key.into()]);
            }
            (Cursor::UpdatedAt(time, key), Order::Descending) => {
                self.push(" AND (updated_at, key) < (?, ?)", [time.into(), key.into()]);
            }
        }
        Ok(())
    }

    fn sort(&mut self, options: &ListOptions) {
        let order = match (options.sort, options.order) {
            (SortBy::Key, Order::Ascending) => " ORDER BY key LIMIT ?",
            (SortBy::Key, Order::Descending) => " ORDER BY key DESC LIMIT ?",
            (SortBy::UpdatedAt, Order::Ascending) => " ORDER BY updated_at, key LIMIT ?",
            (SortBy::UpdatedAt, Order::Descending) => " ORDER BY updated_at DESC, key DESC LIMIT ?",
        };
        // One more than the page shows whether there is another one.
        let rows = options.rows() as i64 + 1;
        self.push(order, [rows.into()]);
    }

    fn push<const N: usize>(&mut self, piece: &str, values: [Value; N]) {
        self.sql.push_str(piece);
        self.values.extend(values);
    }
}

/// Returns the condition that selects a range of keys of one namespace.
pub(super) fn range(namespace: &str, from: Option<&str>, to: Option<&str>) -> (String, Vec<Value>) {
    let mut condition = "namespace = ?".to_owned();
    let mut values = vec![Value::from(namespace.to_owned())];
    for (piece, bound) in [(" AND key >= ?", from), (" AND key < ?", to)] {
        if let Some(bound) = bound {
            condition.push_str(piece);
            values.push(bound.to_owned().into());
        }
    }
    (condition, values)
}

impl ListOptions {
    fn rows(&self) -> usize {
        self.limit.clamp(1, MAX_LIMIT)
    }

    /// Cuts what was read to one page and returns the cursor of the next.
    pub(super) fn truncate(&self, records: &mut Vec<Record>) -> Option<String> {
        if records.len() <= self.rows() {
            return None;
        }
        records.truncate(self.rows());
        records.last().map(|last| match self.sort {
            SortBy::Key => format!("k:{}", last.key),
            SortBy::UpdatedAt => format!("u:{}:{}", last.updated_at, last.key),
        })
    }
}

/// The place of the last record of a page: it stays right when that record is gone.
enum Cursor {
    Key(String),
    UpdatedAt(i64, String),
}

impl Cursor {
    fn parse(cursor: &str, sort: SortBy) -> Result<Self> {
        let parsed = match sort {
            SortBy::Key => cursor
                .strip_prefix("k:")
                .map(|key| Self::Key(key.to_owned())),
            SortBy::UpdatedAt => cursor
                .strip_prefix("u:")
                .and_then(|rest| rest.split_once(':'))
                .and_then(|(time, key)| Some(Self::UpdatedAt(time.parse().ok()?, key.to_owned()))),
        };
        parsed.ok_or_else(|| Error::InvalidCursor {
            cursor: cursor.chars().take(200).collect(),
            reason: "it was not made by a listing with this sort order",
        })
    }
}
