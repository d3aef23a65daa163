//! Requests on their way to the machine: what they carry is stored first.

use std::sync::Arc;

use openvaala_protocol::content::Content;
use openvaala_storage::Error;

use super::{Done, SessionDeps, SessionLoop};
use crate::error::RuntimeError;
use crate::session::event::{Event, ReplyId};
use crate::session::pending::PendingChange;
use crate::session::request::Request;
use crate::session::tools::store_image;

impl SessionLoop {
    /// Takes a request in; large images of an edited input are written to the blob stream first.
    pub(super) async fn take_request(&mut self, reply: ReplyId, request: Request) {
        let Request::Pending(PendingChange::Update {
            item_id,
            content: Some(content),
            steer,
        }) = request
        else {
            return self.request(reply, request).await;
        };
        let deps = Arc::clone(&self.deps);
        self.work.spawn(async move {
            let content = stored(&deps, content).await;
            let request = content.map(|content| {
                Request::Pending(PendingChange::Update {
                    item_id,
                    content: Some(content),
                    steer,
                })
            });
            Done::Edited { reply, request }
        });
    }

    pub(super) async fn request(&mut self, reply: ReplyId, request: Request) {
        if let Some(failure) = self.broken.clone()
            && let Err(error) = self.reload(failure).await
        {
            return self.refuse(reply, RuntimeError::from(error));
        }
        self.event(Event::Request { reply, request }).await;
    }
}

async fn stored(deps: &SessionDeps, content: Vec<Content>) -> Result<Vec<Content>, Error> {
    let mut stored = Vec::with_capacity(content.len());
    for piece in content {
        stored.push(store_image(deps, piece).await?);
    }
    Ok(stored)
}
