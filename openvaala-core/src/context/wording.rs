//! Items that are no plain message, in the words in which the model reads them.
//!
//! The words are part of the bytes that providers cache: a change here makes every cached prefix worthless once.

use std::collections::HashMap;

use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::id::BlobId;
use openvaala_protocol::item::{
    AgentMessage, ContextSummary, Instructions, Interruption, InterruptionCause, KeptMessage, Plan,
    PlanStepState, Skill, ToolResultStatus,
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

/// What the model is told to do after a summary.
const AFTER_SUMMARY: &str = "This stands for everything before it. Go on with what the user asked last from where it \
    was left; what is done is done. Results that are named by numbers can be read again with read_result.";

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

/// A summary with all that is kept beside it; images of the user come last.
pub(super) fn summary(body: ContextSummary) -> Vec<Content> {
    let ContextSummary {
        text,
        messages,
        plan,
        files,
        commands,
        trigger,
        ..
    } = body;
    let mut said = format!("Summary of the conversation so far:\n<summary>\n{text}\n</summary>");
    if let Some(plan) = plan {
        said.push_str("\n\nThe plan:\n");
        said.push_str(&plan_lines(&plan));
    }
    for (title, lines) in [
        ("Files changed", files),
        ("Commands that ran then", commands),
    ] {
        if !lines.is_empty() {
            said.push_str(&format!("\n\n{title}:\n- {}", lines.join("\n- ")));
        }
    }
    if !messages.is_empty() {
        said.push_str("\n\nWhat the user said, word for word, oldest first:");
    }
    let mut images = Vec::new();
    for KeptMessage { content, .. } in messages {
        said.push_str("\n<user_message>");
        for piece in content {
            match piece.as_text() {
                Some(text) => said.push_str(&format!("\n{text}")),
                None => images.push(piece),
            }
        }
        said.push_str("\n</user_message>");
    }
    if trigger.is_some() {
        said.push_str("\n\n");
        said.push_str(AFTER_SUMMARY);
    }
    std::iter::once(Content::text(said)).chain(images).collect()
}

/// A plan, a step a line.
pub(super) fn plan_lines(plan: &Plan) -> String {
    let lines = plan.steps.iter().map(|step| {
        let state = match step.state {
            PlanStepState::Done => "done",
            PlanStepState::Running => "running",
            _ => "pending",
        };
        format!("- [{state}] {}", step.text)
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn agent_message(body: AgentMessage) -> Vec<Content> {
    let who = match &body.path {
        Some(path) => format!("agent {path}"),
        None => format!("the agent of session {}", body.from),
    };
    let from = Content::text(match body.ended {
        None => format!("Message from {who}:"),
        Some(ended) => format!("Report: {who} {}:", ending(ended)),
    });
    std::iter::once(from).chain(body.content).collect()
}

pub(super) fn interruption(body: &Interruption) -> Vec<Content> {
    let text = match body.cause {
        InterruptionCause::Shutdown => "[interrupted: the runtime was stopped]",
        InterruptionCause::Crash => "[interrupted: the runtime ended without notice]",
        InterruptionCause::StepLimit => "[ended: the turn took as many steps as a turn may]",
        InterruptionCause::RepeatLimit => {
            "[ended: the same call had the same result too often in a row]"
        }
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

/// How the end of a turn is called.
pub(crate) const fn ending(status: TurnStatus) -> &'static str {
    match status {
        TurnStatus::Completed => "has ended its turn",
        TurnStatus::Failed => "has failed",
        TurnStatus::Interrupted => "was interrupted",
        _ => "has ended",
    }
}
