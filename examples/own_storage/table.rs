//! The records of one namespace.

use std::collections::BTreeMap;

use openvaala_core::storage::{ListOptions, Namespace, Record, RecordPage, Result};

use crate::place::Place;

#[derive(Debug)]
pub(crate) struct Table {
    declared: Namespace,
    records: BTreeMap<String, Record>,
}

impl Table {
    pub(crate) fn new(declared: Namespace) -> Self {
        let records = BTreeMap::new();
        Self { declared, records }
    }

    pub(crate) fn set(&mut self, record: Record) {
        self.records.insert(record.key.clone(), record);
    }

    pub(crate) fn get(&self, key: &str) -> Option<Record> {
        self.records.get(key).cloned()
    }

    pub(crate) fn delete(&mut self, key: &str) -> bool {
        self.records.remove(key).is_some()
    }

    pub(crate) fn delete_range(&mut self, from: Option<&str>, to: Option<&str>) -> u64 {
        let before = self.records.len();
        self.records.retain(|key, _| !within(key, from, to));
        (before - self.records.len()) as u64
    }

    pub(crate) fn list(&self, options: &ListOptions) -> Result<RecordPage> {
        let ListOptions { sort, order, .. } = *options;
        options.check_fields(&self.declared)?;
        let after = options
            .cursor
            .as_deref()
            .map(|text| Place::read(text, sort))
            .transpose()?;
        let wanted = self
            .records
            .values()
            .filter(|record| options.accepts(record));
        let placed = wanted.map(|record| (Place::of(record, sort), record));
        let is_after = |place: &Place| after.as_ref().is_none_or(|it| it.is_before(place, order));
        let mut found: Vec<_> = placed.filter(|(place, _)| is_after(place)).collect();
        found.sort_by(|(a, _), (b, _)| a.compare(b, order));

        let limit = options.limit.max(1);
        let is_more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| is_more);
        Ok(RecordPage {
            next: last.map(|(place, _)| place.write(sort)),
            records: found
                .into_iter()
                .map(|(_, record)| record.clone())
                .collect(),
        })
    }
}

/// Whether a key lies in a range; `None` is an open end.
fn within(key: &str, from: Option<&str>, to: Option<&str>) -> bool {
    from.is_none_or(|from| from <= key) && to.is_none_or(|to| key < to)
}
