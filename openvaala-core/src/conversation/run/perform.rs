//! What the conversation machine wants done.

use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::params::session::SendMode;
use openvaala_storage::{Error, Fingerprint, LogStorage};

use super::{ConversationDeps, ConversationLoop, Done, Wait};
use crate::conversation::machine::Effect;
use crate::dao::index::Row;
use crate::dao::metadata_key;
use crate::dao::mutation::Writer;
use crate::error::RuntimeError;

impl ConversationLoop {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Commit(commit) => {
                let writer = Writer::new(&self.deps, self.id, None);
                let root = self.machine.state().root_session;
                self.work.spawn(async move {
                    let result = writer.write(root, commit.batch, false).await;
                    Done::Written {
                        n: commit.n,
                        result,
                    }
                });
            }
            Effect::Forward { wait } => {
                let Some(Wait::Send {
                    session,
                    input,
                    reply,
                }) = self.waits.remove(&wait)
                else {
                    return;
                };
                let is_steer = input.mode == SendMode::Steer;
                match self.sessions.get(&session) {
                    Some(handle) => handle.send(input, reply),
                    None => drop(reply.send(Err(self.no_session(session)))),
                }
                if is_steer {
                    self.wake(session, "somebody has said something to you: it follows");
                }
            }
            Effect::Refuse { wait, message } => match self.waits.remove(&wait) {
                Some(Wait::Send { reply, .. }) => {
                    let _ = reply.send(Err(RuntimeError::NotWritten { message }));
                }
                Some(Wait::Change { reply, .. }) => self.not_made(reply, message),
                Some(Wait::Spawn(started)) => self.not_spawned(*started, message),
                _ => {}
            },
            Effect::Spawned { wait } => {
                if let Some(Wait::Spawn(started)) = self.waits.remove(&wait) {
                    self.spawned(*started);
                }
            }
            Effect::Changed { wait } => {
                if let Some(Wait::Change { workspaces, reply }) = self.waits.remove(&wait) {
                    self.made(workspaces, reply);
                }
            }
            Effect::Promote { wait } => {
                let (id, deps, feed) = (self.id, self.deps.clone(), self.feed.clone());
                self.work.spawn(async move {
                    let result = promote(id, &deps).await;
                    if result.is_err()
                        && let Ok(key) = metadata_key(id)
                        && let Ok(Some(staged)) = deps.log.info(&key).await
                    {
                        // What the batch wrote into memory stays there, but its sender is told that it failed.
                        feed.passed(staged.last).await;
                    }
                    Done::Promoted { wait, result }
                });
            }
            Effect::Index {
                conversation,
                waiting,
                seq,
                fingerprint,
            } => {
                self.deps
                    .index
                    .put(seq, Row::new(*conversation, waiting, &fingerprint));
            }
        }
    }
}

/// Moves the conversation to the real storage and tells what its metadata stream is there.
async fn promote(
    id: ConversationId,
    deps: &ConversationDeps,
) -> Result<Option<(u64, Fingerprint)>, Error> {
    deps.staging.promote(id).await?;
    let info = deps.log.info(&metadata_key(id)?).await?;
    Ok(info.map(|info| (info.last, info.fingerprint)))
}
