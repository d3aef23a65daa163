//! Terminal output as plain text.

use super::decode::Decoder;

/// A control string longer than this is no control string, but text after a stray byte.
const LONGEST_CONTROL_STRING: usize = 4_096;

/// Turns what a command writes to a terminal into plain text, piece by piece.
///
/// Escape sequences (colours, cursor, titles, links) and control characters go; tabs and line
/// breaks stay; a carriage return becomes a line break; what is no UTF-8 becomes U+FFFD. Use one
/// for each stream, so that characters and sequences cut between two pieces are joined again.
///
/// ```
/// use openvaala_executor::output::Screen;
///
/// let mut screen = Screen::default();
/// let mut text = String::new();
/// screen.push(b"\x1b[31mred\x1b[", &mut text);
/// screen.push(b"0m and plain\r\n", &mut text);
/// assert_eq!(text, "red and plain\n");
/// ```
#[derive(Debug, Default)]
pub struct Screen {
    decoder: Decoder,
    parser: Parser,
}

#[derive(Debug, Default)]
struct Parser {
    state: State,
    /// A carriage return came last; it is one line break together with a line feed.
    after_return: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Text,
    /// After ESC, or within its intermediate bytes.
    Escape,
    /// Within ESC [ … final.
    ControlSequence,
    /// Within a title, link or the like, which ends with BEL or ESC \.
    ControlString { length: usize },
    /// At the ESC that may end a control string.
    ControlStringEscape { length: usize },
}

impl Screen {
    /// Takes the next bytes and appends what is text to `text`.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        let parser = &mut self.parser;
        self.decoder.push(bytes, |piece| {
            piece.chars().for_each(|c| parser.push(c, text))
        });
    }

    /// Appends what was held back for bytes that did not come.
    pub fn finish(&mut self, text: &mut String) {
        let parser = &mut self.parser;
        self.decoder
            .finish(|piece| piece.chars().for_each(|c| parser.push(c, text)));
        if std::mem::take(&mut parser.after_return) {
            text.push('\n');
        }
    }
}

impl Parser {
    fn push(&mut self, c: char, text: &mut String) {
        self.state = match (self.state, c) {
            (State::Text, _) => self.push_text(c, text),
            (State::ControlString { .. }, '\u{07}') | (State::ControlStringEscape { .. }, '\\') => {
                State::Text
            }
            (State::ControlString { length }, '\u{1b}') => State::ControlStringEscape { length },
            (State::ControlString { length } | State::ControlStringEscape { length }, _)
                if c != '\n' && length < LONGEST_CONTROL_STRING =>
            {
                State::ControlString { length: length + 1 }
            }
            (_, '\u{1b}') => State::Escape,
            (State::Escape, '[') => State::ControlSequence,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::ControlString { length: 0 },
            (State::Escape, ' '..='/') => State::Escape,
            (State::Escape, '0'..='~') | (State::ControlSequence, '@'..='~') => State::Text,
            (State::ControlSequence, ' '..='?') => State::ControlSequence,
            // No such sequence: what comes is text again.
            (
                State::Escape
                | State::ControlSequence
                | State::ControlString { .. }
                | State::ControlStringEscape { .. },
                _,
            ) => self.push_text(c, text),
        };
    }

    fn push_text(&mut self, c: char, text: &mut String) -> State {
        if std::mem::take(&mut self.after_return) && c != '\r' {
            text.push('\n');
            if c == '\n' {
                return State::Text;
            }
        }
        match c {
            '\u{1b}' => return State::Escape,
            '\u{9b}' => return State::ControlSequence,
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => return State::ControlString { length: 0 },
            '\r' => self.after_return = true,
            '\n' | '\t' => text.push(c),
            c if c.is_control() => {}
            c => text.push(c),
        }
        State::Text
    }
}

#[cfg(test)]
mod tests;
