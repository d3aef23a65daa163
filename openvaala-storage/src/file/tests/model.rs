//! A stream against a list, with restarts in between.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::{key, open, short};
use crate::log::{LogStorage, NewEntry, Order, ReadOptions};

#[derive(Clone, Debug)]
enum Call {
    Append(Vec<u16>),
    Delete,
    Read {
        down: bool,
        cursor: u64,
        limit: usize,
    },
    Reopen,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => prop::collection::vec(any::<u16>(), 1..80).prop_map(Call::Append),
        1 => Just(Call::Delete),
        6 => (any::<bool>(), 0u64..300, 0usize..90)
            .prop_map(|(down, cursor, limit)| Call::Read { down, cursor, limit }),
        1 => Just(Call::Reopen),
    ]
}

/// A payload whose size varies from a byte to over 64 KiB.
fn payload(n: u16) -> String {
    match n % 50 {
        0 => format!("\"{}\"", "x".repeat(usize::from(n) + 40_000)),
        _ => n.to_string(),
    }
}

/// The page that a list would give; `None` for a cursor that it never gave out.
fn page(model: &[String], options: ReadOptions) -> Option<Vec<(u64, String)>> {
    let last = model.len() as u64;
    let numbered = (1..).zip(model.iter().cloned());
    let limit = options.limit.max(1);
    match options.order {
        Order::Ascending if options.cursor > last => None,
        Order::Descending if options.cursor > last + 1 => None,
        Order::Ascending => Some(numbered.skip(options.cursor as usize).take(limit).collect()),
        Order::Descending => {
            let end = if options.cursor == 0 {
                last
            } else {
                options.cursor - 1
            };
            let mut before: Vec<_> = numbered.take(end as usize).collect();
            before.reverse();
            before.truncate(limit);
            Some(before)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn r_29_a_stream_behaves_as_a_list(calls in prop::collection::vec(call(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let mut storage = open(dir.path());
            let key = key("c/one/s");
            let mut model: Vec<String> = Vec::new();
            for call in calls {
                match call {
                    Call::Append(numbers) => {
                        let texts: Vec<String> = numbers.into_iter().map(payload).collect();
                        let batch = texts.iter().map(|text| {
                            NewEntry::new(0, RawValue::from_string(text.clone()).unwrap())
                        });
                        let appended = storage.append(&key, batch.collect()).await.unwrap();
                        assert_eq!(appended.first, model.len() as u64 + 1);
                        model.extend(texts);
                        assert_eq!(appended.last, model.len() as u64);
                    }
                    Call::Delete => {
                        assert_eq!(storage.delete(&key).await.unwrap(), !model.is_empty());
                        model.clear();
                    }
                    Call::Read { down, cursor, limit } => {
                        let order = if down { Order::Descending } else { Order::Ascending };
                        let options = ReadOptions { order, cursor, limit };
                        let found = storage.read(&key, options).await;
                        let expected = page(&model, options).filter(|_| !model.is_empty());
                        assert_eq!(found.is_ok(), expected.is_some());
                        let found = found.map(|page| page.entries.iter().map(short).collect::<Vec<_>>());
                        assert!(found.ok() == expected);
                    }
                    Call::Reopen => {
                        drop(storage);
                        storage = open(dir.path());
                    }
                }
            }
        });
    }
}
