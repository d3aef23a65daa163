use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

/// Texts of one, two, three and four bytes a character.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "\n",
        "é",
        "漢",
        "字",
        "🦀",
        "👩‍👩‍👧",
        "line of text ",
    ]);
    prop::collection::vec(pieces, 0..400).prop_map(|pieces| pieces.concat())
}

/// Where a text is cut to be pushed in pieces, characters cut too.
fn pushed(bytes: &[u8], piece: usize, cap: usize) -> Clipped {
    let mut clip = Clip::new(cap);
    bytes.chunks(piece).for_each(|chunk| clip.push(chunk));
    clip.finish()
}

fn parts(clipped: &str) -> (&str, usize, &str) {
    let (head, rest) = clipped.split_once("\n[… ").unwrap();
    let (number, tail) = rest.split_once(" bytes left out …]\n").unwrap();
    (head, number.replace(',', "").parse().unwrap(), tail)
}

proptest! {
    #[test]
    fn the_text_never_exceeds_the_cap(text in texts(), cap in 128_usize..600, piece in 1_usize..50) {
        prop_assert!(pushed(text.as_bytes(), piece, cap).text.len() <= cap);
    }

    #[test]
    fn a_text_that_fits_is_kept_whole(text in texts(), piece in 1_usize..50) {
        let clipped = pushed(text.as_bytes(), piece, text.len());
        prop_assert_eq!(clipped, Clipped { text, cut: false });
    }

    #[test]
    fn head_number_and_tail_add_up_to_the_text(text in texts(), cap in 128_usize..600, piece in 1_usize..50) {
        let clipped = pushed(text.as_bytes(), piece, cap);
        prop_assert_eq!(clipped.cut, text.len() > cap);
        if clipped.cut {
            let (head, left_out, tail) = parts(&clipped.text);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert_eq!(head.len() + left_out + tail.len(), text.len());
            prop_assert!(head.len() + tail.len() + 64 + 6 >= cap, "it uses its room");
        }
    }

    #[test]
    fn the_size_of_the_pieces_does_not_matter(text in texts(), cap in 128_usize..600, piece in 1_usize..50) {
        prop_assert_eq!(pushed(text.as_bytes(), piece, cap), clip_text(&text, cap));
    }

    #[test]
    fn any_bytes_give_the_same_text_as_a_lossy_decoding(bytes: Vec<u8>, piece in 1_usize..9) {
        let clipped = pushed(&bytes, piece, 4_000);
        prop_assert_eq!(clipped.text, String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn s_98_memory_stays_bounded_under_a_flood() {
    let mut clip = Clip::new(30_000);
    for _ in 0..2_000 {
        clip.push(&[b'y'; 65_536]);
    }
    assert!(clip.kept.tail.capacity() + clip.kept.head.capacity() < 200_000);
    let clipped = clip.finish();
    assert_eq!(parts(&clipped.text).1, 2_000 * 65_536 - 30_000 + 64);
}

#[test]
fn numbers_are_grouped_by_thousands() {
    let grouped = [0, 999, 1_000, 123_456, 1_234_567].map(grouped);
    assert_eq!(grouped, ["0", "999", "1,000", "123,456", "1,234,567"]);
}
