//! Goes over the tree of a line.

use tree_sitter::{Node, Parser};

use super::word::{Word, slice};
use super::{Command, Line, variable, wrapper};

/// How deep a line may be nested, also by commands that run lines.
const MAX_DEPTH: usize = 48;
/// The most commands that a line may have.
const MAX_COMMANDS: usize = 500;

/// Collects what a line does.
pub(super) struct Walk<'a> {
    source: &'a str,
    line: Line,
    depth: usize,
}

impl<'a> Walk<'a> {
    /// Reads a line that stands so deep within others.
    pub(super) fn read(source: &'a str, depth: usize) -> Line {
        if depth > MAX_DEPTH {
            return Line::not_understood("it is nested too deep");
        }
        let mut parser = Parser::new();
        let ready = parser.set_language(&tree_sitter_bash::LANGUAGE.into());
        let Some(tree) = ready.ok().and_then(|()| parser.parse(source, None)) else {
            return Line::not_understood("it cannot be read as a shell command");
        };
        let mut walk = Walk {
            source,
            line: Line::default(),
            depth,
        };
        if tree.root_node().has_error() {
            walk.line.is_opaque("it cannot be read as a shell command");
        }
        // Sequences that one reader takes for text and another for more.
        let is_odd = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
        if source.contains(is_odd) {
            walk.line.is_opaque("it has control characters");
        }
        walk.node(tree.root_node());
        walk.line
    }

    fn node(&mut self, node: Node<'_>) {
        if self.line.commands.len() > MAX_COMMANDS {
            self.line.is_opaque("it has too many commands");
            return;
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH * 2 {
            self.line.is_opaque("it is nested too deep");
        } else {
            self.kind(node);
        }
        self.depth -= 1;
    }

    fn kind(&mut self, node: Node<'_>) {
        match node.kind() {
            "program"
            | "list"
            | "pipeline"
            | "subshell"
            | "compound_statement"
            | "negated_command"
            | "redirected_statement"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "do_group"
            | "case_statement"
            | "case_item"
            | "command_substitution"
            | "process_substitution"
            | "concatenation"
            | "string" => self.children(node),
            // It may take the place of a command, even its own.
            "function_definition" => {
                self.line.is_opaque("it defines a function");
                self.children(node);
            }
            "for_statement" => {
                if let Some(variable) = node.child_by_field_name("variable") {
                    self.sets(slice(self.source, variable));
                }
                self.children(node);
            }
            "command" => self.command(node),
            "file_redirect" => self.file_redirect(node),
            "heredoc_redirect" => self.heredoc(node),
            "herestring_redirect" => self.children(node),
            "variable_assignment" => self.assignment(node),
            "test_command" => self.test(node),
            "expansion" => self.expansion(node),
            "arithmetic_expansion" => self.arithmetic(node),
            "array" | "simple_expansion" => self.children(node),
            "brace_expression"
            | "word"
            | "number"
            | "raw_string"
            | "ansi_c_string"
            | "string_content"
            | "variable_name"
            | "special_variable_name"
            | "comment"
            | "file_descriptor"
            | "heredoc_start"
            | "heredoc_end"
            | "heredoc_content" => {}
            "extglob_pattern" | "regex" => {
                if slice(self.source, node).contains(['$', '`']) {
                    self.line
                        .is_opaque("it has a pattern that is not known before it runs");
                }
            }
            "translated_string" => self.children(node),
            "declaration_command" | "unset_command" => {
                self.line.is_opaque("it declares variables");
                self.children(node);
            }
            kind => {
                self.line
                    .is_opaque(format!("it has a part that is not known here ({kind})"));
                self.children(node);
            }
        }
    }

    fn children(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.node(child);
        }
    }

    fn command(&mut self, node: Node<'_>) {
        let mut words = Vec::new();
        let mut cursor = node.walk();
        for (index, child) in node.children(&mut cursor).enumerate() {
            let field = u32::try_from(index)
                .ok()
                .and_then(|index| node.field_name_for_child(index));
            match (field, child.kind()) {
                (Some("name" | "argument"), _) => {
                    words.push(Word::of(child, self.source));
                    if child.kind() == "command_name" {
                        self.children(child);
                    } else if child.is_named() {
                        self.node(child);
                    }
                }
                (_, "variable_assignment") => self.assignment(child),
                (_, "file_redirect" | "herestring_redirect" | "heredoc_redirect") => {
                    self.node(child);
                }
                _ => self.line.is_opaque("it has a part that is not known here"),
            }
        }
        self.runs(Command::new(words));
    }

    /// Takes a command in, and what it runs in its turn.
    fn runs(&mut self, mut command: Command) {
        let inner = wrapper::runs(&command.words);
        command.runs_another = inner.is_harmless;
        self.goes(&command);
        self.line.commands.push(command);
        if let Some(why) = inner.opaque {
            self.line.is_opaque(why);
        }
        if let Some(words) = inner.words {
            self.depth += 1;
            if self.depth > MAX_DEPTH || self.line.commands.len() > MAX_COMMANDS {
                self.line.is_opaque("it is nested too deep");
            } else {
                self.runs(Command::new(words));
            }
            self.depth -= 1;
        }
        if let Some(text) = inner.line {
            let Line {
                commands,
                writes,
                reads,
                folders,
                opaque,
            } = Walk::read(&text, self.depth + 1);
            self.line.commands.extend(commands);
            self.line.writes.extend(writes);
            self.line.reads.extend(reads);
            self.line.folders.extend(folders);
            if let Some(why) = opaque {
                self.line.is_opaque(why);
            }
        }
    }

