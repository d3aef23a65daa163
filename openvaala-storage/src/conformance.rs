//! The suites that every back end must pass.
//!
//! A macro expands to one named test for each rule, in the crate that calls it, which needs `tokio` with the features `macros` and `rt`
//! among its dev-dependencies. The suites grow with every version; they are not covered by the promise of stable versions.
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! mod tests {
//!     use openvaala_storage::sqlite::{SqliteDatabase, SqliteLogStorage, SqliteOptions};
//!
//!     // The second value is kept until the test ends, for example a temporary directory.
//!     async fn storage() -> (SqliteLogStorage, ()) {
//!         let database = SqliteDatabase::open(SqliteOptions::in_memory()).unwrap();
//!         (database.log(), ())
//!     }
//!
//!     openvaala_storage::log_storage_conformance!(storage);
//! }
//! ```

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a suite says that a rule is broken by a panic"
)]

pub mod durability;
pub mod log;
pub mod record;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;

use crate::log::LogStorage;
use crate::record::RecordStorage;

/// Payloads that a careless back end changes.
const DELICATE_PAYLOADS: &[&str] = &[
    "null",
    "\"\"",
    "12345678901234567890123",
    "1e999",
    "-0.0",
    "0.10000000000000000555",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"a\u{2028}b\u{1f600}\"",
    "{\"b\":1,\"a\":2,\"b\":3}",
    "{ \"a\" : [ 1 ,2,  3 ] }",
    "\"\\/ \\u002f\"",
    "[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]",
];

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("the suite's payloads are JSON")
}

/// Expands to one test for each rule of [`LogStorage`].
///
/// The argument is called for each test: an async function, or a closure that returns a future, which returns an empty storage and
/// something to be kept until the test ends.
#[macro_export]
macro_rules! log_storage_conformance {
    ($make:expr) => {
        $crate::__log_rules! { __conformance_tests log $make }
    };
}

/// Expands to one test for each rule of a [`LogStorage`] that outlives its process.
///
/// The first argument is as for [`log_storage_conformance`]. The second is called with what the first returned, the storage and what is kept with it, and
/// returns the same after closing the storage and opening it again from what lies on disk: a future like the first.
///
/// ```
/// # #[cfg(feature = "file")]
/// mod tests {
///     use openvaala_storage::file::{FileOptions, FileStorage};
///     use tempfile::TempDir;
///
///     async fn make() -> (FileStorage, TempDir) {
///         let dir = tempfile::tempdir().unwrap();
///         (FileStorage::open(FileOptions::new(dir.path())).unwrap(), dir)
///     }
///
///     async fn reopen((storage, dir): (FileStorage, TempDir)) -> (FileStorage, TempDir) {
///         drop(storage);
///         (FileStorage::open(FileOptions::new(dir.path())).unwrap(), dir)
///     }
///
///     openvaala_storage::log_storage_durability!(make, reopen);
/// }
/// ```
#[macro_export]
macro_rules! log_storage_durability {
    ($make:expr, $reopen:expr) => {
        $crate::__durability_tests! { $make, $reopen;
            acknowledged_entries_are_there_after_a_restart
            numbers_go_on_after_a_restart
            deletions_last_over_a_restart
        }
    };
}

/// Expands to one test for each rule of [`RecordStorage`].
///
/// The argument is as for [`log_storage_conformance`]; the storage must declare [`record::namespaces`].
#[macro_export]
macro_rules! record_storage_conformance {
    ($make:expr) => {
        $crate::__record_rules! { __conformance_tests record $make }
    };
}

