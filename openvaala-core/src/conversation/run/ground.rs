//! What sessions work on: workspaces, opened when a turn first needs them.

use std::sync::Arc;

use openvaala_protocol::conversation::WorkLocation;
use openvaala_protocol::id::SessionId;

use super::{ConversationLoop, Done, workspaces};
use crate::conversation::command::{Ground, Reply};

impl ConversationLoop {
    pub(super) fn give_ground(
        &mut self,
        session: SessionId,
        own: Option<Vec<WorkLocation>>,
        reply: Reply<Ground>,
    ) {
        let modes_above: Vec<_> = self
            .tree()
            .above(session)
            .map(|above| above.approval_mode)
            .collect();
        let known = match &own {
            Some(_) => self.agents.own.get(&session),
            // Whoever asks for another one does not say where that works.
            None => self.agents.own.get(&session).or(self.workspaces.as_ref()),
        };
        if let Some(workspaces) = known.cloned() {
            let _ = reply.send(Ok(Ground {
                workspaces,
                modes_above,
            }));
            return;
        }
        let is_own = own.is_some();
        let locations = own.unwrap_or_else(|| self.machine.state().executors.clone());
        let definitions = Arc::clone(&self.deps.definitions.borrow());
        self.work.spawn(async move {
            let opened = workspaces::open(&locations, &definitions.executors).await;
            let keep = opened.as_ref().ok().cloned();
            let _ = reply.send(opened.map(|workspaces| Ground {
                workspaces,
                modes_above,
            }));
            match keep {
                Some(workspaces) if is_own => Done::OpenedOwn {
                    session,
                    workspaces,
                },
                workspaces => Done::Opened {
                    locations,
                    workspaces,
                },
            }
        });
    }
}
