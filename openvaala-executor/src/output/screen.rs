//! Terminal output as plain text.

use super::decode::Decoder;
use super::line::Line;

/// A control string longer than this is no control string, but text after a stray byte.
const LONGEST_CONTROL_STRING: usize = 4_096;

/// Turns what a command writes to a terminal into the plain text that the terminal would show in
/// the end, piece by piece.
///
/// Escape sequences (colours, titles, links) and control characters go; tabs and line breaks stay;
/// what is no UTF-8 becomes U+FFFD. Within a line, overwriting after a carriage return or a
/// backspace and erasing do what they do on a terminal, so that of a progress bar only its last
/// state is left; moves to other lines are dropped. A line is given out when it ends; a very long
/// one before. Use one for each stream, so that what is cut between two pieces is joined again.
///
/// ```
/// use openvaala_executor::output::Screen;
///
/// let mut screen = Screen::default();
/// let mut text = String::new();
/// screen.push(b"\x1b[31mred\x1b[", &mut text);
/// screen.push(b"0m and plain\r\n 10 %\r100 %\n", &mut text);
/// assert_eq!(text, "red and plain\n100 %\n");
/// ```
#[derive(Debug, Default)]
pub struct Screen {
    decoder: Decoder,
    parser: Parser,
}

#[derive(Debug, Default)]
struct Parser {
    state: State,
    line: Line,
    /// A carriage return came; what it does depends on whether the line ends with it.
    at_return: bool,
    /// The first number of a control sequence, if there is one.
    number: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Text,
    /// After ESC, or within its intermediate bytes.
    Escape,
    /// Within ESC [ … final, in the first number.
    ControlSequence,
    /// Within ESC [ … final, behind the first number.
    LaterNumbers,
    /// Within a title, link or the like, which ends with BEL or ESC \.
    ControlString { length: usize },
    /// At the ESC that may end a control string.
    ControlStringEscape { length: usize },
}

impl Screen {
    /// Takes the next bytes and appends the lines that are complete to `text`.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        let parser = &mut self.parser;
        self.decoder.push(bytes, |piece| parser.push(piece, text));
    }

    /// Appends the line that is being written, such as a prompt; more of it may come.
    pub fn flush(&mut self, text: &mut String) {
        self.parser.line.give(text);
    }

    /// Appends what was held back for bytes that did not come.
    pub fn finish(&mut self, text: &mut String) {
        let parser = &mut self.parser;
        self.decoder.finish(|piece| parser.push(piece, text));
        parser.line.give(text);
    }
}

impl Parser {
    fn push(&mut self, piece: &str, text: &mut String) {
        let mut rest = piece;
        while !rest.is_empty() {
            if matches!(self.state, State::Text) {
                let plain = if self.at_return {
                    rest.find(char::is_control).unwrap_or(rest.len())
                } else {
                    plain_length(rest)
                };
                if plain > 0 {
                    self.write(&rest[..plain], text);
                    rest = &rest[plain..];
                    continue;
                }
            }
            let mut chars = rest.chars();
            if let Some(c) = chars.next() {
                self.state = self.step(c, text);
            }
            rest = chars.as_str();
        }
    }

    fn write(&mut self, plain: &str, text: &mut String) {
        if std::mem::take(&mut self.at_return) {
            self.line.home(text);
        }
        self.line.write(plain, text);
    }

    fn step(&mut self, c: char, text: &mut String) -> State {
        match (self.state, c) {
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
            (State::Escape, '[') => self.begin_sequence(),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::ControlString { length: 0 },
            (State::Escape, ' '..='/') => State::Escape,
            (State::Escape, '0'..='~') => State::Text,
            (State::ControlSequence, '@'..='~') => {
                self.end_sequence(c, text);
                State::Text
            }
            (State::ControlSequence, ' '..='?') => self.in_sequence(c),
            (State::LaterNumbers, '@'..='~') => {
                self.end_sequence(c, text);
                State::Text
            }
            (State::LaterNumbers, ' '..='?') => State::LaterNumbers,
            // No such sequence: what comes is text again.
            (
                State::Escape
                | State::ControlSequence
                | State::LaterNumbers
                | State::ControlString { .. }
                | State::ControlStringEscape { .. },
                _,
            ) => self.push_text(c, text),
        }
    }

    fn begin_sequence(&mut self) -> State {
        self.number = None;
        State::ControlSequence
    }

    fn in_sequence(&mut self, c: char) -> State {
        let Some(digit) = c.to_digit(10) else {
            return State::LaterNumbers;
        };
        let number = self.number.unwrap_or(0).saturating_mul(10);
        self.number = Some(number.saturating_add(digit as usize));
        State::ControlSequence
    }

    /// Does what stays within the line.
    fn end_sequence(&mut self, last: char, text: &mut String) {
        if !matches!(last, 'C' | 'D' | 'G' | 'K') {
            return;
        }
        if std::mem::take(&mut self.at_return) {
            self.line.home(text);
        }
        match (last, self.number) {
            ('C', count) => self.line.forward(count.unwrap_or(1).max(1)),
            ('D', count) => self.line.back(count.unwrap_or(1).max(1)),
            ('G', column) => {
                self.line.home(text);
                self.line.forward(column.unwrap_or(1).saturating_sub(1));
            }
            ('K', None | Some(0)) => self.line.erase_end(),
            ('K', Some(2)) => self.line.erase(),
            _ => {}
        }
    }

    fn push_text(&mut self, c: char, text: &mut String) -> State {
        match c {
            '\u{1b}' => return State::Escape,
            '\u{9b}' => return self.begin_sequence(),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => return State::ControlString { length: 0 },
            '\r' => self.at_return = true,
            '\n' => {
                self.at_return = false;
                self.line.end(text);
            }
            '\u{8}' if !self.at_return => self.line.back(1),
            '\t' => self.write("\t", text),
            c if c.is_control() => {}
            c => self.write(c.encode_utf8(&mut [0; 4]), text),
        }
        State::Text
    }
}

/// How much of a text holds nothing but characters, tabs and line breaks, which is most of what
/// there is and may go as a whole. It may stop before a character that needs a closer look.
fn plain_length(text: &str) -> usize {
    // 0xC2 begins the control characters above ASCII, and some others.
    let special = |byte: &u8| match byte {
        b'\n' | b'\t' => false,
        0..0x20 | 0x7f | 0xc2 => true,
        _ => false,
    };
    let bytes = text.as_bytes();
    bytes.iter().position(special).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests;