/// The names of all rules of logs, given to another macro behind what it is given.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_rules {
    ($then:ident $($with:tt)*) => {
        $crate::$then! {
            $($with)*;
            numbers_are_dense_from_one
            a_batch_keeps_its_order_and_times
            r_29_pages_of_every_size_give_each_entry_once
            r_29_entries_appended_between_pages_come_last
            r_29_a_cursor_at_the_end_is_an_empty_page
            r_28_a_cursor_beyond_the_end_is_refused
            a_limit_of_zero_counts_as_one
            r_31_concurrent_batches_are_dense_and_contiguous
            r_38_payloads_come_back_byte_for_byte
            r_39_line_breaks_between_tokens_may_only_become_spaces
            an_empty_batch_is_refused
            an_unknown_stream_is_absent_in_every_way
            fingerprints_change_with_every_append
            fingerprints_of_many_are_those_of_each
            a_stream_begun_anew_has_another_fingerprint
            r_28_a_deleted_stream_begins_again_at_one
            r_26_deleting_a_path_removes_exactly_its_subtree
            r_27_an_append_that_races_with_a_deletion_is_whole_or_refused
            a_path_moves_with_all_its_streams_and_numbers
            r_26_moving_a_path_takes_exactly_its_subtree
            a_path_is_never_moved_onto_another
            r_27_an_append_that_races_with_a_move_is_whole_or_refused
            listings_are_sorted_and_direct
            streams_do_not_touch_each_other
            extensions_read_what_was_appended
        }
    };
}

/// The names of all rules of records, given to another macro behind what it is given.
#[doc(hidden)]
#[macro_export]
macro_rules! __record_rules {
    ($then:ident $($with:tt)*) => {
        $crate::$then! {
            $($with)*;
            a_record_is_replaced_by_its_key
            r_38_payloads_come_back_byte_for_byte
            x_13_keys_are_compared_exactly
            mget_answers_in_the_order_of_the_keys
            x_14_mset_is_all_or_none
            mset_takes_the_later_of_two_equal_keys
            delete_tells_whether_there_was_one
            x_15_delete_range_stays_in_its_bounds
            listings_give_each_record_once_in_order
            filters_must_all_hold_exactly
            filters_follow_changes_and_deletions
            any_value_of_an_array_may_be_the_one
            x_13_a_text_is_found_as_it_is
            every_condition_of_a_listing_must_hold
            texts_follow_changes_and_deletions
            x_13_an_undeclared_field_is_refused
            an_undeclared_namespace_is_refused_everywhere
            a_cursor_stays_right_while_records_change
            a_cursor_of_another_sort_is_refused
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    ($suite:ident $make:expr; $($case:ident)*) => {
        $(
            #[::tokio::test]
            async fn $case() {
                let (storage, _guard) = ($make)().await;
                $crate::conformance::$suite::$case(&storage).await;
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __durability_tests {
    ($make:expr, $reopen:expr; $($case:ident)*) => {
        $(
            #[::tokio::test]
            async fn $case() {
                let made = ($make)().await;
                $crate::conformance::durability::$case(made, $reopen).await;
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __rule_table {
    ($suite:ident; $($case:ident)*) => {
        vec![$((stringify!($case), |storage| $crate::conformance::$suite::$case(storage).boxed())),*]
    };
}

/// A rule: its name, and what panics where a storage breaks it.
pub type Rule<S> = (&'static str, fn(&S) -> BoxFuture<'_, ()>);

/// All rules of [`LogStorage`], for who wants to run them in a way of their own.
pub fn log_rules() -> Vec<Rule<dyn LogStorage>> {
    __log_rules! { __rule_table log }
}

/// All rules of [`RecordStorage`], for who wants to run them in a way of their own.
pub fn record_rules() -> Vec<Rule<dyn RecordStorage>> {
    __record_rules! { __rule_table record }
}

#[cfg(test)]
mod tests {
    fn cases(source: &str) -> Vec<&str> {
        let names = source.split("pub async fn ").skip(1);
        names
            .filter_map(|rest| rest.split(['(', '<']).next())
            .collect()
    }

    #[test]
    fn every_case_is_in_its_macro() {
        let macros = include_str!("conformance.rs");
        let sources = [
            include_str!("conformance/durability.rs"),
            include_str!("conformance/log.rs"),
            include_str!("conformance/record.rs"),
        ];
        for case in sources.iter().flat_map(|source| cases(source)) {
            let listed = macros.lines().any(|line| line.trim() == case);
            assert!(listed, "{case} is in no macro");
        }
    }
}
