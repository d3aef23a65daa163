//! The history of a session as the messages of a request.

use std::collections::{HashMap, HashSet};

use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::BlobId;
use openvaala_protocol::item::{
    AgentMessage, AssistantMessage, ContextSummary, Instructions, Interruption, Item, ItemKind,
    Opaque, Reasoning, Skill, ToolCall, ToolResult, ToolResultStatus, UserMessage,
};

use super::pairing::{CallIds, Results, arguments, tool_name};
use super::wording;
use crate::model::{AssistantPart, Message, ToolAnswer};

/// What a request is assembled from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AssembleOptions<'a> {
    /// The history of the session.
    pub items: &'a [Item],
    /// The model that is asked.
    pub target: &'a ModelRef,
    /// The account that is asked, as far as it is known.
    pub account: Option<&'a str>,
    /// The bytes of images that lie in the blob stream, in base64.
    pub blobs: &'a HashMap<BlobId, String>,
}

impl<'a> AssembleOptions<'a> {
    /// A history without large images, for a model of an account that is not known.
    #[must_use]
    pub const fn new(
        items: &'a [Item],
        target: &'a ModelRef,
        blobs: &'a HashMap<BlobId, String>,
    ) -> Self {
        Self {
            items,
            target,
            account: None,
            blobs,
        }
    }
}

/// Turns a history into messages that every provider accepts; see [`check_pairing`](super::check_pairing).
///
/// Never fails: an item that is damaged or of an unknown kind is left out. What does not fit together is
/// repaired here and never in the log:
///
/// - a call without result gets one that says so, a result without call is dropped, the first of two results
///   wins, and results stand right behind their calls whatever lies between them in the history;
/// - call ids that are empty or taken are replaced, names and arguments that are not allowed as well.
///
/// As long as all calls are answered and the model is the same, more items only add messages at the end.
/// Providers rely on that to cache what they have already read.
#[must_use]
pub fn assemble(options: AssembleOptions<'_>) -> Vec<Message> {
    let items = in_order(options.items);
    let summary = last_summary(&items);
    let after = summary.as_ref().map_or(0, |summary| summary.up_to);
    let items: Vec<&Item> = items
        .into_iter()
        .filter(|item| item.head().pos > after)
        .collect();
    let mut assembler = Assembler {
        options,
        results: Results::find(&items),
        call_ids: CallIds::default(),
        messages: Vec::new(),
        parts: Vec::new(),
        answers: Vec::new(),
    };
    if let Some(summary) = summary {
        assembler.user(wording::summary(&summary));
    }
    for item in items {
        assembler.take(item);
    }
    assembler.finish()
}

/// The items by `pos`, each once.
fn in_order(items: &[Item]) -> Vec<&Item> {
    let mut seen = HashSet::new();
    let mut items: Vec<&Item> = items
        .iter()
        .filter(|item| seen.insert(item.head().id))
        .collect();
    items.sort_by_key(|item| item.head().pos);
    instructions_first(&mut items);
    items
}

/// Puts the instructions that a turn begins with before the message that started it.
///
/// They are written after it, since the folders are opened only once the turn is on disk.
fn instructions_first(items: &mut [&Item]) {
    let mut at = 0;
    while at < items.len() {
        let message = items[at].head();
        let of_turn = |item: &&&Item| {
            let head = item.head();
            head.kind == ItemKind::Instructions && head.turn == message.turn
        };
        let starts_turn = message.kind == ItemKind::UserMessage && message.turn.is_some();
        let count = items[at + 1..].iter().take_while(of_turn).count();
        if starts_turn {
            items[at..=at + count].rotate_left(1);
        }
        at += count + 1;
    }
}

/// The summary that stands for most. None stands for anything that came after it, whatever it says.
fn last_summary(items: &[&Item]) -> Option<ContextSummary> {
    let summaries = items.iter().filter_map(|item| {
        let mut summary = item.body::<ContextSummary>()?.ok()?;
        summary.up_to = summary.up_to.min(item.head().pos);
        Some(summary)
    });
    summaries.max_by_key(|summary| summary.up_to)
}

