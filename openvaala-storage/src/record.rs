//! JSON records by namespace and key: the trait, its values and its options.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::log::Order;

mod fields;

pub(crate) use self::fields::Fields;
#[cfg(feature = "sqlite")]
pub(crate) use self::fields::fold;

/// JSON records, addressed by namespace and key, each with an update time.
///
/// Namespaces are declared when the storage is opened; a name that was not is
/// [`UnknownNamespace`](crate::Error::UnknownNamespace) in every method. Keys are any text, compared byte by byte.
///
/// # Atomicity and durability
///
/// Every call is all or nothing, [`mset`](Self::mset) over all its records. A call that returned `Ok` is seen by every call that begins
/// later and survives a crash of the process. It need not survive a crash of the machine: records are an index that can be
/// rebuilt, the log is the truth. A back end documents when it promises more.
///
/// # Cancellation
///
/// Dropping a future does not take a change back: it may still happen, whole, or not at all.
///
/// # Wrappers
///
/// A storage that wraps another one forwards every method; write its impl under
/// `#[deny(clippy::missing_trait_methods)]`.
#[async_trait]
pub trait RecordStorage: Debug + Send + Sync + 'static {
    /// Writes a record; one with the same key is replaced.
    async fn set(&self, namespace: &str, record: Record) -> Result<()>;

    /// Writes records of any namespaces, all or none; of two with the same key the later one wins.
    async fn mset(&self, records: Vec<(String, Record)>) -> Result<()>;

    /// Returns a record; `None` when there is none.
    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Record>>;

    /// Returns one result for each key, in the order of the keys.
    async fn mget(&self, namespace: &str, keys: &[String]) -> Result<Vec<Option<Record>>>;

    /// Deletes a record and returns whether it existed.
    async fn delete(&self, namespace: &str, key: &str) -> Result<bool>;

    /// Deletes the records with `from <= key < to` and returns how many; `None` is an open end.
    async fn delete_range(
        &self,
        namespace: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<u64>;

    /// Lists one page of a namespace.
    ///
    /// A cursor stays right while records change: what was there all the time, and whose place did not move, is listed exactly once.
    ///
    /// # Errors
    ///
    /// [`UnknownField`](crate::Error::UnknownField) for a filter on, or a search in, a field that is not declared for it;
    /// [`InvalidCursor`](crate::Error::InvalidCursor) for a cursor of another way of sorting.
    async fn list(&self, namespace: &str, options: ListOptions) -> Result<RecordPage>;
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: RecordStorage + ?Sized> RecordStorage for Arc<S> {
    async fn set(&self, namespace: &str, record: Record) -> Result<()> {
        (**self).set(namespace, record).await
    }

    async fn mset(&self, records: Vec<(String, Record)>) -> Result<()> {
        (**self).mset(records).await
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Record>> {
        (**self).get(namespace, key).await
    }

    async fn mget(&self, namespace: &str, keys: &[String]) -> Result<Vec<Option<Record>>> {
        (**self).mget(namespace, keys).await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool> {
        (**self).delete(namespace, key).await
    }

    async fn delete_range(
        &self,
        namespace: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<u64> {
        (**self).delete_range(namespace, from, to).await
    }

    async fn list(&self, namespace: &str, options: ListOptions) -> Result<RecordPage> {
        (**self).list(namespace, options).await
    }
}

/// A JSON record.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its key, unique in its namespace.
    pub key: String,
    /// When it was last changed, in milliseconds since the epoch, by the caller's clock.
    pub updated_at: i64,
    /// The payload.
    pub data: Box<RawValue>,
}

impl Record {
    /// Makes a record of a key, a time in milliseconds since the epoch and a payload.
    pub fn new(key: impl Into<String>, updated_at: i64, data: Box<RawValue>) -> Self {
        Self {
            key: key.into(),
            updated_at,
            data,
        }
    }
}

/// The declaration of a namespace.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// The top-level fields of its records' JSON that a listing may filter by: a string, or an array of which any string may be
    /// the one; they are indexed.
    pub fields: Vec<String>,
    /// The top-level string fields of its records' JSON that a listing may search for a text; they are indexed.
    pub search: Vec<String>,
}

impl Namespace {
    /// Declares a namespace and the fields that a listing may filter by.
    pub fn new<F: Into<String>>(
        name: impl Into<String>,
        fields: impl IntoIterator<Item = F>,
    ) -> Self {
        Self {
            name: name.into(),
            fields: fields.into_iter().map(Into::into).collect(),
            search: Vec::new(),
        }
    }

    /// Declares the fields that a listing may search for a text; none by default.
    #[must_use]
    pub fn search<F: Into<String>>(mut self, fields: impl IntoIterator<Item = F>) -> Self {
        self.search = fields.into_iter().map(Into::into).collect();
        self
    }
}

/// What a listing is sorted by.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum SortBy {
    /// The key, byte by byte.
    #[default]
    Key,
    /// The update time, then the key.
    UpdatedAt,
}

/// Which records [`RecordStorage::list`] returns; by default the first 100, by key, ascending.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ListOptions {
    /// The smallest key, inclusive.
    pub from: Option<String>,
    /// The end of the keys, exclusive.
    pub to: Option<String>,
    /// What the listing is sorted by.
    pub sort: SortBy,
    /// The direction.
    pub order: Order,
    /// The smallest update time in milliseconds since the epoch, inclusive.
    pub updated_from: Option<i64>,
    /// Field and value that must be equal, or among the values of the field if it is an array; all of them must hold.
    pub filters: Vec<(String, String)>,
    /// Field and text that the field must have in it, in any mixture of upper and lower case; all of them must hold.
    pub texts: Vec<(String, String)>,
    /// [`RecordPage::next`] of the page before; the other options must be the same.
    pub cursor: Option<String>,
    /// The most records in the page; 0 counts as 1.
    pub limit: usize,
}

