//! Items that are no plain message, in the words in which the model reads them.
//!
//! The words are part of the bytes that providers cache: a change here makes every cached prefix worthless once.

use std::collections::HashMap;

use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::id::BlobId;
use openvaala_protocol::item::{
    AgentMessage, ContextSummary, Instructions, Interruption, InterruptionCause, Skill,
    ToolResultStatus,
};

/// What stands before the first message if that is not the user's, which providers refuse.
pub(super) const BEGINNING_LOST: &str = "[the beginning of this conversation is lost]";
/// The answer to a call that has none.
pub(super) const NO_RESULT: &str = "interrupted: the outcome is not known";
/// What is said of a call whose arguments stop in the middle.
pub(super) const CUT_ARGUMENTS: &str =
    "[the arguments of this call were cut off and are shown as {}]";
/// What is said of a call whose arguments are no JSON object.
pub(super) const BAD_ARGUMENTS: &str =
    "[the arguments of this call were no JSON object and are shown as {}]";

pub(super) fn instructions(body: &Instructions) -> Vec<Content> {
    let Instructions {
        path, text, bytes, ..
    } = body;
    let shown = text.len() as u64;
    let cut = if *bytes > shown {
        format!(" (the first {shown} of {bytes} bytes)")
    } else {
        String::new()
    };
    let text = format!("Instructions from {path}{cut}:\n<instructions>\n{text}\n</instructions>");
    vec![Content::text(text)]
}

pub(super) fn skill(body: &Skill) -> Vec<Content> {
    let Skill { name, text, .. } = body;
    vec![Content::text(format!(
        "Skill {name}:\n<skill>\n{text}\n</skill>"
    ))]
}

pub(super) fn summary(body: &ContextSummary) -> Vec<Content> {
    let text = &body.text;
    vec![Content::text(format!(
        "Summary of the conversation so far:\n<summary>\n{text}\n</summary>"
    ))]
}

pub(super) fn agent_message(body: AgentMessage) -> Vec<Content> {
    let from = Content::text(format!("Message from the agent of session {}:", body.from));
    std::iter::once(from).chain(body.content).collect()
}

pub(super) fn interruption(body: &Interruption) -> Vec<Content> {
    let text = match body.cause {
        InterruptionCause::Shutdown => "[interrupted: the runtime was stopped]",
        InterruptionCause::Crash => "[interrupted: the runtime ended without notice]",
        // The user, or what a later version knows.
        _ => "[interrupted by the user]",
    };
    vec![Content::text(text)]
}

/// What a result says that says nothing.
pub(super) const fn empty_result(status: ToolResultStatus) -> &'static str {
    match status {
        ToolResultStatus::Ok => "[no output]",
        ToolResultStatus::Failed => "failed without a word",
        ToolResultStatus::Interrupted => "interrupted",
        _ => NO_RESULT,
    }
}

/// The content without empty texts, and with the bytes of its images in it.
pub(super) fn resolve(content: Vec<Content>, blobs: &HashMap<BlobId, String>) -> Vec<Content> {
    let is_empty = |piece: &Content| piece.as_text().is_some_and(|text| text.trim().is_empty());
    let pieces = content.into_iter().filter(|piece| !is_empty(piece));
    pieces
        .map(|piece| match piece {
            Content::Image {
                media_type,
                data: ImageData::Blob(blob),
            } => match blobs.get(&blob.id) {
                Some(base64) => Content::Image {
                    media_type,
                    data: ImageData::Base64(base64.clone()),
                },
                None => Content::text(format!(
                    "[an image of {} bytes that is not available any more]",
                    blob.bytes
                )),
            },
            other => other,
        })
        .collect()
}
