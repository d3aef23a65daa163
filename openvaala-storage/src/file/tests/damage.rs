//! Damage in the middle of a file, and the places by which pages are found.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::{Bench, all, append, expected, key, lines, new_entry, paged, payload};
use crate::file::line::encode;
use crate::log::{Damage, EntryData, LogStorage, LogStorageExt, NewEntry, ReadOptions, StreamKey};

/// Reads in both directions with pages of several sizes; all must agree, with dense numbers.
async fn agrees(bench: &Bench, key: &StreamKey) -> Vec<String> {
    let forwards = paged(&bench.storage, key, ReadOptions::ascending()).await;
    for limit in [1, 2, 3, 7, 100] {
        let ascending = paged(&bench.storage, key, ReadOptions::ascending().limit(limit)).await;
        assert_eq!(ascending, forwards, "forwards by {limit}");
        let mut descending =
            paged(&bench.storage, key, ReadOptions::descending().limit(limit)).await;
        descending.reverse();
        assert_eq!(descending, forwards, "backwards by {limit}");
    }
    forwards
}

#[tokio::test]
async fn r_10_a_damaged_line_costs_only_itself() {
    let bench = Bench::new();
    let before = lines(1..=2);
    for (name, damaged) in [
        ("random", &b"\x00\xff\xfe garbage"[..]),
        ("half", &lines(3..=3)[..25]),
        ("flipped", lines(3..=3).replace_last_digit().as_slice()),
        (
            "invalid-utf8",
            b"{\"seq\":3,\"time\":3,\"crc\":\"00000000\",\"data\":\"\xff\"}",
        ),
    ] {
        let key = key(&format!("c/{name}"));
        bench.plant(&key, &[&before, damaged, b"\n", &lines(4..=5)].concat());
        agrees(&bench, &key).await;
        let mut shown = expected(1..=5);
        shown[2].1 = "damaged".to_owned();
        assert_eq!(all(&bench.storage, &key).await, shown, "{name}");
        let entries = bench.storage.read_all(&key).await.unwrap();
        let EntryData::Damaged(Damage { offset, length, .. }) = &entries[2].data else {
            panic!("{name}: {:?}", entries[2]);
        };
        assert_eq!(
            (*offset, *length),
            (before.len() as u64, damaged.len() as u64 + 1)
        );
        assert_eq!(append(&bench.storage, &key, "1").await.first, 6);
    }
    assert_eq!(bench.storage.reports().unwrap(), []);
}

trait Flip {
    fn replace_last_digit(self) -> Self;
}

impl Flip for Vec<u8> {
    /// Changes the payload so that it is still JSON.
    fn replace_last_digit(mut self) -> Self {
        assert_eq!(self.pop(), Some(b'\n'));
        let at = self.iter().rposition(u8::is_ascii_digit).unwrap();
        self[at] = b'9';
        self
    }
}

#[tokio::test]
async fn r_10_lost_and_fused_lines_are_shown_by_their_numbers() {
    let bench = Bench::new();
    let fused = [&lines(3..=3)[..30], &lines(4..=4)].concat();
    for (name, bytes, gone) in [
        ("removed", [lines(1..=2), lines(5..=6)].concat(), vec![3, 4]),
        (
            "fused",
            [lines(1..=2), fused, lines(5..=6)].concat(),
            vec![3, 4],
        ),
        ("first-lost", lines(2..=6), vec![1]),
        ("twice", [lines(1..=4), lines(3..=6)].concat(), vec![]),
        (
            "junk-between",
            [lines(1..=3), b"junk\n".to_vec(), lines(4..=6)].concat(),
            vec![],
        ),
    ] {
        let key = key(&format!("c/{name}"));
        bench.plant(&key, &bytes);
        agrees(&bench, &key).await;
        let mut shown = expected(1..=6);
        for n in gone {
            shown[n - 1].1 = "damaged".to_owned();
        }
        assert_eq!(all(&bench.storage, &key).await, shown, "{name}");
        assert_eq!(append(&bench.storage, &key, "1").await.first, 7, "{name}");
    }
}

#[tokio::test]
async fn r_35_long_entries_and_their_neighbours_come_back_whole() {
    let bench = Bench::new();
    let key = key("c/s");
    let long = |n: usize| format!("\"{}\"", "x".repeat(n));
    let sizes = [10, 70_000, 20, 3_000_000, 65_536, 5, 131_072];
    let batch: Vec<NewEntry> = sizes.iter().map(|size| new_entry(&long(*size))).collect();
    bench.storage.append(&key, batch).await.unwrap();
    let shown: Vec<_> = sizes
        .iter()
        .zip(1..)
        .map(|(size, seq)| (seq, long(*size)))
        .collect();
    assert!(all(&bench.storage, &key).await == shown);
    agrees(&bench, &key).await;
    drop(bench.storage);
    let storage = super::open(bench.dir.path());
    assert!(all(&storage, &key).await == shown);
}

