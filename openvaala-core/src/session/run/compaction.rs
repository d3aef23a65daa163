//! Summaries: who asks for them, what they need, and the question to the model.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use openvaala_executor::commands::CommandInfo;
use openvaala_protocol::content::Content;
use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::ContextSummary;

use super::model::Question;
use super::perform::find;
use super::{Done, Findings, SessionLoop, with_causes};
use crate::context::{SUMMARY_PROMPT, Survey};
use crate::conversation::Compacted;
use crate::error::RuntimeError;
use crate::model::{Message, Messages, ModelRequest};
use crate::runtime::Definitions;
use crate::session::compaction::{Order, Wanted};
use crate::session::context::images_of;
use crate::session::event::{Event, ReplyId};
use crate::session::handle::{CompactionCommand, Reply};

/// Those who wait for a summary, or for one to be taken back.
#[derive(Debug, Default)]
pub(super) struct Orders {
    compact: HashMap<ReplyId, Reply<Compacted>>,
    uncompact: HashMap<ReplyId, Reply<ItemId>>,
}

impl Orders {
    pub(super) fn compacted(
        &mut self,
        reply: ReplyId,
        item: Option<ItemId>,
        summary: ContextSummary,
    ) {
        if let Some(reply) = self.compact.remove(&reply) {
            let _ = reply.send(Ok(Compacted {
                item_id: item,
                summary,
            }));
        }
    }

    pub(super) fn uncompacted(&mut self, reply: ReplyId, summary: ItemId) {
        if let Some(reply) = self.uncompact.remove(&reply) {
            let _ = reply.send(Ok(summary));
        }
    }

    pub(super) fn refuse(&mut self, reply: ReplyId, error: RuntimeError) {
        if let Some(reply) = self.compact.remove(&reply) {
            let _ = reply.send(Err(error));
        } else if let Some(reply) = self.uncompact.remove(&reply) {
            let _ = reply.send(Err(error));
        }
    }
}

impl SessionLoop {
    /// Takes an order for a summary, or to take one back.
    pub(super) async fn order(&mut self, reply_id: ReplyId, command: CompactionCommand) {
        if !self.stopping.is_empty() {
            command.refuse(RuntimeError::Stopped);
            return;
        }
        if let Some(failure) = self.broken.clone()
            && let Err(error) = self.reload(failure).await
        {
            command.refuse(RuntimeError::from(error));
            return;
        }
        let (wanted, guidance) = match command {
            CompactionCommand::Compact {
                guidance,
                preview,
                reply,
            } => {
                self.orders.compact.insert(reply_id, reply);
                let wanted = if preview {
                    Wanted::Preview
                } else {
                    Wanted::Summary
                };
                (wanted, guidance)
            }
            CompactionCommand::Uncompact { reply } => {
                self.orders.uncompact.insert(reply_id, reply);
                (Wanted::Undo, None)
            }
        };
        let definitions = Arc::clone(&self.deps.around.definitions.borrow());
        self.set_compaction(&definitions);
        self.event(Event::Compact(Order {
            reply: reply_id,
            wanted,
            guidance,
        }))
        .await;
    }

    pub(super) fn set_compaction(&mut self, definitions: &Definitions) {
        let window = definitions.window_of(self.machine.model());
        self.machine.set_compaction(definitions.compaction, window);
    }

    /// Finds out what a summary needs besides the items.
    pub(super) fn survey(&mut self, request: u64, load: bool) {
        let deps = Arc::clone(&self.deps);
        let nature = self.machine.nature();
        let definitions = Arc::clone(&self.deps.around.definitions.borrow());
        self.work.spawn(async move {
            let running = deps.commands.list().await.into_iter().filter(is_running);
            let commands = running
                .map(|command| format!("{}: {}", command.id, command.line))
                .collect();
            let result = find(&deps, definitions, nature, load).await;
            Done::Surveyed {
                request,
                result: result.map(Box::new),
                commands,
            }
        });
    }

    pub(super) async fn surveyed(
        &mut self,
        request: u64,
        result: Result<Box<Findings>, RuntimeError>,
        commands: Vec<String>,
    ) {
        let survey = match result {
            Ok(findings) => {
                let Findings {
                    prepared,
                    instructions,
                    context,
                } = *findings;
                // What a turn works with stays the same until it ends.
                if self.machine.running_turn().is_none() {
                    self.prepared = Some(Arc::new(prepared));
                }
                let context = context.map(|context| {
                    self.images.extend(context.images);
                    context.items
                });
                Ok(Survey {
                    instructions: Some(instructions),
                    commands,
                    context,
                })
            }
            Err(error) => Err(with_causes(&error)),
        };
        self.event(Event::Surveyed { request, survey }).await;
    }

    /// Asks the model of the session for a summary: no tools, and nothing but the transcript.
    pub(super) fn ask_summary(&mut self, request: u64, wait: Duration) {
        let (Some(prepared), Some(transcript)) =
            (self.prepared.clone(), self.machine.summary_question())
        else {
            return;
        };
        let model = self.machine.model().clone();
        let question = ModelRequest {
            model: model.model,
            effort: model.effort,
            instructions: SUMMARY_PROMPT.to_owned(),
            messages: Messages::from(vec![Message::User(vec![Content::text(transcript)])]),
            ..ModelRequest::default()
        };
        let number = Question::Summary(request);
        self.put_question(number, &prepared, model.provider, question, wait);
    }

    /// Lets go of the images that no request has any more.
    pub(super) fn forget_images(&mut self) {
        let needed: HashSet<_> = self.machine.history().iter().flat_map(images_of).collect();
        self.images.retain(|id, _| needed.contains(id));
    }
}

fn is_running(command: &CommandInfo) -> bool {
    command.status.is_running()
}