impl ListOptions {
    /// Sets the range of keys, `from` inclusive and `to` exclusive.
    #[must_use]
    pub fn range(mut self, from: Option<String>, to: Option<String>) -> Self {
        self.from = from;
        self.to = to;
        self
    }

    /// Sets what the listing is sorted by.
    #[must_use]
    pub fn sort(mut self, sort: SortBy) -> Self {
        self.sort = sort;
        self
    }

    /// Sets the direction.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Adds a field and the value that it must have.
    #[must_use]
    pub fn filter(mut self, field: impl Into<String>, value: impl Into<String>) -> Self {
        self.filters.push((field.into(), value.into()));
        self
    }

    /// Adds a field declared with [`Namespace::search`] and a text that it must have in it.
    ///
    /// Both are compared as [`str::to_lowercase`] makes them, and the text means nothing but itself: `%` is a per cent sign. A
    /// record whose field is no string has no text in it, not even the empty one.
    #[must_use]
    pub fn contains(mut self, field: impl Into<String>, text: impl Into<String>) -> Self {
        self.texts.push((field.into(), text.into()));
        self
    }

    /// Sets the smallest update time in milliseconds since the epoch, inclusive.
    #[must_use]
    pub fn updated_from(mut self, time: Option<i64>) -> Self {
        self.updated_from = time;
        self
    }

    /// Sets the cursor.
    #[must_use]
    pub fn cursor(mut self, cursor: Option<String>) -> Self {
        self.cursor = cursor;
        self
    }

    /// Sets the most records in the page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Refuses fields that a namespace does not declare: for who writes a back end.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownField`].
    pub fn check_fields(&self, namespace: &Namespace) -> Result<()> {
        let asked = [
            (&self.filters, &namespace.fields),
            (&self.texts, &namespace.search),
        ];
        for (conditions, declared) in asked {
            if let Some((field, _)) = conditions.iter().find(|(it, _)| !declared.contains(it)) {
                return Err(Error::UnknownField {
                    namespace: namespace.name.clone(),
                    field: field.clone(),
                    declared: declared.clone(),
                });
            }
        }
        Ok(())
    }

    /// Tells whether a record is one of those asked for, its place after the cursor aside: for who writes a back end without a
    /// query language of its own.
    pub fn accepts(&self, record: &Record) -> bool {
        let key = record.key.as_str();
        let from = self.from.as_deref().is_none_or(|from| from <= key);
        let to = self.to.as_deref().is_none_or(|to| key < to);
        let time = self.updated_from.is_none_or(|it| it <= record.updated_at);
        if !(from && to && time) {
            return false;
        }
        if self.filters.is_empty() && self.texts.is_empty() {
            return true;
        }
        let fields = Fields::of(&record.data);
        let mut filters = self.filters.iter();
        let mut texts = self.texts.iter();
        filters.all(|(field, value)| fields.values(field).contains(value))
            && texts.all(|(field, text)| fields.contains(field, text))
    }
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            from: None,
            to: None,
            sort: SortBy::Key,
            order: Order::Ascending,
            updated_from: None,
            filters: Vec::new(),
            texts: Vec::new(),
            cursor: None,
            limit: 100,
        }
    }
}

/// One page of a listing.
#[derive(Clone, Debug, Default)]
pub struct RecordPage {
    /// The records in the order asked for.
    pub records: Vec<Record>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<String>,
}