#[tokio::test]
async fn pages_deep_in_a_long_stream_are_right_from_both_sides() {
    let bench = Bench::new();
    let key = key("c/s");
    bench.plant(&key, &lines(1..=1000));
    for (cursor, first) in [
        (0, 1),
        (63, 64),
        (64, 65),
        (500, 501),
        (997, 998),
        (128, 129),
    ] {
        let options = ReadOptions::ascending().cursor(cursor).limit(3);
        let page = bench.storage.read(&key, options).await.unwrap();
        assert_eq!(
            page.entries.iter().map(super::short).collect::<Vec<_>>(),
            expected(first..=first + 2)
        );
        let options = ReadOptions::descending().cursor(cursor + 1).limit(3);
        let page = bench.storage.read(&key, options).await.unwrap();
        let mut seqs: Vec<_> = page.entries.iter().map(|entry| entry.seq).collect();
        seqs.reverse();
        let end = if cursor == 0 { 0 } else { cursor };
        assert_eq!(
            seqs,
            (end.saturating_sub(2).max(1)..=end).collect::<Vec<_>>()
        );
    }
    agrees(&bench, &key).await;
}

/// One thing that may happen to a file.
#[derive(Clone, Debug)]
enum Harm {
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    Flip(usize, u8),
    Insert(usize, Vec<u8>),
    Cut(usize),
    /// A whole entry that was elsewhere.
    Splice(usize, u64),
}

impl Harm {
    /// Whether it puts a sound line in another place: then no rule can tell for sure which one is right.
    fn moves_entries(&self) -> bool {
        matches!(self, Self::Double(_) | Self::Splice(..) | Self::Swap(..))
    }
}

fn harm() -> impl Strategy<Value = Harm> {
    let junk = prop_oneof![
        Just(b"\n".to_vec()),
        Just(vec![0; 600]),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(b"junk\n".to_vec()),
        prop::collection::vec(any::<u8>(), 1..20),
    ];
    let at = 0usize..1000;
    prop_oneof![
        at.clone().prop_map(Harm::Drop),
        at.clone().prop_map(Harm::Double),
        (at.clone(), at).prop_map(|(a, b)| Harm::Swap(a, b)),
        (0usize..100_000, 1u8..=255).prop_map(|(at, bits)| Harm::Flip(at, bits)),
        (0usize..100_000, junk).prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        (0usize..100_000).prop_map(Harm::Cut),
        (0usize..100_000, 1u64..40).prop_map(|(at, n)| Harm::Splice(at, n)),
    ]
}

fn apply(mut bytes: Vec<u8>, harm: Harm) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|it| *it == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let count = lines.len().max(1);
    match harm {
        _ if bytes.is_empty() => {}
        Harm::Drop(n) => drop(lines.remove(n % count)),
        Harm::Double(n) => lines.insert(n % count, lines[n % count].clone()),
        Harm::Swap(a, b) => lines.swap(a % count, b % count),
        Harm::Flip(at, bits) => {
            let at = at % bytes.len();
            bytes[at] ^= bits;
            return bytes;
        }
        Harm::Insert(at, junk) => {
            let at = at % bytes.len();
            bytes.splice(at..at, junk);
            return bytes;
        }
        Harm::Splice(at, n) => {
            let at = at % bytes.len();
            bytes.splice(at..at, super::lines(n..=n));
            return bytes;
        }
        Harm::Cut(at) => return bytes[..at % bytes.len()].to_vec(),
    }
    lines.concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn r_10_whatever_happened_to_a_file_both_directions_agree_and_it_goes_on(
        harms in prop::collection::vec(harm(), 1..4),
        count in 1u64..30,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let bench = Bench::new();
            let key = key("c/s");
            let moved = harms.iter().any(Harm::moves_entries);
            let bytes = harms.into_iter().fold(lines(1..=count), apply);
            bench.plant(&key, &bytes);
            let before = all(&bench.storage, &key).await;
            for (index, (seq, text)) in before.iter().enumerate() {
                assert_eq!(*seq, index as u64 + 1);
                assert!(text == "damaged" || *text == payload(*seq), "{text}");
            }
            agrees(&bench, &key).await;
            assert_eq!(append(&bench.storage, &key, "1").await.first, before.len() as u64 + 1);
            let after = all(&bench.storage, &key).await;
            assert!(moved || after.starts_with(&before));
            assert_eq!(after.len(), before.len() + 1);
            agrees(&bench, &key).await;
        });
    }

    #[test]
    fn r_38_any_json_text_comes_back_in_one_line(text in "[ \\n\\r]{0,3}(\"[^\"\\\\\\x00-\\x1f]{0,10}\"|-?[1-9][0-9]{0,30}(\\.[0-9]{1,20})?(e[0-9]{1,4})?|\\[[ \\n]*1,[ \\r\\n]*2\\])[ \\n]{0,2}") {
        let data = RawValue::from_string(text).unwrap();
        let mut line = Vec::new();
        encode(&mut line, 1, 0, data.get());
        let line = String::from_utf8(line).unwrap();
        prop_assert_eq!(line.lines().count(), 1);
        let end = format!("{}}}\n", data.get().replace(['\n', '\r'], " "));
        prop_assert!(line.ends_with(&end));
    }
}
