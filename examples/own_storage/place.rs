//! Where a record stands in a listing. A cursor is the place of the last record and no count, so that it stays
//! right while records come and go.

use std::cmp::Ordering;

use openvaala_core::storage::{Error, Order, Record, Result, SortBy};

/// The time, then the key; by key alone all have the same time.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Place(i64, String);

impl Place {
    pub(crate) fn of(record: &Record, sort: SortBy) -> Self {
        let time = match sort {
            SortBy::Key => 0,
            SortBy::UpdatedAt => record.updated_at,
        };
        Self(time, record.key.clone())
    }

    pub(crate) fn compare(&self, other: &Self, order: Order) -> Ordering {
        match order {
            Order::Ascending => self.cmp(other),
            Order::Descending => other.cmp(self),
        }
    }

    pub(crate) fn is_before(&self, other: &Self, order: Order) -> bool {
        self.compare(other, order) == Ordering::Less
    }

    pub(crate) fn write(&self, sort: SortBy) -> String {
        let Self(time, key) = self;
        format!("{sort:?} {time} {key}")
    }

    pub(crate) fn read(cursor: &str, sort: SortBy) -> Result<Self> {
        let of_this_sort = cursor.strip_prefix(&format!("{sort:?} "));
        let place = of_this_sort.and_then(|rest| {
            let (time, key) = rest.split_once(' ')?;
            Some(Self(time.parse().ok()?, key.to_owned()))
        });
        place.ok_or_else(|| Error::InvalidCursor {
            cursor: cursor.to_owned(),
            reason: "it was made by another storage, or for another way of sorting",
        })
    }
}
