//! Wrong records: each is right but for one fault.

use std::sync::Arc;

use async_trait::async_trait;
use openvaala_storage::conformance::record::namespaces;
use openvaala_storage::conformance::record_rules;
use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions, SqliteRecordStorage};
use openvaala_storage::{
    Error, ListOptions, Order, Record, RecordPage, RecordStorage, Result, SortBy,
};
use pretty_assertions::assert_eq;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::broken;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    AcceptsAnyNamespace,
    AcceptsForeignCursors,
    ArraysHaveNoValues,
    CursorIsACount,
    DeletesEndOfRange,
    DeletionIsAlwaysSure,
    EncodesAnew,
    FilterIsAPrefix,
    FirstOfMsetStays,
    FoldsCase,
    IgnoresFilters,
    IgnoresOrder,
    IgnoresSort,
    IgnoresTexts,
    IgnoresUndeclaredFields,
    IgnoresUpdateTime,
    KeepsTheFirst,
    MgetIsSorted,
    MsetIsOneByOne,
    OneFilterIsEnough,
    TextIsAPattern,
    TextKeepsItsCase,
    TextsStayAsTheyWere,
}

/// What each fault breaks, among others.
const PROVEN: [(Fault, &str); 23] = [
    (
        Fault::AcceptsAnyNamespace,
        "an_undeclared_namespace_is_refused_everywhere",
    ),
    (
        Fault::AcceptsForeignCursors,
        "a_cursor_of_another_sort_is_refused",
    ),
    (
        Fault::ArraysHaveNoValues,
        "any_value_of_an_array_may_be_the_one",
    ),
    (
        Fault::CursorIsACount,
        "a_cursor_stays_right_while_records_change",
    ),
    (
        Fault::DeletesEndOfRange,
        "x_15_delete_range_stays_in_its_bounds",
    ),
    (
        Fault::DeletionIsAlwaysSure,
        "delete_tells_whether_there_was_one",
    ),
    (Fault::EncodesAnew, "r_38_payloads_come_back_byte_for_byte"),
    (Fault::FilterIsAPrefix, "filters_must_all_hold_exactly"),
    (
        Fault::FirstOfMsetStays,
        "mset_takes_the_later_of_two_equal_keys",
    ),
    (Fault::FoldsCase, "x_13_keys_are_compared_exactly"),
    (Fault::IgnoresFilters, "filters_must_all_hold_exactly"),
    (
        Fault::IgnoresOrder,
        "listings_give_each_record_once_in_order",
    ),
    (
        Fault::IgnoresSort,
        "listings_give_each_record_once_in_order",
    ),
    (Fault::IgnoresTexts, "x_13_a_text_is_found_as_it_is"),
    (
        Fault::IgnoresUndeclaredFields,
        "x_13_an_undeclared_field_is_refused",
    ),
    (
        Fault::IgnoresUpdateTime,
        "every_condition_of_a_listing_must_hold",
    ),
    (Fault::KeepsTheFirst, "a_record_is_replaced_by_its_key"),
    (Fault::MgetIsSorted, "mget_answers_in_the_order_of_the_keys"),
    (Fault::MsetIsOneByOne, "x_14_mset_is_all_or_none"),
    (Fault::OneFilterIsEnough, "filters_must_all_hold_exactly"),
    (Fault::TextIsAPattern, "x_13_a_text_is_found_as_it_is"),
    (Fault::TextKeepsItsCase, "x_13_a_text_is_found_as_it_is"),
    (
        Fault::TextsStayAsTheyWere,
        "texts_follow_changes_and_deletions",
    ),
];

#[tokio::test]
async fn every_wrong_record_storage_breaks_the_rule_that_it_is_against() {
    let mut found = Vec::new();
    for (fault, rule) in PROVEN {
        let names = broken(record_rules(), || wrong(fault)).await;
        found.push((fault, names.contains(rule).then_some(rule)));
    }
    assert_eq!(found, PROVEN.map(|(fault, rule)| (fault, Some(rule))));
    assert_eq!(
        broken(record_rules(), || wrong(Fault::None)).await,
        [].into()
    );
}

fn wrong(fault: Fault) -> Arc<dyn RecordStorage> {
    let options = SqliteOptions::in_memory().namespaces(namespaces());
    let database = SqliteDatabase::open(options).unwrap();
    Arc::new(Wrong {
        inner: database.records(),
        fault,
    })
}

#[derive(Debug)]
struct Wrong {
    inner: SqliteRecordStorage,
    fault: Fault,
}

impl Wrong {
    fn key(&self, key: &str) -> String {
        match self.fault {
            Fault::FoldsCase => key.to_lowercase(),
            _ => key.to_owned(),
        }
    }

    fn record(&self, mut record: Record) -> Record {
        record.key = self.key(&record.key);
        if self.fault == Fault::EncodesAnew
            && let Ok(value) = serde_json::from_str::<Value>(record.data.get())
        {
            record.data = to_raw_value(&value).unwrap();
        }
        record
    }

