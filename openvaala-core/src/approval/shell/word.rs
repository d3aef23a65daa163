//! What a word of a line is once the shell has read it.

use tree_sitter::Node;

/// A word, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Word {
    /// What it is, if that is known.
    pub(crate) text: Option<String>,
    /// How it begins in any case.
    pub(crate) prefix: String,
    /// As it was written.
    pub(crate) raw: String,
}

impl Word {
    /// A word of that text.
    pub(crate) fn exact(text: &str) -> Self {
        Self {
            text: Some(text.to_owned()),
            prefix: text.to_owned(),
            raw: text.to_owned(),
        }
    }

    /// Words, or a part of one, of which nothing is known.
    pub(crate) fn unknown(raw: &str) -> Self {
        Self {
            text: None,
            prefix: String::new(),
            raw: raw.to_owned(),
        }
    }

    /// Whether it may be an option of a command.
    pub(crate) fn may_be_option(&self) -> bool {
        self.prefix.is_empty() && self.text.is_none() || self.prefix.starts_with(['-', '+'])
    }

    /// As it would stand in a rule.
    pub(crate) fn quoted(&self) -> String {
        let Some(text) = &self.text else {
            return self.raw.clone();
        };
        let is_plain = |char: char| char.is_alphanumeric() || "_-./:=,@%+{}[]~^#!*?".contains(char);
        if !text.is_empty() && text.chars().all(is_plain) {
            text.clone()
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    }

    /// Reads the word of a node.
    pub(super) fn of(node: Node<'_>, source: &str) -> Self {
        let mut reading = Reading::default();
        reading.node(node, source);
        let raw = slice(source, node).to_owned();
        Self {
            text: (!reading.is_open).then(|| reading.text.clone()),
            prefix: reading.text,
            raw,
        }
    }
}

/// The text of a node.
pub(super) fn slice<'a>(source: &'a str, node: Node<'_>) -> &'a str {
    source.get(node.byte_range()).unwrap_or_default()
}

/// The known beginning of a word, and whether more may follow.
#[derive(Default)]
struct Reading {
    text: String,
    is_open: bool,
}

impl Reading {
    fn push(&mut self, char: char) {
        if !self.is_open {
            self.text.push(char);
        }
    }

    fn node(&mut self, node: Node<'_>, source: &str) {
        let text = slice(source, node);
        match node.kind() {
            "word" | "number" | "variable_name" | "special_variable_name" | "test_operator" => {
                self.unquoted(text);
            }
            "raw_string" => {
                let inner = text
                    .strip_prefix('\'')
                    .and_then(|text| text.strip_suffix('\''));
                match inner {
                    Some(inner) => inner.chars().for_each(|char| self.push(char)),
                    None => self.is_open = true,
                }
            }
            "string" => self.double_quoted(node, source),
            "concatenation" | "command_name" => {
                let mut cursor = node.walk();
                let mut end = node.start_byte();
                let mut children = node.children(&mut cursor).peekable();
                while let Some(child) = children.next() {
                    // What lies between two parts is none of them.
                    self.is_open |= child.start_byte() != end;
                    end = child.end_byte();
                    // Braces with nothing between are two characters like others.
                    let is_brace = |node: &Node<'_>, text: &str| slice(source, *node) == text;
                    let next =
                        children.next_if(|next| is_brace(&child, "{") && is_brace(next, "}"));
                    if let Some(next) = next {
                        self.is_open |= next.start_byte() != end;
                        end = next.end_byte();
                        self.push('{');
                        self.push('}');
                    } else {
                        self.node(child, source);
                    }
                }
                self.is_open |= end != node.end_byte();
            }
            _ => self.is_open = true,
        }
    }

    fn unquoted(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        if chars.peek() == Some(&'~') && self.text.is_empty() {
            self.is_open = true;
        }
        while let Some(char) = chars.next() {
            match char {
                '\\' => match chars.next() {
                    Some('\n') => {}
                    Some(char) => self.push(char),
                    None => self.is_open = true,
                },
                '{' if chars.next_if_eq(&'}').is_some() => {
                    self.push('{');
                    self.push('}');
                }
                // Patterns of files, braces, and what should not be here at all.
                '*' | '?' | '[' | '{' | '}' | '$' | '`' | '"' | '\'' | '(' | ')' | '!' => {
                    self.is_open = true;
                }
                char => self.push(char),
            }
        }
    }

    fn double_quoted(&mut self, node: Node<'_>, source: &str) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "\"" | "string_content" => {}
                _ => self.is_open = true,
            }
        }
        let text = slice(source, node);
        let inner = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        // An expansion somewhere in it leaves only what stands before it; an escaped one is text.
        let Some(inner) = inner else {
            self.is_open = true;
            return;
        };
        let was_open = self.is_open;
        self.is_open = false;
        let mut chars = inner.chars();
        while let Some(char) = chars.next() {
            match char {
                '\\' => match chars.next() {
                    Some('\n') => {}
                    Some(char @ ('$' | '`' | '"' | '\\')) => self.push(char),
                    Some(char) => {
                        self.push('\\');
                        self.push(char);
                    }
                    None => self.is_open = true,
                },
                '$' | '`' => self.is_open = true,
                char => self.push(char),
            }
        }
        self.is_open |= was_open;
    }
}
