//! Items as people read them in a terminal.

use std::collections::BTreeMap;

use openvaala_protocol::content::{Content, ImageData, joined_text};
use openvaala_protocol::item::{
    AssistantMessage, ContextSummary, Interruption, InterruptionCause, Item, ItemKind, ModelError,
    Reasoning, SummaryUndone, ToolCall, ToolResult, ToolResultStatus, UserMessage,
};
use serde_json::value::RawValue;

use crate::output::one_line;

/// Arguments that say the most, so that they need no name.
const TELLING: [&str; 2] = ["command", "path"];

/// One item of a transcript, with an empty line after it.
pub(super) fn item(item: &Item) -> String {
    let text = match &item.head().kind {
        ItemKind::UserMessage => body(item, |body: UserMessage| {
            format!("> {}", content(&body.content).replace('\n', "\n> "))
        }),
        ItemKind::AssistantMessage => body(item, |body: AssistantMessage| {
            let cut = if body.cut { " [cut off]" } else { "" };
            format!("{}{cut}", clean(&body.text))
        }),
        ItemKind::Reasoning => body(item, |body: Reasoning| {
            format!("(thinks) {}", clean(&body.text))
        }),
        ItemKind::ToolCall => body(item, |body: ToolCall| format!("→ {}", call(&body, 400))),
        ItemKind::ToolResult => body(item, |body: ToolResult| whole_result(&body)),
        ItemKind::ModelError => body(item, |body: ModelError| {
            format!("[the model failed: {}]", clean(&body.message))
        }),
        ItemKind::Interruption => body(item, |body: Interruption| {
            format!("[interrupted: {}]", cause(body.cause))
        }),
        ItemKind::ContextSummary => body(item, |body: ContextSummary| {
            format!("[summary of all before]\n{}", clean(&body.text))
        }),
        ItemKind::SummaryUndone => body(item, |_: SummaryUndone| {
            "[the last summary was taken back]".to_owned()
        }),
        other => item.raw_body().ok().map(|body| {
            format!(
                "[{}] {}",
                one_line(other.as_str(), 80),
                one_line(body.get(), 400)
            )
        }),
    };
    let text = text.unwrap_or_else(|| {
        format!(
            "[a {} that cannot be read]",
            one_line(item.head().kind.as_str(), 80)
        )
    });
    format!("{text}\n\n")
}

fn body<B: openvaala_protocol::item::ItemBody>(
    item: &Item,
    show: impl FnOnce(B) -> String,
) -> Option<String> {
    item.body::<B>()?.ok().map(show)
}

/// A tool call in one line: `bash ls -1Ap`, `read_file README.md limit=60`.
pub(super) fn call(call: &ToolCall, limit: usize) -> String {
    let mut line = one_line(&call.tool, 80);
    if let Some(executor) = call.executor.as_ref().filter(|id| id.as_str() != "local") {
        line.push_str(&format!("@{executor}"));
    }
    let arguments = arguments(&call.arguments);
    if !arguments.is_empty() {
        line.push(' ');
        line.push_str(&one_line(&arguments, limit));
    }
    if call.cut {
        line.push_str(" [cut off]");
    }
    line
}

/// Arguments as a person would write them; what is no JSON object is shown as it came.
fn arguments(text: &str) -> String {
    let Ok(mut fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else {
        return text.to_owned();
    };
    if let Some(patch) = fields.remove("patch").filter(|_| fields.is_empty()) {
        return changes(&plain(patch));
    }
    let telling = TELLING.iter().find_map(|name| fields.remove(*name));
    let named = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", plain(value)));
    telling
        .map(plain)
        .into_iter()
        .chain(named)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The files of a patch: `~ src/lib.rs, + new.rs, - old.rs`; a text that names none as it is.
fn changes(patch: &str) -> String {
    let signs = [
        ("*** Update File:", '~'),
        ("*** Add File:", '+'),
        ("*** Delete File:", '-'),
    ];
    let files = patch.lines().filter_map(|line| {
        signs.iter().find_map(|(begin, sign)| {
            let path = line.trim().strip_prefix(begin)?;
            Some(format!("{sign} {}", path.trim()))
        })
    });
    let files: Vec<String> = files.collect();
    if files.is_empty() {
        patch.to_owned()
    } else {
        files.join(", ")
    }
}

fn plain(value: &RawValue) -> String {
    serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// A result in one line: `bash: exit 0, 12 lines`.
pub(super) fn result(tool: &str, result: &ToolResult) -> String {
    let lines = match joined_text(&result.content).lines().count() {
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    };
    let whole = result.output.as_ref().map_or_else(String::new, |output| {
        format!(" of an output of {} bytes", output.bytes)
    });
    format!("{}: {}, {lines}{whole}", one_line(tool, 80), status(result))
}

fn whole_result(result: &ToolResult) -> String {
    let mut text = format!("← {}", status(result));
    if let Some(output) = &result.output {
        text.push_str(&format!(" (the whole output has {} bytes)", output.bytes));
    }
    for line in content(&result.content).lines() {
        text.push('\n');
        if !line.is_empty() {
            text.push_str("    ");
            text.push_str(line);
        }
    }
    text
}

/// How a call ended, in a word or two.
pub(super) fn status(result: &ToolResult) -> String {
    match (result.status, result.exit_code) {
        (ToolResultStatus::Ok | ToolResultStatus::Failed, Some(code)) => format!("exit {code}"),
        (ToolResultStatus::Ok, None) => "ok".to_owned(),
        (ToolResultStatus::Failed, None) => "failed".to_owned(),
        (ToolResultStatus::Interrupted, _) => "interrupted".to_owned(),
        _ => "outcome not known".to_owned(),
    }
}

pub(super) const fn cause(cause: InterruptionCause) -> &'static str {
    match cause {
        InterruptionCause::Requested => "somebody asked for it",
        InterruptionCause::Shutdown => "the server was stopped",
        InterruptionCause::Crash => "the server ended without notice",
        InterruptionCause::StepLimit => "the turn took as many steps as a turn may",
        InterruptionCause::RepeatLimit => {
            "the same tool call had the same result too often in a row"
        }
        _ => "the cause is not known to this version",
    }
}

pub(super) fn content(content: &[Content]) -> String {
    let pieces = content.iter().map(|piece| match piece {
        Content::Text { text } => clean(text),
        Content::Image { media_type, data } => {
            let size = match data {
                ImageData::Base64(data) => data.len() as u64 / 4 * 3,
                ImageData::Blob(blob) => blob.bytes,
            };
            format!("[{}, {size} bytes]", one_line(media_type, 80))
        }
        _ => "[something that this version does not know]".to_owned(),
    });
    pieces.collect::<Vec<_>>().join("\n")
}

/// Text without what a terminal would obey.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

#[cfg(test)]
mod tests;
