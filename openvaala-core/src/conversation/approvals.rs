//! Questions whether a tool call may run, as whoever uses a conversation sees and answers them.

use openvaala_protocol::approval::{ApprovalAnswer, ApprovalScope};
use openvaala_protocol::id::{ItemId, SessionId};
use openvaala_protocol::item::Approval;
use openvaala_protocol::rpc::params::approval::OpenApproval;
use tokio::sync::oneshot;

use super::command::Command;
use super::handle::ConversationHandle;
use crate::error::RuntimeError;

/// The longest message with an answer, in characters.
const MAX_MESSAGE: usize = 4_000;

/// An answer to a question whether a tool call may run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnswerApproval {
    /// In which session; `None` means the root.
    pub session_id: Option<SessionId>,
    /// The question's id as an item.
    pub approval_id: ItemId,
    /// The answer.
    pub answer: ApprovalAnswer,
    /// For how long an approval counts.
    pub scope: ApprovalScope,
    /// The hash of what was shown; with another one than the call's nothing is answered.
    pub hash: Option<String>,
    /// What the model is told with a denial.
    pub message: Option<String>,
    /// Who answers, for those who come too late.
    pub answered_by: Option<String>,
}

impl AnswerApproval {
    /// An answer in the root session that counts for this call.
    #[must_use]
    pub const fn new(approval_id: ItemId, answer: ApprovalAnswer) -> Self {
        Self {
            session_id: None,
            approval_id,
            answer,
            scope: ApprovalScope::Once,
            hash: None,
            message: None,
            answered_by: None,
        }
    }

    /// The same with another scope.
    #[must_use]
    pub const fn with_scope(mut self, scope: ApprovalScope) -> Self {
        self.scope = scope;
        self
    }

    /// The same with a word to the model.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

impl ConversationHandle {
    /// Answers a question whether a tool call may run; the answer is on disk when this returns. The first answer counts.
    ///
    /// With [`ApprovalScope::Session`] or [`ApprovalScope::Always`] the rule of the approval counts in this session from now on;
    /// to keep it for others is up to the caller, who gets it in the result.
    ///
    /// # Errors
    /// [`RuntimeError::ApprovalNotFound`], [`RuntimeError::ApprovalAnswered`] if somebody was faster, or
    /// [`RuntimeError::InvalidInput`] for another hash, a scope without a rule, or a message of more than 4,000 characters.
    pub async fn answer_approval(&self, answer: AnswerApproval) -> Result<Approval, RuntimeError> {
        let is_too_long = |message: &String| message.chars().count() > MAX_MESSAGE;
        if answer.message.as_ref().is_some_and(is_too_long) {
            let message = format!("the message has more than {MAX_MESSAGE} characters");
            return Err(RuntimeError::InvalidInput { message });
        }
        let (reply, wait) = oneshot::channel();
        let session = answer.session_id.unwrap_or(self.root);
        self.command(Command::AnswerApproval {
            session,
            answer,
            reply,
        })?;
        wait.await.map_err(|_| RuntimeError::Stopped)?
    }

    /// Lists the open questions whether a tool call may run, the oldest first.
    ///
    /// # Errors
    /// [`RuntimeError::Stopped`].
    pub async fn approvals(&self) -> Result<Vec<OpenApproval>, RuntimeError> {
        let (reply, wait) = oneshot::channel();
        let asked = self.commands.send(Command::Approvals { reply }).await;
        asked.map_err(|_| RuntimeError::Stopped)?;
        let mut approvals = wait.await.map_err(|_| RuntimeError::Stopped)?;
        approvals.sort_by_key(|open| (open.asked_at, open.approval_id));
        Ok(approvals)
    }
}
