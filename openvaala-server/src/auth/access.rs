//! What a connection may do.

use std::sync::Arc;
use std::time::Duration;

use openvaala_core::environment::{Clock, SystemClock};
use openvaala_protocol::approval::ApprovalScope;
use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_protocol::rpc::{Call, ErrorCode, MethodInfo, Right, Rights, RpcError};
use tokio::sync::watch;
use tokio::time::sleep;

use super::bound::Bound;
use super::keys::{Keys, Named};

/// How long answers that are on their way have when a token is no longer good.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// What the server's own record of a token says; nothing that a client says of itself is in it.
#[derive(Clone, Debug)]
pub(crate) enum Grant {
    /// That of the discovery file.
    Local { rotation: u64 },
    /// One with a name.
    Named { name: String, named: Named },
    /// One for a single session.
    Bound { bound: Bound, rotation: u64 },
}

/// What a connection may do, as long as its token is good.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    grant: Grant,
    rights: Rights,
    keys: watch::Receiver<Arc<Keys>>,
}

impl Access {
    pub(crate) fn new(grant: Grant, keys: watch::Receiver<Arc<Keys>>) -> Self {
        let rights = match &grant {
            Grant::Local { .. } => Rights::all(),
            Grant::Named { named, .. } => named.rights.clone(),
            Grant::Bound { bound, .. } => bound.rights.clone(),
        };
        Self {
            grant,
            rights,
            keys,
        }
    }

    /// Which token it is, for the log.
    pub(crate) fn name(&self) -> &str {
        match &self.grant {
            Grant::Local { .. } => "local",
            Grant::Named { name, .. } => name,
            Grant::Bound { .. } => "bound",
        }
    }

    /// Whether the token allows that method now, whatever its parameters are.
    pub(crate) fn check_method(&self, method: &str) -> Result<(), RpcError> {
        if !self.keys.borrow().is_good(&self.grant) {
            let message = "the token of this connection was revoked, replaced, or has expired: connect with another one";
            return Err(RpcError::new(ErrorCode::Forbidden, message));
        }
        // A method that there is not is refused as such later.
        let needed = MethodInfo::find(method).map_or(&[][..], |info| info.rights);
        match needed.iter().find(|right| !self.rights.has(**right)) {
            Some(right) => Err(self.lacks(*right, method)),
            None => Ok(()),
        }
    }

    /// Whether the token allows those parameters of a method that it allows.
    pub(crate) fn check_call(&self, method: &str, call: &Call) -> Result<(), RpcError> {
        if let Some(right) = more_right(call)
            && !self.rights.has(right)
        {
            return Err(self.lacks(right, &format!("{method} with these parameters")));
        }
        let Grant::Bound { bound, .. } = &self.grant else {
            return Ok(());
        };
        if session(call) == Some((bound.conversation_id, bound.session_id)) {
            return Ok(());
        }
        let message = format!(
            "the token of this connection is for the session {} of the conversation {} only: name both, in a method of sessions",
            bound.session_id, bound.conversation_id
        );
        Err(RpcError::new(ErrorCode::Forbidden, message))
    }

    fn lacks(&self, right: Right, what: &str) -> RpcError {
        let message = format!(
            "{what} needs the right `{right}`, which the token of this connection does not have; it has: {}",
            self.rights.join(", ")
        );
        RpcError::new(ErrorCode::Forbidden, message)
    }

    /// Waits until the token is no longer good, and a moment more for answers that are on their way. Cancel safe.
    pub(crate) async fn ended(&self) {
        let mut keys = self.keys.clone();
        let replaced = keys.wait_for(|keys| !keys.is_good(&self.grant));
        match &self.grant {
            Grant::Bound { bound, .. } => {
                let left = bound.expires_at.as_millis() - SystemClock.now().as_millis();
                tokio::select! {
                    _ = replaced => {}
                    () = sleep(Duration::from_millis(u64::try_from(left).unwrap_or(0))) => {}
                }
            }
            // If nobody can replace them any more the server ends, and with it the connection.
            Grant::Local { .. } | Grant::Named { .. } => {
                if replaced.await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
        sleep(LAST_ANSWERS).await;
    }
}

/// A right that the parameters need besides those of the method.
fn more_right(call: &Call) -> Option<Right> {
    match call {
        // Whoever chooses what runs without a question answers it in advance.
        Call::ConversationCreate(params) if params.approval_mode.is_some() => Some(Right::Approve),
        Call::SessionSend(params) if params.approval_mode.is_some() => Some(Right::Approve),
        // It is written to the configuration and counts everywhere.
        Call::ApprovalAnswer(params) if params.scope == ApprovalScope::Always => Some(Right::Admin),
        _ => None,
    }
}

/// The one session that a call is about; `None` for a call that is about more, or that leaves open which.
fn session(call: &Call) -> Option<(ConversationId, SessionId)> {
    macro_rules! session_of {
        ($($method:ident),+) => {
            match call {
                $(Call::$method(params) => Some((params.conversation_id, params.session_id?)),)+
                _ => None,
            }
        };
    }
    session_of!(
        SessionSend,
        SessionInterrupt,
        SessionItems,
        SessionBlob,
        SessionPendingList,
        SessionPendingUpdate,
        SessionPendingWithdraw,
        SessionPendingReorder,
        SessionResume,
        SessionUpdate,
        SessionCompact,
        SessionUncompact,
        ApprovalAnswer
    )
}