    /// Takes down where a command goes.
    fn goes(&mut self, command: &Command) {
        let folder = match (command.name(), &command.words[..]) {
            (Some("cd"), [_, folder]) => folder.text.clone(),
            (Some("cd" | "pushd" | "popd"), _) => None,
            _ => return,
        };
        self.line
            .folders
            .push(folder.filter(|folder| !folder.starts_with('-')));
    }

    fn file_redirect(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        let operator = children.iter().find(|child| !child.is_named());
        let operator = operator.map_or("", |operator| operator.kind());
        let destination = node.child_by_field_name("destination");
        let target = destination.map(|destination| Word::of(destination, self.source));
        // The grammar takes all words behind a redirection for places of it; the shell takes one, the rest are arguments.
        let places = (0..node.child_count())
            .filter(|index| node.field_name_for_child(*index) == Some("destination"));
        if places.count() > 1 {
            self.line.is_opaque("it has arguments behind a redirection");
        }
        match (operator, target) {
            ("<", Some(target)) => {
                if may_be_network(&target) {
                    self.line.is_opaque("it may speak to the network");
                }
                self.line.reads.push(target);
            }
            ("<&" | ">&" | "<&-" | ">&-", None) => {}
            ("<&" | ">&", Some(target)) if is_descriptor(&target) => {}
            (_, Some(target)) if target.text.as_deref() == Some("/dev/null") => {}
            (_, Some(target)) => self.line.writes.push(target),
            (_, None) => self.line.is_opaque("it has a redirection to nowhere"),
        }
        self.children(node);
    }

    fn heredoc(&mut self, node: Node<'_>) {
        if node.child_by_field_name("argument").is_some() {
            self.line
                .is_opaque("it has arguments behind a here-document");
        }
        let mut cursor = node.walk();
        let mut is_quoted = false;
        for child in node.children(&mut cursor) {
            let text = slice(self.source, child);
            match child.kind() {
                "heredoc_start" => is_quoted = text.contains(['"', '\'', '\\']),
                "heredoc_body" => {
                    // The grammar passes over backquotes here.
                    let may_run = text.contains('`')
                        || (text.contains("$(") && child.named_child_count() == 0);
                    if !is_quoted && may_run {
                        self.line
                            .is_opaque("it may run commands in a here-document");
                    }
                    self.children(child);
                }
                "<<" | "<<-" | "heredoc_end" | "file_descriptor" => {}
                // What follows on the same line.
                _ if child.is_named() => self.node(child),
                "|" | "|&" | "&&" | "||" | ";" | "&" => {}
                _ => self.line.is_opaque("it has a part that is not known here"),
            }
        }
    }

    fn assignment(&mut self, node: Node<'_>) {
        match node.child_by_field_name("name") {
            Some(name) if name.kind() == "variable_name" => {
                self.sets(slice(self.source, name));
            }
            _ => self.line.is_opaque("it sets a part of a variable"),
        }
        self.children(node);
    }

    fn sets(&mut self, name: &str) {
        if !variable::is_harmless(name) {
            let why = format!("it sets {name}, which other programs may obey");
            self.line.is_opaque(why);
        }
    }

    /// Comparisons of numbers run what stands in a subscript.
    fn test(&mut self, node: Node<'_>) {
        let text = slice(self.source, node);
        let runs = [
            " -eq", " -ne", " -lt", " -le", " -gt", " -ge", " -v", " -R", "[",
        ];
        let inner = text.trim_start_matches('[').trim_end_matches(']');
        if runs.iter().any(|operator| inner.contains(operator)) && text.starts_with("[[") {
            self.line.is_opaque("it compares numbers");
        } else if [" -v", " -R"]
            .iter()
            .any(|operator| inner.contains(operator))
        {
            self.line.is_opaque("it asks for a variable");
        }
        self.expression(node);
    }

    fn expression(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "binary_expression" | "unary_expression" | "parenthesized_expression" => {
                    self.expression(child);
                }
                "test_operator" => {}
                _ => self.node(child),
            }
        }
    }

    /// `${name}` and what can be done to it without an effect.
    fn expansion(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "${"
                | "}"
                | "variable_name"
                | "special_variable_name"
                | "#"
                | ":-"
                | "-"
                | ":+"
                | "+"
                | "%"
                | "%%"
                | "##"
                | "/"
                | "//"
                | "^"
                | "^^"
                | ","
                | ",," => {}
                "word"
                | "string"
                | "raw_string"
                | "concatenation"
                | "command_substitution"
                | "simple_expansion"
                | "expansion"
                | "regex"
                | "number"
                | "extglob_pattern" => {
                    self.node(child);
                }
                _ => {
                    self.line.is_opaque(
                        "it changes a variable or works with one in a way not known here",
                    );
                    if child.is_named() {
                        self.node(child);
                    }
                }
            }
        }
    }

    /// A variable in a calculation is itself calculated, and may run commands so.
    fn arithmetic(&mut self, node: Node<'_>) {
        let text = slice(self.source, node);
        let is_plain = |char: char| char.is_ascii_digit() || "$()+-*/% <>=!&|^~".contains(char);
        if !text.chars().all(is_plain) {
            self.line.is_opaque("it calculates with variables");
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "command_substitution" | "expansion" | "simple_expansion" => self.node(child),
                _ => self.expression(child),
            }
        }
    }
}

/// Whether a place may be `/dev/tcp/HOST/PORT`, which the shell connects to.
fn may_be_network(target: &Word) -> bool {
    let places = ["/dev/tcp/", "/dev/udp/"];
    places.iter().any(|place| {
        target.prefix.starts_with(place)
            || target.text.is_none() && place.starts_with(&target.prefix)
    })
}

/// Whether the target of `>&` is another descriptor, not a file.
fn is_descriptor(target: &Word) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    target
        .text
        .as_deref()
        .is_some_and(|text| text == "-" || is_number(text.trim_end_matches('-')))
}
