//! Changes of the conversation, one after the other: what they need is opened before anything is written.

use std::sync::Arc;

use openvaala_executor::Workspace;
use openvaala_protocol::conversation::{Conversation, WorkLocation};
use openvaala_protocol::item::ExecutorChange;
use tokio::sync::oneshot;

use super::{ConversationLoop, Done, Event, Wait, workspaces};
use crate::conversation::ConversationChange;
use crate::conversation::command::Reply;
use crate::error::RuntimeError;
use crate::session::Request;

/// A change that somebody waits for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) change: ConversationChange,
    pub(super) reply: Reply<Conversation>,
}

/// A change that can be made, and the workspaces that it brings.
#[derive(Debug)]
pub(super) struct Possible {
    change: ConversationChange,
    workspaces: Option<Vec<Arc<dyn Workspace>>>,
}

impl ConversationLoop {
    /// Begins with the next change, unless one is being made.
    pub(super) fn next_change(&mut self) {
        if self.changing {
            return;
        }
        let Some(Asked { change, reply }) = self.changes.pop_front() else {
            return;
        };
        self.changing = true;
        let Some(locations) = change.executors.clone() else {
            let workspaces = None;
            return self.possible(Ok(Possible { change, workspaces }), reply);
        };
        let from = self.machine.state().executors.clone();
        let definitions = Arc::clone(&self.deps.definitions.borrow());
        let root = self.machine.state().root_session;
        let root = self.sessions.get(&root).cloned();
        self.work.spawn(async move {
            let moved = async {
                let opened = workspaces::open(&locations, &definitions.executors).await?;
                let to = workspaces::locations(&opened);
                let workspaces = (to != from).then_some(opened);
                if let (Some(root), Some(_)) = (root, &workspaces) {
                    let (reply, wait) = oneshot::channel();
                    let record = ExecutorChange::new(from, to.clone());
                    root.request(Request::Record(record), reply);
                    wait.await.map_err(|_| RuntimeError::Stopped)??;
                }
                let executors = Some(to);
                let change = ConversationChange {
                    executors,
                    ..change
                };
                Ok(Possible { change, workspaces })
            };
            let possible = moved.await.map(Box::new);
            Done::Possible { possible, reply }
        });
    }

    pub(super) fn possible(
        &mut self,
        possible: Result<Possible, RuntimeError>,
        reply: Reply<Conversation>,
    ) {
        match possible {
            Ok(Possible { change, workspaces }) => {
                let wait = self.wait(Wait::Change { workspaces, reply });
                let change = Box::new(change);
                self.event(Event::Change { wait, change });
            }
            Err(error) => {
                let _ = reply.send(Err(error));
                self.changed();
            }
        }
    }

    /// A change is on disk: turns that begin from now on work with it.
    pub(super) fn made(
        &mut self,
        workspaces: Option<Vec<Arc<dyn Workspace>>>,
        reply: Reply<Conversation>,
    ) {
        if workspaces.is_some() {
            self.leave_workspaces();
            self.workspaces = workspaces;
        }
        let _ = reply.send(Ok(self.machine.conversation()));
        self.changed();
    }

    /// A change could not be written.
    pub(super) fn not_made(&mut self, reply: Reply<Conversation>, message: String) {
        // Some turn may have opened those of the change meanwhile.
        self.leave_workspaces();
        let _ = reply.send(Err(RuntimeError::NotWritten { message }));
        self.changed();
    }

    /// Keeps the workspaces open, for commands that run in them, but gives them to no further turn.
    fn leave_workspaces(&mut self) {
        let left = self.workspaces.take().unwrap_or_default();
        self.left_workspaces.extend(left);
    }

    fn changed(&mut self) {
        self.changing = false;
        self.next_change();
    }

    /// Keeps workspaces that a turn has opened, if they are still those of the conversation.
    pub(super) fn keep_workspaces(
        &mut self,
        asked: &[WorkLocation],
        opened: Option<Vec<Arc<dyn Workspace>>>,
    ) {
        if self.workspaces.is_none() && self.machine.state().executors == asked {
            self.workspaces = opened;
        } else {
            self.left_workspaces.extend(opened.unwrap_or_default());
        }
    }
}
