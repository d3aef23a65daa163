use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn cleaned(bytes: &[u8], piece: usize) -> String {
    let (mut screen, mut text) = (Screen::default(), String::new());
    bytes
        .chunks(piece)
        .for_each(|chunk| screen.push(chunk, &mut text));
    screen.finish(&mut text);
    text
}

#[track_caller]
fn check(raw: &str, expected: &str) {
    assert_eq!(cleaned(raw.as_bytes(), raw.len().max(1)), expected);
    assert_eq!(cleaned(raw.as_bytes(), 1), expected, "byte by byte");
}

#[test]
fn colours_and_cursor_movements_go() {
    check(
        "\x1b[1;31mbold red\x1b[0m\x1b[2J\x1b[10;20H plain",
        "bold red plain",
    );
    check("\x1b(Bcharset\x1b=keypad\x1b7saved", "charsetkeypadsaved");
    check("\u{9b}31mone byte", "one byte");
}

#[test]
fn s_32_titles_links_and_clipboard_go() {
    check(
        "a\x1b]0;title\x07b\x1b]8;;https://x.org\x1b\\link\x1b]8;;\x1b\\c",
        "ablinkc",
    );
    check(
        "a\x1b]52;c;aGVsbG8=\x07b\x1bPq#0\x1b\\c\x1b_apc\x1b\\d",
        "abcd",
    );
}

#[test]
fn control_characters_go_and_tabs_and_line_breaks_stay() {
    check("a\0b\x07c\x08\td\x7f\ne\u{85}f", "abc\td\nef");
}

#[test]
fn of_a_line_that_is_overwritten_the_last_state_is_left() {
    check("10%\r20%\r\ndone\r\r\nend\r", "20%\ndone\nend");
    check("100 of 100\rdone\n", "doneof 100\n");
    check("100 of 100\r\x1b[Kdone\n", "done\n");
    check("downloading\x1b[2K\x1b[1Gdone\n", "done\n");
    check("漢字\rab\n", "ab\n");
    check("typo\x08\x08\x08rue\n", "true\n");
    check("abcd\x1b[2Dxy\r\x1b[1CB\n", "aBxy\n");
    check("\r\n\n\r", "\n\n");
}

#[test]
fn a_prompt_is_shown_before_its_line_ends_and_not_overwritten_then() {
    let (mut screen, mut text) = (Screen::default(), String::new());
    screen.push(b"name? ", &mut text);
    assert_eq!(text, "");
    screen.flush(&mut text);
    screen.push(b"Ada\n10%", &mut text);
    screen.flush(&mut text);
    screen.flush(&mut text);
    screen.push(b"\r20%\n", &mut text);
    assert_eq!(text, "name? Ada\n10%\n20%\n");
}

#[test]
fn a_line_without_end_is_given_out_in_between() {
    let (mut screen, mut text) = (Screen::default(), String::new());
    for _ in 0..1_000 {
        screen.push(&[b'x'; 1_000], &mut text);
    }
    assert!(text.len() > 990_000, "{} bytes came", text.len());
    screen.finish(&mut text);
    assert_eq!(text.len(), 1_000_000);
}

#[test]
fn an_unfinished_control_string_hides_one_line_at_most() {
    check("a\x1b]0;never ended\nnext line", "a\nnext line");
    let long = format!("\x1b]{}", "x".repeat(10_000));
    assert!(cleaned(long.as_bytes(), 100).len() > 5_000);
}

#[test]
fn a_broken_sequence_ends_at_the_next_text() {
    check("a\x1b[31\nb", "a\nb");
    check("a\x1b漢", "a漢");
    check("a\x1b[12漢", "a漢");
}

#[test]
fn r_37_bytes_that_are_no_utf8_are_replaced() {
    assert_eq!(
        cleaned(b"a\xff\xe6\xbc\xa2\xe6\xbc", 1),
        "a\u{fffd}漢\u{fffd}"
    );
}

proptest! {
    #[test]
    fn any_bytes_give_text_without_control_characters(bytes: Vec<u8>) {
        let text = cleaned(&bytes, bytes.len().max(1));
        prop_assert!(text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
    }

    #[test]
    fn the_size_of_the_pieces_does_not_matter(
        parts in prop::collection::vec(
            prop::sample::select(vec!["\x1b", "[", "]", "\x07", "\\", "31m", "\r", "\n", "漢", "text", "\u{9b}"]),
            0..40,
        ),
        piece in 1_usize..6,
    ) {
        let raw = parts.concat();
        prop_assert_eq!(cleaned(raw.as_bytes(), piece), cleaned(raw.as_bytes(), raw.len().max(1)));
    }

    #[test]
    fn plain_text_stays_as_it_is(text in "[ -~\n\t漢🦀é]*") {
        prop_assert_eq!(cleaned(text.as_bytes(), 3), text);
    }
}
