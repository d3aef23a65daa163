//! The patterns of rules.

/// How far `*` reaches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Star {
    /// Over anything.
    Text,
    /// Over anything but `/`; `**` goes over that as well, and `**/` also stands for nothing.
    Path,
}

/// Whether a text fits a pattern as a whole.
pub(super) fn fits(pattern: &str, text: &str, star: Star) -> bool {
    let pattern = pieces(pattern, star);
    let text: Vec<char> = text.chars().collect();
    // Which places of the text can be reached with the pieces so far; no pattern takes more than pieces times length.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for piece in pattern {
        reached = advance(&reached, &text, piece, star);
    }
    reached.last().copied().unwrap_or(false)
}

/// Whether a pattern has a wildcard.
#[cfg(any(test, feature = "tools"))]
pub(super) fn has_wildcard(pattern: &str) -> bool {
    pieces(pattern, Star::Text)
        .iter()
        .any(|piece| !matches!(piece, Piece::Exact(_)))
}

/// The pattern that fits that text and nothing else.
pub(super) fn exactly(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Piece {
    Exact(char),
    One,
    Any,
    AnyDeep,
    /// `**/`: any folders, or none.
    Folders,
}

fn pieces(pattern: &str, star: Star) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        pieces.push(match char {
            '\\' => Piece::Exact(chars.next().unwrap_or('\\')),
            '?' => Piece::One,
            '*' if star == Star::Path && chars.next_if_eq(&'*').is_some() => {
                let begins = matches!(pieces.last(), None | Some(Piece::Exact('/')));
                if begins && chars.next_if_eq(&'/').is_some() {
                    Piece::Folders
                } else {
                    Piece::AnyDeep
                }
            }
            '*' => Piece::Any,
            char => Piece::Exact(char),
        });
    }
    pieces
}

fn advance(reached: &[bool], text: &[char], piece: Piece, star: Star) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    let crosses = |char: char| star == Star::Text || char != '/';
    let mut open = false;
    for at in 0..reached.len() {
        let before = at
            .checked_sub(1)
            .and_then(|before| text.get(before))
            .copied();
        let step = at.checked_sub(1).is_some_and(|before| reached[before]);
        next[at] = match piece {
            Piece::Exact(char) => step && before == Some(char),
            Piece::One => step && before.is_some_and(crosses),
            Piece::Any => {
                open = reached[at] || (open && before.is_some_and(crosses));
                open
            }
            Piece::AnyDeep => {
                open |= reached[at];
                open
            }
            Piece::Folders => {
                open |= step;
                reached[at] || (open && before == Some('/'))
            }
        };
    }
    next
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_of_a_path_stays_in_its_folder_and_two_do_not() {
        let cases = [
            ("/w/*.rs", "/w/a.rs", true),
            ("/w/*.rs", "/w/b/a.rs", false),
            ("/w/**", "/w/b/a.rs", true),
            ("/w/**/*.rs", "/w/a.rs", true),
            ("/w/**/*.rs", "/w/b/c/a.rs", true),
            ("/w/**/.env", "/w/my.env", false),
            ("/w/?.rs", "/w/a.rs", true),
            ("/w/?", "/w//", false),
            ("/w/\\*", "/w/a", false),
            ("/w/\\*", "/w/*", true),
        ];
        let found =
            cases.map(|(pattern, text, _)| (pattern, text, fits(pattern, text, Star::Path)));
        assert_eq!(found, cases);
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_long_time() {
        let pattern = "*a".repeat(500);
        assert!(!fits(&pattern, &"a".repeat(499), Star::Text));
    }

    proptest! {
        #[test]
        fn an_exact_pattern_fits_its_own_text_only(text in "[a*?\\\\/ ]{0,8}", other in "[a*?\\\\/ ]{0,8}") {
            let pattern = exactly(&text);
            prop_assert!(!has_wildcard(&pattern));
            for star in [Star::Text, Star::Path] {
                prop_assert!(fits(&pattern, &text, star));
                prop_assert_eq!(fits(&pattern, &other, star), text == other);
            }
        }

        #[test]
        fn a_star_is_any_text(before in "[a-c]{0,4}", middle in "[a-c /]{0,4}", after in "[a-c]{0,4}") {
            let text = format!("{before}{middle}{after}");
            let pattern = format!("{before}*{after}");
            prop_assert!(fits(&pattern, &text, Star::Text));
            prop_assert_eq!(fits(&pattern, &text, Star::Path), !middle.contains('/'));
        }
    }
}
