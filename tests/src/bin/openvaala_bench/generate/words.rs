//! Titles and texts that follow from a seed.

use openvaala_tests::dice::Dice;

/// In one title of ten thousand, and in the first.
pub(crate) const RARE: &str = "zeppelin";
/// In every third title.
pub(crate) const COMMON: &str = "parser";
/// In no title.
pub(crate) const ABSENT: &str = "quokka";
/// Two letters that stand in some titles.
pub(crate) const SHORT: &str = "go";

const VERBS: [&str; 12] = [
    "Fix",
    "Explain",
    "Rename",
    "Speed up",
    "Review",
    "Port",
    "Document",
    "Find",
    "Undo",
    "Split",
    "Test",
    "Größe von",
];
const THINGS: [&str; 16] = [
    "the flaky test",
    "a memory leak",
    "the login page",
    "error messages",
    "the build",
    "old migrations",
    "the cargo features",
    "unused imports",
    "the release notes",
    "a race",
    "the retry loop",
    "日本語 names",
    "the schema",
    "time zones",
    "the config loader",
    "slow queries",
];
const PLACES: [&str; 8] = [
    "in the client",
    "of the server",
    "for CI",
    "in the terminal",
    "on macOS",
    "before Friday",
    "again",
    "in two steps",
];
const POOL_WORDS: [&str; 32] = [
    "error",
    "expected",
    "found",
    "the",
    "a",
    "fn",
    "let",
    "mut",
    "return",
    "warning",
    "src/main.rs:41",
    "0x7f3a",
    "not",
    "value",
    "\"quoted\"",
    "path\\to",
    "test",
    "ok",
    "failed",
    "of",
    "in",
    "with",
    "{",
    "}",
    "=>",
    "12.5",
    "// see",
    "assert_eq!",
    "running",
    "none",
    "import",
    "file",
];
const POOL: usize = 1 << 20;

/// A title such as a person's first message gives.
pub(crate) fn title(number: u64, dice: &mut Dice) -> String {
    let mut title = [pick(&VERBS, dice), pick(&THINGS, dice), pick(&PLACES, dice)].join(" ");
    if number.is_multiple_of(10_000) {
        title = format!("{title}, {RARE}");
    }
    if number % 3 == 1 {
        title = format!("{title}, {COMMON}");
    }
    if number % 47 == 5 {
        title = format!("{title} ({SHORT})");
    }
    title
}

fn pick<'a>(from: &[&'a str], dice: &mut Dice) -> &'a str {
    let place = dice.below(from.len() as u64) as usize;
    from.get(place).copied().unwrap_or_default()
}

/// A long text that pieces are cut from, for making each letter anew would take most of the time.
#[derive(Debug)]
pub(crate) struct Pool(String);

impl Pool {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut text = String::with_capacity(POOL + 64);
        while text.len() < POOL {
            text.push_str(pick(&POOL_WORDS, &mut dice));
            text.push(if dice.below(12) == 0 { '\n' } else { ' ' });
        }
        Self(text)
    }

    /// That many bytes of ASCII, from anywhere.
    pub(crate) fn text(&self, length: usize, dice: &mut Dice) -> String {
        let mut text = String::with_capacity(length);
        let mut from = dice.below(self.0.len() as u64) as usize;
        while text.len() < length {
            let piece = self.0.get(from..).unwrap_or_default();
            let wanted = piece.len().min(length - text.len());
            text.push_str(piece.get(..wanted).unwrap_or_default());
            from = 0;
        }
        text
    }
}
