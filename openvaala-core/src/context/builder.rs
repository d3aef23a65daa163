//! Builds messages from items, one item at a time and each only once.

use std::collections::HashMap;

use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{BlobId, TurnId};
use openvaala_protocol::item::{
    AgentMessage, AssistantMessage, ContextSummary, Instructions, Interruption, Item, ItemKind,
    Opaque, Reasoning, Skill, ToolCall, ToolResult, ToolResultStatus, UserMessage,
};

use super::pairing::{Calls, Slot, arguments, tool_name};
use super::wording;
use crate::model::{AssistantPart, Message, Messages, ToolAnswer};

/// Where a request goes: the opaque parts that came from there go back with it.
#[derive(Debug, PartialEq)]
pub(super) struct Target {
    provider: String,
    model: String,
    account: Option<String>,
}

impl Target {
    pub(super) fn new(model: &ModelRef, account: Option<&str>) -> Self {
        Self {
            provider: model.provider.clone(),
            model: model.model.clone(),
            account: account.map(str::to_owned),
        }
    }

    fn is_source_of(&self, opaque: &Opaque) -> bool {
        opaque.provider == self.provider
            && opaque.model == self.model
            && opaque.account == self.account
    }
}

/// The messages of the items so far. What a call was answered may come at any time later.
#[derive(Debug)]
pub(super) struct MessageBuilder {
    target: Target,
    messages: Messages,
    response: Response,
    calls: Calls,
    opening: Option<Opening>,
}

/// What the model has said in the response that is being put together, and the answers to its calls.
#[derive(Clone, Debug, Default)]
struct Response {
    parts: Vec<AssistantPart>,
    answers: Vec<ToolAnswer>,
}

/// The beginning of a turn: the message that started it was taken, and nothing else but its instructions.
#[derive(Debug)]
struct Opening {
    turn: TurnId,
    /// The place of that message.
    message: usize,
}

