//! The query of a listing and its cursor.
//!
//! The text of a query is put together from fixed pieces; every value is bound.

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::error::{Error, Result};
use crate::log::Order;
use crate::record::{ListOptions, Record, SortBy, fold};
use crate::sqlite::schema::{damage, record};

const MAX_LIMIT: usize = 1_000_000;

/// From how many records on a value counts as frequent.
const FREQUENT: i64 = 1_000;

/// The table that a listing is read along, in the order of the listing; the other conditions are looked up record by record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lead {
    /// The records themselves.
    Records,
    /// The records with the value of the n-th filter.
    Filter(usize),
    /// The texts of the field of the n-th search.
    Text(usize),
}

impl Lead {
    /// Chooses the table in which the fewest rows must be looked at: a rare value, else a text, else a frequent value.
    pub(super) fn choose(
        connection: &Connection,
        namespace: &str,
        options: &ListOptions,
    ) -> rusqlite::Result<Self> {
        if options.sort == SortBy::Key {
            return Ok(Self::Records);
        }
        let mut rarest = None;
        // A single condition leads whatever its number.
        if options.filters.len() + options.texts.len() > 1 {
            for (n, (field, value)) in options.filters.iter().enumerate() {
                let count = count(connection, namespace, field, value)?;
                if rarest.is_none_or(|(least, _)| count < least) {
                    rarest = Some((count, n));
                }
            }
        } else if !options.filters.is_empty() {
            rarest = Some((0, 0));
        }
        Ok(match rarest {
            Some((count, n)) if count < FREQUENT || options.texts.is_empty() => Self::Filter(n),
            _ if !options.texts.is_empty() => Self::Text(0),
            _ => Self::Records,
        })
    }
}

/// Returns how many records have a value, at most [`FREQUENT`].
fn count(
    connection: &Connection,
    namespace: &str,
    field: &str,
    value: &str,
) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM record_fields WHERE namespace = ?1 AND field = ?2 AND value = ?3 LIMIT ?4)",
        )?
        .query_row(params![namespace, field, value, FREQUENT], |row| row.get(0))
}

