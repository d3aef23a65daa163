use std::fs;
use std::path::PathBuf;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{SseError, SseEvent, SseReader};

fn fixtures() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/streams");
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "sse"));
    paths.sort();
    paths
}

fn read(pieces: &[&[u8]]) -> Result<Vec<SseEvent>, SseError> {
    let mut reader = SseReader::new();
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(reader.feed(piece)?);
    }
    events.extend(reader.finish()?);
    Ok(events)
}

fn data(bytes: &[u8]) -> Vec<String> {
    read(&[bytes])
        .unwrap()
        .into_iter()
        .map(|event| event.data)
        .collect()
}

/// Cuts bytes at the given places.
fn cut<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}

#[test]
fn recorded_streams_give_the_same_events_byte_by_byte() {
    let paths = fixtures();
    assert!(paths.len() > 60, "fixtures are missing: {paths:?}");
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), read(&[&bytes]), "{}", path.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn recorded_streams_give_the_same_events_however_they_are_cut(
        fixture: Index,
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let paths = fixtures();
        let bytes = fs::read(fixture.get(&paths)).unwrap();
        prop_assert_eq!(read(&cut(&bytes, &cuts)), read(&[&bytes]));
    }

    #[test]
    fn odd_streams_give_the_same_events_however_they_are_cut(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "data: a", "data:b", "data:  c", "data", "event: x", "event:", ": comment", "id: 7",
                "retry: 1", "", "", "\u{feff}data: bom", "data: 漢字 🦀", "unknown: field", "data:x:y",
            ]),
            0..20,
        ),
        ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n"]), 20),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let text: String = lines.iter().zip(&ends).flat_map(|(line, end)| [*line, *end]).collect();
        prop_assert_eq!(read(&cut(text.as_bytes(), &cuts)), read(&[text.as_bytes()]));
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&[&bytes]);
    }
}

#[test]
fn every_line_end_closes_a_line() {
    for end in ["\n", "\r", "\r\n"] {
        let text = ["event: e", "data: a", "data: b", "", "data: c", ""].join(end);
        let first = SseEvent {
            event: Some("e".to_owned()),
            data: "a\nb".to_owned(),
        };
        let second = SseEvent {
            event: None,
            data: "c".to_owned(),
        };
        assert_eq!(read(&[text.as_bytes()]), Ok(vec![first, second]), "{end:?}");
    }
}

#[test]
fn only_one_space_after_the_colon_is_dropped() {
    assert_eq!(data(b"data:  two\n\ndata:none\n\n"), [" two", "none"]);
}

#[test]
fn comments_and_fields_for_resuming_are_skipped() {
    assert_eq!(
        data(b": OPENROUTER PROCESSING\n\nid: 1\nretry: 10\ndata: a\n\n"),
        ["a"]
    );
}

#[test]
fn an_event_without_data_is_no_event() {
    assert_eq!(data(b"event: ping\n\ndata: a\n\n"), ["a"]);
    assert_eq!(data(b"data:\n\n"), [""]);
}

#[test]
fn a_byte_order_mark_is_skipped_at_the_beginning_only() {
    assert_eq!(
        data(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"),
        ["a"]
    );
}

#[test]
fn the_last_event_needs_no_blank_line() {
    assert_eq!(data(b"data: a\n\ndata: [DONE]"), ["a", "[DONE]"]);
    assert_eq!(data(b"data: a\n\ndata: [DONE]\n"), ["a", "[DONE]"]);
}

#[test]
fn m_36_a_line_without_end_is_refused() {
    let mut reader = SseReader::with_limit(10);
    assert_eq!(reader.feed(b"data: 789"), Ok(vec![]));
    assert_eq!(reader.feed(b"0x"), Err(SseError::TooLong { limit: 10 }));
}

#[test]
fn m_36_an_event_of_endless_lines_is_refused() {
    let mut reader = SseReader::with_limit(10);
    assert_eq!(reader.feed(b"data: 123\ndata: 456\n"), Ok(vec![]));
    assert_eq!(
        reader.feed(b"data: 789\n"),
        Err(SseError::TooLong { limit: 10 })
    );
}