struct Assembler<'a> {
    options: AssembleOptions<'a>,
    results: Results,
    call_ids: CallIds,
    messages: Vec<Message>,
    /// What the model has said in the response that is being put together.
    parts: Vec<AssistantPart>,
    /// The answers to its calls.
    answers: Vec<ToolAnswer>,
}

impl Assembler<'_> {
    fn take(&mut self, item: &Item) {
        // A body that does not fit its kind is left out like an unknown kind.
        let _ = self.take_known(item);
    }

    fn take_known(&mut self, item: &Item) -> Option<()> {
        match item.head().kind {
            ItemKind::UserMessage => self.user(item.body::<UserMessage>()?.ok()?.content),
            ItemKind::AgentMessage => {
                self.user(wording::agent_message(item.body::<AgentMessage>()?.ok()?));
            }
            ItemKind::Instructions => {
                self.user(wording::instructions(&item.body::<Instructions>()?.ok()?));
            }
            ItemKind::Skill => self.user(wording::skill(&item.body::<Skill>()?.ok()?)),
            ItemKind::Interruption => {
                self.user(wording::interruption(&item.body::<Interruption>()?.ok()?));
            }
            ItemKind::AssistantMessage => self.text(item.body::<AssistantMessage>()?.ok()?.text),
            ItemKind::Reasoning => self.reasoning(item.body::<Reasoning>()?.ok()?),
            ItemKind::ToolCall => self.call(item, &item.body::<ToolCall>()?.ok()?),
            ItemKind::ToolResult if !self.answers.is_empty() => self.end_response(),
            // The summary stands at the beginning; the rest is for people.
            _ => {}
        }
        Some(())
    }

    fn user(&mut self, content: Vec<Content>) {
        let content = wording::resolve(content, self.options.blobs);
        if !content.is_empty() {
            self.end_response();
            self.messages.push(Message::User(content));
        }
    }

    fn text(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.parts.push(AssistantPart::Text(text));
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
        if self.is_from_target(&opaque) {
            self.parts.push(AssistantPart::Reasoning { text, opaque });
        }
    }

    fn is_from_target(&self, opaque: &Opaque) -> bool {
        let AssembleOptions {
            target, account, ..
        } = self.options;
        opaque.provider == target.provider
            && opaque.model == target.model
            && opaque.account.as_deref() == account
    }

    fn call(&mut self, item: &Item, call: &ToolCall) {
        let id = self.call_ids.unique(call.call_id.clone(), item.head().pos);
        let name = tool_name(&call.tool);
        let (arguments, remark) = arguments(call);
        let result = self.results.take(item.head().id);
        let answer = self.answer(id.clone(), name.clone(), remark, result);
        self.answers.push(answer);
        let arguments = arguments.into_owned();
        self.parts.push(AssistantPart::ToolCall {
            id,
            name,
            arguments,
        });
    }

    fn answer(
        &self,
        id: String,
        name: String,
        remark: Option<&str>,
        result: Option<ToolResult>,
    ) -> ToolAnswer {
        let (status, content) = match result {
            Some(result) => (result.status, result.content),
            None => (ToolResultStatus::Unknown, Vec::new()),
        };
        let mut content = wording::resolve(content, self.options.blobs);
        if content.is_empty() {
            content.push(Content::text(wording::empty_result(status)));
        }
        content.splice(0..0, remark.map(Content::text));
        ToolAnswer::new(id, name, content, status != ToolResultStatus::Ok)
    }

    /// Writes the response that was being put together, and the results right behind it.
    fn end_response(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        let is_silent = parts
            .iter()
            .all(|part| matches!(part, AssistantPart::Reasoning { .. }));
        if is_silent {
            return;
        }
        if self.messages.is_empty() {
            self.messages
                .push(Message::User(vec![Content::text(wording::BEGINNING_LOST)]));
        }
        self.messages.push(Message::Assistant(parts));
        if !self.answers.is_empty() {
            self.messages
                .push(Message::ToolResults(std::mem::take(&mut self.answers)));
        }
    }

    fn finish(mut self) -> Vec<Message> {
        self.end_response();
        self.messages
    }
}
