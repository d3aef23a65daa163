//! How the ends of turns come to those who have started their agents: in the result of a call that waits, or as messages.
//!
//! The session keeps a report until it is told that it was taken. Given twice, it is taken once: it has the same id each time.

use std::time::Duration;

use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::Session;
use openvaala_protocol::id::{ItemId, SessionId, TurnId};
use openvaala_protocol::rpc::params::session::SendMode;
use tokio::sync::oneshot;

use super::agents::said;
use super::{ConversationLoop, Done};
use crate::conversation::handle::Input;
use crate::conversation::waits::Taken;
use crate::dao::record::{Report, Sender};
use crate::error::RuntimeError;

/// When a report is given again that could not be taken.
const AGAIN: Duration = Duration::from_millis(200);

/// A report that its receiver may not have on disk yet.
#[derive(Debug)]
pub(super) struct Unheard {
    pub(super) child: SessionId,
    parent: SessionId,
    report: Report,
    /// The turn of the receiver in which a call has it; `None` if it goes as a message.
    handed: Option<TurnId>,
}

impl ConversationLoop {
    /// Takes note of what a session reports: what is not on its way yet is given on.
    pub(super) fn take_reports(&mut self, child: SessionId, reports: Vec<Report>) {
        let Some(parent) = self.tree().get(child).and_then(|session| session.parent) else {
            return;
        };
        for report in reports {
            let id = report.item_id;
            if self.agents.unheard.contains_key(&id) || !self.sessions.contains_key(&child) {
                continue;
            }
            let turn = self
                .tree()
                .get(parent)
                .and_then(|session| session.active_turn);
            let taken = self.agents.waits.report(child, report.clone());
            let handed = match &taken {
                Taken::No(_) => None,
                Taken::Kept | Taken::Over(_) => turn,
            };
            self.agents.unheard.insert(
                id,
                Unheard {
                    child,
                    parent,
                    report,
                    handed,
                },
            );
            match taken {
                Taken::Over(waiter) => self.tell_waiter(waiter, None),
                Taken::Kept => {}
                Taken::No(_) => self.deliver(id),
            }
        }
    }

    /// Gives a report to its receiver as a message.
    pub(super) fn deliver(&mut self, id: ItemId) {
        let Some(unheard) = self.agents.unheard.get_mut(&id) else {
            return;
        };
        unheard.handed = None;
        let (child, parent) = (unheard.child, unheard.parent);
        let Report { ended, text, .. } = unheard.report.clone();
        let Some(handle) = self.sessions.get(&parent).cloned() else {
            return self.heard(&[id]);
        };
        let content = vec![Content::text(said(&text))];
        let mut input = Input::new(id, content).with_mode(SendMode::Steer);
        input.from = self.sender(child).map(|sender| Sender {
            ended: Some(ended),
            ..sender
        });
        let (reply, sent) = oneshot::channel();
        handle.send(input, reply);
        self.work.spawn(async move {
            match sent.await {
                Ok(Ok(_)) => Done::Delivered { id },
                // It is given again when the conversation is opened again.
                Ok(Err(RuntimeError::Stopped)) | Err(_) => Done::Settled,
                Ok(Err(_)) => {
                    tokio::time::sleep(AGAIN).await;
                    Done::NotDelivered { id }
                }
            }
        });
        self.wake(parent, "an agent has ended its turn: its report follows");
    }

    /// Those reports are on disk where they belong.
    pub(super) fn heard(&mut self, reports: &[ItemId]) {
        for id in reports {
            let unheard = self.agents.unheard.remove(id);
            let child = unheard.and_then(|unheard| self.sessions.get(&unheard.child));
            if let Some(child) = child {
                child.report_taken(*id);
            }
        }
    }

    /// Gives as messages what calls of turns have that are over: they did not come to write it down.
    pub(super) fn turns_over(&mut self, session: &Session) {
        let active = session.active_turn;
        self.agents.waits.over(session.id, active);
        let is_lost = |unheard: &Unheard| {
            unheard.parent == session.id && unheard.handed.is_some() && unheard.handed != active
        };
        let unheard = self.agents.unheard.iter();
        let lost = unheard.filter(|(_, unheard)| is_lost(unheard));
        let lost: Vec<ItemId> = lost.map(|(id, _)| *id).collect();
        for id in lost {
            self.deliver(id);
        }
    }
}