impl MessageBuilder {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            messages: Messages::new(),
            response: Response::default(),
            calls: Calls::default(),
            opening: None,
        }
    }

    pub(super) const fn target(&self) -> &Target {
        &self.target
    }

    /// Begins with a summary of what came before.
    pub(super) fn begin_with(&mut self, summary: ContextSummary, blobs: &HashMap<BlobId, String>) {
        let content = wording::resolve(wording::summary(summary), blobs);
        self.messages.push(Message::User(content));
    }

    /// The messages as they are now.
    pub(super) fn messages(&self) -> Messages {
        let mut messages = self.messages.clone();
        self.response.clone().write_to(&mut messages);
        messages
    }

    /// Takes the next item by `pos`; none is to be taken twice.
    pub(super) fn take(&mut self, item: &Item, blobs: &HashMap<BlobId, String>) {
        self.opening
            .take_if(|opening| !opening.is_followed_by(item));
        // A body that does not fit its kind is left out like an unknown kind.
        let _ = self.take_known(item, blobs);
    }

    fn take_known(&mut self, item: &Item, blobs: &HashMap<BlobId, String>) -> Option<()> {
        match item.head().kind {
            ItemKind::UserMessage => {
                let content = item.body::<UserMessage>()?.ok()?.content;
                self.start_turn(item.head().turn, wording::resolve(content, blobs));
            }
            ItemKind::AgentMessage => {
                let content = wording::agent_message(item.body::<AgentMessage>()?.ok()?);
                self.user(wording::resolve(content, blobs));
            }
            ItemKind::Instructions => {
                self.instructions(wording::instructions(&item.body::<Instructions>()?.ok()?));
            }
            ItemKind::Skill => self.user(wording::skill(&item.body::<Skill>()?.ok()?)),
            ItemKind::Interruption => {
                self.user(wording::interruption(&item.body::<Interruption>()?.ok()?));
            }
            ItemKind::AssistantMessage => self.text(item.body::<AssistantMessage>()?.ok()?.text),
            ItemKind::Reasoning => self.reasoning(item.body::<Reasoning>()?.ok()?),
            ItemKind::ToolCall => self.call(item, item.body::<ToolCall>()?.ok()?),
            ItemKind::ToolResult => {
                // The calls are all there, even if this result turns out to be damaged.
                if !self.response.answers.is_empty() {
                    self.end_response();
                }
                self.result(item.body::<ToolResult>()?.ok()?, blobs);
            }
            // The summary stands at the beginning; the rest is for people.
            _ => {}
        }
        Some(())
    }

    fn user(&mut self, content: Vec<Content>) {
        if !content.is_empty() {
            self.end_response();
            self.messages.push(Message::User(content));
        }
    }

    fn start_turn(&mut self, turn: Option<TurnId>, content: Vec<Content>) {
        let is_said = !content.is_empty();
        self.user(content);
        self.opening = turn.filter(|_| is_said).map(|turn| Opening {
            turn,
            message: self.messages.len() - 1,
        });
    }

    /// Puts the instructions that a turn begins with before the message that started it.
    ///
    /// They are written after it, since the folders are opened only once the turn is on disk.
    fn instructions(&mut self, content: Vec<Content>) {
        match &mut self.opening {
            Some(opening) => {
                let message = Message::User(content);
                self.messages.insert(opening.message, message);
                opening.message += 1;
            }
            None => self.user(content),
        }
    }

    fn text(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.response.parts.push(AssistantPart::Text(text));
        }
    }

    fn reasoning(&mut self, reasoning: Reasoning) {
        let Reasoning {
            text,
            opaque: Some(opaque),
            cut: false,
            ..
        } = reasoning
        else {
            return;
        };
        if self.target.is_source_of(&opaque) {
            let part = AssistantPart::Reasoning { text, opaque };
            self.response.parts.push(part);
        }
    }

    /// Takes a call, with the answer of one that has no result.
    fn call(&mut self, item: &Item, call: ToolCall) {
        let head = item.head();
        let id = self.calls.unique_id(&call.call_id, head.pos);
        let name = tool_name(&call.tool);
        let (arguments, remark) = arguments(&call);
        let arguments = arguments.into_owned();
        let slot = Slot {
            message: answers_at(&self.messages),
            answer: self.response.answers.len(),
            remark,
        };
        self.calls.open(head.id, call.call_id, slot);
        let content = answer_content(ToolResultStatus::Unknown, Vec::new(), remark);
        let answer = ToolAnswer::new(id.clone(), name.clone(), content, true);
        self.response.answers.push(answer);
        self.response.parts.push(AssistantPart::ToolCall {
            id,
            name,
            arguments,
        });
    }

    /// Puts a result into the answer of its call, whose response has ended by now.
    fn result(&mut self, result: ToolResult, blobs: &HashMap<BlobId, String>) {
        let Some(slot) = self.calls.close(&result) else {
            return;
        };
        let Some(Message::ToolResults(answers)) = self.messages.get_mut(slot.message) else {
            return;
        };
        if let Some(answer) = answers.get_mut(slot.answer) {
            let content = wording::resolve(result.content, blobs);
            answer.content = answer_content(result.status, content, slot.remark);
            answer.failed = result.status != ToolResultStatus::Ok;
        }
    }

    fn end_response(&mut self) {
        std::mem::take(&mut self.response).write_to(&mut self.messages);
    }
}

impl Opening {
    /// What a summary before the first request of a turn writes comes between the two.
    fn is_followed_by(&self, item: &Item) -> bool {
        let head = item.head();
        let kinds = [
            ItemKind::Instructions,
            ItemKind::ContextSummary,
            ItemKind::RetryNotice,
        ];
        kinds.contains(&head.kind) && head.turn == Some(self.turn)
    }
}

impl Response {
    /// Writes the response, and the answers right behind it.
    fn write_to(self, messages: &mut Messages) {
        let Self { parts, answers } = self;
        let is_silent = parts
            .iter()
            .all(|part| matches!(part, AssistantPart::Reasoning { .. }));
        if is_silent {
            return;
        }
        if messages.is_empty() {
            let lost = Content::text(wording::BEGINNING_LOST);
            messages.push(Message::User(vec![lost]));
        }
        messages.push(Message::Assistant(parts));
        if !answers.is_empty() {
            messages.push(Message::ToolResults(answers));
        }
    }
}

/// Where the answers of the next response will stand: right behind it, and it is never the first message.
fn answers_at(messages: &Messages) -> usize {
    messages.len().max(1) + 1
}

/// What the model reads of an answer; never empty.
fn answer_content(
    status: ToolResultStatus,
    mut content: Vec<Content>,
    remark: Option<&str>,
) -> Vec<Content> {
    if content.is_empty() {
        content.push(Content::text(wording::empty_result(status)));
    }
    content.splice(0..0, remark.map(Content::text));
    content
}
