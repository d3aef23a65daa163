//! What a session cannot decide before the log has told which inputs it has taken.

use super::event::{Effect, Refusal, ReplyId};
use super::machine::SessionMachine;
use super::pending::PendingChange;
use crate::agent::Tick;
use crate::conversation::Input;
use crate::dao::tail::Accepted;

/// What only the log can decide.
#[derive(Debug)]
pub(super) enum LookedUp {
    Send {
        reply: ReplyId,
        input: Input,
    },
    Change {
        reply: ReplyId,
        change: PendingChange,
    },
}

impl LookedUp {
    pub(super) const fn reply(&self) -> ReplyId {
        match self {
            Self::Send { reply, .. } | Self::Change { reply, .. } => *reply,
        }
    }
}

impl SessionMachine {
    /// Asks the log which inputs were taken before this is decided.
    pub(super) fn look_up(&mut self, what: LookedUp) {
        if self.looked_up.is_empty() {
            self.scribe.journal.now(Effect::FindInputs);
        }
        self.looked_up.push(what);
    }

    /// Goes on with what has waited for this, in its order.
    pub(super) fn inputs_found(&mut self, tick: &Tick<'_>, accepted: Accepted) {
        let waiting = self.queue.inputs().iter().map(|input| input.item_id);
        self.inputs.complete(accepted.taken, waiting);
        for id in accepted.queued {
            if !self.queue.contains(id) {
                self.inputs.withdraw(id);
            }
        }
        for what in std::mem::take(&mut self.looked_up) {
            match what {
                LookedUp::Send { reply, input } => self.send(tick, reply, input),
                LookedUp::Change { reply, change } => self.change_pending(tick, reply, change),
            }
        }
    }

    pub(super) fn inputs_not_found(&mut self, message: &str) {
        for what in std::mem::take(&mut self.looked_up) {
            self.refuse(what.reply(), Refusal::NotRead(message.to_owned()));
        }
    }
}
