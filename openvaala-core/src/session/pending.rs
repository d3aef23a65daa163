//! What is done with inputs that wait: they are edited, withdrawn, put into another order, and let go on.
//!
//! Everything is written before it is answered, as part of the session's state. An input that a turn has taken meanwhile
//! is refused, and so is an order that does not name exactly what waits: then somebody else was faster.

use std::collections::HashSet;

use openvaala_protocol::content::{BlobRef, Content, ImageData};
use openvaala_protocol::id::ItemId;

use super::event::{Effect, Refusal, ReplyId};
use super::inputs::Known;
use super::look_up::LookedUp;
use super::machine::SessionMachine;
use super::queue::Queue;
use super::request::Answer;
use crate::agent::Tick;
use crate::dao::record::QueuedInput;

/// What shall become of inputs that wait.
#[derive(Clone, Debug)]
pub(crate) enum PendingChange {
    Update {
        item_id: ItemId,
        content: Option<Vec<Content>>,
        steer: Option<bool>,
    },
    Withdraw {
        item_ids: Vec<ItemId>,
    },
    Reorder {
        item_ids: Vec<ItemId>,
    },
    /// What is held is taken from now on.
    Resume,
}

impl PendingChange {
    /// The inputs that have to wait for the change to be possible.
    fn named(&self) -> &[ItemId] {
        match self {
            Self::Update { item_id, .. } => std::slice::from_ref(item_id),
            Self::Withdraw { item_ids } => item_ids,
            Self::Reorder { .. } | Self::Resume => &[],
        }
    }
}

impl SessionMachine {
    pub(super) fn change_pending(
        &mut self,
        tick: &Tick<'_>,
        reply: ReplyId,
        change: PendingChange,
    ) {
        for id in change.named() {
            if self.queue.contains(*id) {
                continue;
            }
            let refusal = match self.inputs.look_up(*id) {
                Known::Taken => Refusal::InputTaken(*id),
                Known::New | Known::Withdrawn => Refusal::InputNotFound(*id),
                Known::Unknown => return self.look_up(LookedUp::Change { reply, change }),
            };
            return self.refuse(reply, refusal);
        }
        let answer = match change {
            PendingChange::Update {
                item_id,
                content,
                steer,
            } => {
                let steer = steer.map(|steer| steer && self.turn.is_some());
                if let Err(refusal) = self.queue.update(item_id, content, steer) {
                    return self.refuse(reply, refusal);
                }
                self.pending()
            }
            PendingChange::Withdraw { item_ids } => {
                for id in self.queue.withdraw(&item_ids) {
                    self.inputs.withdraw(id);
                    self.withdrawn.push(id);
                }
                self.pending()
            }
            PendingChange::Reorder { item_ids } => match self.queue.reorder(&item_ids) {
                Ok(()) => self.pending(),
                Err(refusal) => return self.refuse(reply, refusal),
            },
            PendingChange::Resume => {
                let resumed = self.queue.held && !self.queue.inputs().is_empty();
                self.queue.held = false;
                Answer::Resumed(resumed)
            }
        };
        self.save(tick);
        self.scribe.journal.then(Effect::Answer { reply, answer });
    }

    /// What waits now.
    pub(super) fn pending(&self) -> Answer {
        Answer::Pending {
            inputs: self.queue.inputs().to_vec(),
            held: self.queue.held && !self.queue.inputs().is_empty(),
        }
    }

    pub(super) fn refuse(&mut self, reply: ReplyId, refusal: Refusal) {
        self.scribe.journal.now(Effect::Refuse { reply, refusal });
    }
}

impl Queue {
    /// Changes an input; content and manner that are not given stay.
    fn update(
        &mut self,
        id: ItemId,
        content: Option<Vec<Content>>,
        steer: Option<bool>,
    ) -> Result<(), Refusal> {
        let Some(input) = self.get_mut(id) else {
            return Err(Refusal::InputNotFound(id));
        };
        if let Some(content) = content {
            let known: Vec<BlobRef> = blobs(&input.content).collect();
            if let Some(foreign) = blobs(&content).find(|blob| !known.contains(blob)) {
                let id = foreign.id;
                let message =
                    format!("blob {id} is no image of this input: give the image as base64");
                return Err(Refusal::InvalidInput(message));
            }
            input.content = content;
        }
        input.steer = steer.unwrap_or(input.steer);
        Ok(())
    }

    /// Takes those inputs out and gives their ids; once nothing waits nothing is held.
    fn withdraw(&mut self, ids: &[ItemId]) -> Vec<ItemId> {
        let out = self.extract(|input| ids.contains(&input.item_id));
        self.held &= !self.inputs().is_empty();
        out.into_iter().map(|input| input.item_id).collect()
    }

    /// Puts the inputs into that order, if it names each of them once and nothing else.
    fn reorder(&mut self, ids: &[ItemId]) -> Result<(), Refusal> {
        let changed = |message: String| Err(Refusal::QueueChanged(message));
        let mut named = HashSet::new();
        for id in ids {
            if !named.insert(*id) {
                return changed(format!("{id} is named twice"));
            }
            if !self.contains(*id) {
                return changed(format!("{id} does not wait any more, or never did"));
            }
        }
        let is_missing = |input: &&QueuedInput| !named.contains(&input.item_id);
        if let Some(missing) = self.inputs().iter().find(is_missing) {
            return changed(format!("{} waits as well", missing.item_id));
        }
        self.sort_by_key(|input| ids.iter().position(|id| *id == input.item_id));
        Ok(())
    }
}

/// The large images in some content.
fn blobs(content: &[Content]) -> impl Iterator<Item = BlobRef> {
    content.iter().filter_map(|piece| match piece {
        Content::Image {
            data: ImageData::Blob(blob),
            ..
        } => Some(*blob),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