    /// A page without the records that something else must hold for, too.
    async fn narrowed(
        &self,
        namespace: &str,
        options: ListOptions,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<RecordPage> {
        let mut page = self.inner.list(namespace, options).await?;
        let data = |record: &Record| serde_json::from_str(record.data.get()).unwrap_or_default();
        page.records.retain(|record| holds(&data(record)));
        Ok(page)
    }

    /// All records of a page's options, to be cut by hand.
    async fn all(&self, namespace: &str, options: &ListOptions) -> Result<Vec<Record>> {
        let options = options.clone().cursor(None).limit(usize::MAX);
        Ok(self.inner.list(namespace, options).await?.records)
    }
}

#[async_trait]
impl RecordStorage for Wrong {
    async fn set(&self, namespace: &str, record: Record) -> Result<()> {
        let record = self.record(record);
        let known = self.inner.get(namespace, &record.key).await;
        match (self.fault, known) {
            (Fault::KeepsTheFirst, Ok(Some(_))) => Ok(()),
            (Fault::TextsStayAsTheyWere, Ok(Some(old))) => {
                let mut data: Value = serde_json::from_str(record.data.get()).unwrap_or_default();
                let old: Value = serde_json::from_str(old.data.get()).unwrap_or_default();
                if let (Some(title), Some(object)) = (old.get("title"), data.as_object_mut()) {
                    object.insert("title".to_owned(), title.clone());
                }
                let data = to_raw_value(&data).unwrap();
                let record = Record::new(record.key, record.updated_at, data);
                self.inner.set(namespace, record).await
            }
            (Fault::AcceptsAnyNamespace, Err(Error::UnknownNamespace { .. })) => Ok(()),
            _ => self.inner.set(namespace, record).await,
        }
    }

    async fn mset(&self, mut records: Vec<(String, Record)>) -> Result<()> {
        match self.fault {
            Fault::MsetIsOneByOne => {
                for (namespace, record) in records {
                    self.inner.set(&namespace, record).await?;
                }
                return Ok(());
            }
            Fault::FirstOfMsetStays => records.reverse(),
            _ => {}
        }
        self.inner.mset(records).await
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Record>> {
        match self.inner.get(namespace, &self.key(key)).await {
            Err(Error::UnknownNamespace { .. }) if self.fault == Fault::AcceptsAnyNamespace => {
                Ok(None)
            }
            other => other,
        }
    }

    async fn mget(&self, namespace: &str, keys: &[String]) -> Result<Vec<Option<Record>>> {
        let mut keys = keys.to_vec();
        if self.fault == Fault::MgetIsSorted {
            keys.sort();
        }
        self.inner.mget(namespace, &keys).await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool> {
        let deleted = self.inner.delete(namespace, key).await?;
        Ok(deleted || self.fault == Fault::DeletionIsAlwaysSure)
    }

    async fn delete_range(
        &self,
        namespace: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<u64> {
        let mut deleted = self.inner.delete_range(namespace, from, to).await?;
        if let (Fault::DeletesEndOfRange, Some(end)) = (self.fault, to) {
            deleted += u64::from(self.inner.delete(namespace, end).await?);
        }
        Ok(deleted)
    }

    async fn list(&self, namespace: &str, mut options: ListOptions) -> Result<RecordPage> {
        match self.fault {
            Fault::IgnoresOrder => options.order = Order::Ascending,
            Fault::IgnoresSort => options.sort = SortBy::Key,
            Fault::IgnoresFilters => options.filters.clear(),
            Fault::IgnoresTexts => options.texts.clear(),
            Fault::IgnoresUpdateTime => options.updated_from = None,
            Fault::TextIsAPattern => {
                for (_, text) in &mut options.texts {
                    *text = text.replace(['%', '_'], "");
                }
            }
            Fault::TextKeepsItsCase => {
                let texts = options.texts.clone();
                return self
                    .narrowed(namespace, options, |data| {
                        let has = |(field, text): &(String, String)| {
                            data[field].as_str().is_some_and(|it| it.contains(text))
                        };
                        texts.iter().all(has)
                    })
                    .await;
            }
            Fault::ArraysHaveNoValues => {
                let filters = options.filters.clone();
                return self
                    .narrowed(namespace, options, |data| {
                        filters.iter().all(|(field, _)| !data[field].is_array())
                    })
                    .await;
            }
            Fault::OneFilterIsEnough => options.filters.truncate(1),
            Fault::IgnoresUndeclaredFields => {
                let declared = |field: &str| ["status", "owner"].contains(&field);
                options.filters.retain(|(field, _)| declared(field));
            }
            Fault::FilterIsAPrefix => {
                for (_, value) in &mut options.filters {
                    if value == "run%" {
                        "running".clone_into(value);
                    }
                }
            }
            Fault::CursorIsACount => {
                let at: usize = options
                    .cursor
                    .take()
                    .map_or(0, |it| it.parse().unwrap_or(0));
                let all = self.all(namespace, &options).await?;
                let end = (at + options.limit.max(1)).min(all.len());
                return Ok(RecordPage {
                    next: (end < all.len()).then(|| end.to_string()),
                    records: all[at.min(end)..end].to_vec(),
                });
            }
            Fault::AcceptsForeignCursors => {
                let tried = self.inner.list(namespace, options.clone()).await;
                return match tried {
                    Err(Error::InvalidCursor { .. }) => Ok(RecordPage::default()),
                    other => other,
                };
            }
            _ => {}
        }
        self.inner.list(namespace, options).await
    }
}