/// A listing as SQL text and its values.
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Query {
    /// Puts the query together; the fields are those that the namespace declares.
    pub(super) fn new(
        namespace: &str,
        options: &ListOptions,
        cursor: Option<Cursor>,
        lead: Lead,
    ) -> Self {
        let mut query = Self::along(lead);
        query.push("lead.namespace = ?", [namespace.to_owned().into()]);
        query.bounds(options);
        query.filters(namespace, options, lead);
        query.texts(namespace, options, lead);
        query.after(cursor, options.order);
        query.sort(options);
        query
    }

    /// Reads the records of the query.
    pub(super) fn run(
        self,
        connection: &Connection,
        namespace: &str,
    ) -> rusqlite::Result<Vec<Record>> {
        let mut statement = connection.prepare_cached(&self.sql)?;
        let rows = statement.query_map(params_from_iter(self.values), |row| {
            // What leads is there, so the record must be, too.
            if row.get::<_, Option<i64>>(1)? != Some(row.get(4)?) {
                return Err(damage("an index and its records do not agree"));
            }
            record(namespace, row)
        })?;
        rows.collect()
    }

    /// Begins along a table. An outer join keeps its order, and shows rows whose record is missing.
    fn along(lead: Lead) -> Self {
        const JOINED: &str = "LEFT JOIN records AS found ON found.namespace = lead.namespace AND found.key = lead.key WHERE ";
        let columns = "SELECT found.key, found.updated_at, found.data, found.crc, lead.updated_at";
        let sql = match lead {
            Lead::Records => {
                "SELECT lead.key, lead.updated_at, lead.data, lead.crc, lead.updated_at FROM records AS lead WHERE ".to_owned()
            }
            Lead::Filter(_) => format!("{columns} FROM record_fields AS lead {JOINED}"),
            Lead::Text(_) => format!("{columns} FROM record_texts AS lead {JOINED}"),
        };
        let values = Vec::new();
        Self { sql, values }
    }

    fn bounds(&mut self, options: &ListOptions) {
        if let Some(from) = &options.from {
            self.push(" AND lead.key >= ?", [from.clone().into()]);
        }
        if let Some(to) = &options.to {
            self.push(" AND lead.key < ?", [to.clone().into()]);
        }
        if let Some(time) = options.updated_from {
            self.push(" AND lead.updated_at >= ?", [time.into()]);
        }
    }

    fn filters(&mut self, namespace: &str, options: &ListOptions, lead: Lead) {
        for (n, (field, value)) in options.filters.iter().enumerate() {
            let namespace = Value::from(namespace.to_owned());
            let (field, value) = (field.clone().into(), value.clone().into());
            if lead == Lead::Filter(n) {
                self.push(" AND lead.field = ? AND lead.value = ?", [field, value]);
                continue;
            }
            let piece = match options.sort {
                SortBy::Key => {
                    " AND lead.key IN (SELECT key FROM record_fields WHERE namespace = ? AND field = ? AND value = ?)"
                }
                SortBy::UpdatedAt => {
                    " AND EXISTS (SELECT 1 FROM record_fields AS it WHERE it.namespace = ? AND it.field = ? AND it.value = ? \
                     AND it.updated_at = lead.updated_at AND it.key = lead.key)"
                }
            };
            self.push(piece, [namespace, field, value]);
        }
    }

    fn texts(&mut self, namespace: &str, options: &ListOptions, lead: Lead) {
        for (n, (field, text)) in options.texts.iter().enumerate() {
            let namespace = Value::from(namespace.to_owned());
            let (field, text) = (field.clone().into(), fold(text).into());
            if lead == Lead::Text(n) {
                self.push(" AND lead.field = ? AND instr(lead.text, ?)", [field, text]);
                continue;
            }
            let piece = match options.sort {
                SortBy::Key => {
                    " AND lead.key IN (SELECT key FROM record_texts WHERE namespace = ? AND field = ? AND instr(text, ?))"
                }
                SortBy::UpdatedAt => {
                    " AND EXISTS (SELECT 1 FROM record_texts AS it WHERE it.namespace = ? AND it.field = ? \
                     AND it.updated_at = lead.updated_at AND it.key = lead.key AND instr(it.text, ?))"
                }
            };
            self.push(piece, [namespace, field, text]);
        }
    }

    fn after(&mut self, cursor: Option<Cursor>, order: Order) {
        match (cursor, order) {
            (None, _) => {}
            (Some(Cursor::Key(key)), Order::Ascending) => {
                self.push(" AND lead.key > ?", [key.into()]);
            }
            (Some(Cursor::Key(key)), Order::Descending) => {
                self.push(" AND lead.key < ?", [key.into()]);
            }
            (Some(Cursor::UpdatedAt(time, key)), Order::Ascending) => {
                self.push(
                    " AND (lead.updated_at, lead.key) > (?, ?)",
                    [time.into(), key.into()],
                );
            }
            (Some(Cursor::UpdatedAt(time, key)), Order::Descending) => {
                self.push(
                    " AND (lead.updated_at, lead.key) < (?, ?)",
                    [time.into(), key.into()],
                );
            }
        }
    }

    fn sort(&mut self, options: &ListOptions) {
        let order = match (options.sort, options.order) {
            (SortBy::Key, Order::Ascending) => " ORDER BY lead.key LIMIT ?",
            (SortBy::Key, Order::Descending) => " ORDER BY lead.key DESC LIMIT ?",
            (SortBy::UpdatedAt, Order::Ascending) => " ORDER BY lead.updated_at, lead.key LIMIT ?",
            (SortBy::UpdatedAt, Order::Descending) => {
                " ORDER BY lead.updated_at DESC, lead.key DESC LIMIT ?"
            }
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

    /// The place that the page begins after.
    pub(super) fn place(&self) -> Result<Option<Cursor>> {
        let cursor = self.cursor.as_deref();
        cursor.map(|it| Cursor::parse(it, self.sort)).transpose()
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
#[derive(Clone, Debug)]
pub(super) enum Cursor {
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
