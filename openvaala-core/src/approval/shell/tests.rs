//! The verdicts over a corpus of lines, and what no way of writing a command may change.

use std::fmt::Write;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::Line;

/// Lines with the verdict that is expected: `+` for one that only reads, `-` for any other. `\n` stands for a line break.
const CORPUS: &str = include_str!("corpus.txt");

#[test]
fn s_87_lines_that_only_read_are_told_from_all_others() {
    let lines = CORPUS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut wrong = String::new();
    let mut count = 0;
    for line in lines {
        let (expected, text) = line.split_once(' ').unwrap();
        let text = text.replace("\\n", "\n");
        count += 1;
        let harm = Line::read(&text).harm();
        if (expected == "+") != harm.is_none() {
            writeln!(wrong, "{expected} {text:?}: {harm:?}").unwrap();
        }
    }
    assert_eq!(wrong, "");
    assert!(count >= 150, "{count}");
}

#[test]
fn commands_that_others_run_are_seen() {
    let cases = [
        (
            "sudo -u root rm -rf /x",
            vec!["sudo -u root rm -rf /x", "rm -rf /x"],
        ),
        (
            "bash -c 'cd a && git push'",
            vec!["bash -c 'cd a && git push'", "cd a", "git push"],
        ),
        (
            "find . -name x -exec rm {} +",
            vec!["find . -name x -exec rm {} +", "rm {}"],
        ),
        (
            "env A=1 nice -n 5 timeout 3 git push",
            vec![
                "env A=1 nice -n 5 timeout 3 git push",
                "nice -n 5 timeout 3 git push",
                "timeout 3 git push",
                "git push",
            ],
        ),
        ("ls | xargs -n1 r''m", vec!["ls", "xargs -n1 rm", "rm …"]),
        ("eval 'git push'", vec!["eval 'git push'", "git push"]),
        (
            "echo \"$(git push)\"",
            vec!["git push", "echo \"$(git push)\""],
        ),
    ];
    for (line, expected) in cases {
        let commands = Line::read(line).commands;
        let texts: Vec<String> = commands.iter().map(super::Command::text).collect();
        assert_eq!(texts, expected, "{line}");
    }
}

#[test]
fn a_line_nested_without_end_is_refused_and_does_no_harm() {
    for (open, close) in [("$(", ")"), ("(", ")"), ("{ ", "; }"), ("bash -c \"", "\"")] {
        let line = format!("{}rm x{}", open.repeat(5_000), close.repeat(5_000));
        assert!(Line::read(&line).harm().is_some(), "{open}");
    }
    assert!(Line::read(&"echo a; ".repeat(4_000)).harm().is_some());
}

/// Ways to write a line around another that run it all the same.
fn wrap(line: &str, way: u8) -> String {
    let quoted = format!("'{}'", line.replace('\'', r"'\''"));
    match way % 20 {
        0 => format!("({line})"),
        1 => format!("{{ {line}; }}"),
        2 => format!("echo $({line})"),
        3 => format!("true && {line}"),
        4 => format!("ls | {line}"),
        5 => format!("bash -c {quoted}"),
        6 => format!("eval {quoted}"),
        7 => format!("if {line}; then ls; fi"),
        8 => format!("for x in a b; do {line}; done"),
        9 => format!("f() {{ {line}; }}; f"),
        10 => format!("! {line}"),
        11 => format!("ls; {line} & wc"),
        12 => format!("echo \"a $({line}) b\""),
        13 => format!("cat <<EOF\n$({line})\nEOF"),
        14 => format!("case a in a) {line};; esac"),
        15 => format!("echo ${{x:-$({line})}}"),
        16 => format!("cat <({line})"),
        17 => format!("[[ -n $({line}) ]]"),
        18 => format!("env -i sh -c {quoted}"),
        _ => format!("while {line}; do break; done"),
    }
}

/// Ways to write the same word.
fn write_word(word: &str, way: u8) -> String {
    match way % 5 {
        0 => format!("'{word}'"),
        1 => format!("\"{word}\""),
        2 => format!("\\{word}"),
        3 => {
            let (first, rest) = word.split_at(1);
            format!("{first}''{rest}")
        }
        _ => word.to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_way_of_writing_it_makes_a_harmful_command_harmless(
        command in prop::sample::select(&[
            ("rm", "x"), ("touch", "x"), ("git", "push"), ("sed", "-i"), ("tee", "x"), ("curl", "x"), ("chmod", "x"),
        ]),
        words in (any::<u8>(), any::<u8>()),
        wraps in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut line = format!("{} {}", write_word(command.0, words.0), write_word(command.1, words.1));
        for way in wraps {
            line = wrap(&line, way);
        }
        prop_assert!(Line::read(&line).harm().is_some(), "{line}");
    }

    #[test]
    fn any_text_is_read_without_a_fault(line in "[a-z$(){}\\[\\]<>|&;'\"`\\\\ \n*?=!#-]{0,40}") {
        let _ = Line::read(&line).harm();
    }
}
