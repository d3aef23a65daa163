//! From the errors of the runtime to those of the protocol.

use std::error::Error;

use openvaala_core::RuntimeError;
use openvaala_core::executor::commands::CommandError;
use openvaala_protocol::rpc::{ErrorCode, RpcError};
use serde_json::value::to_raw_value;

/// The protocol's error for one of the runtime.
pub(crate) fn rpc_error(error: &RuntimeError) -> RpcError {
    let code = match error {
        RuntimeError::ConversationNotFound { .. } | RuntimeError::NotInTrash { .. } => {
            ErrorCode::ConversationNotFound
        }
        RuntimeError::ConversationExists { .. } | RuntimeError::InTrashAlready { .. } => {
            ErrorCode::ConversationExists
        }
        RuntimeError::SessionNotFound { .. } => ErrorCode::SessionNotFound,
        RuntimeError::SessionBusy { .. } => ErrorCode::SessionBusy,
        RuntimeError::TurnNotFound { .. } => ErrorCode::TurnNotFound,
        RuntimeError::ConversationBusy { .. } => ErrorCode::ConversationBusy,
        RuntimeError::TerminalNotFound { .. } => ErrorCode::TerminalNotFound,
        RuntimeError::Command(CommandError::InputMoved { .. }) => ErrorCode::InvalidParams,
        RuntimeError::ApprovalNotFound { .. } => ErrorCode::ApprovalNotFound,
        RuntimeError::ApprovalAnswered { .. } => ErrorCode::ApprovalAnswered,
        RuntimeError::Overloaded => ErrorCode::Overloaded,
        RuntimeError::InvalidInput { .. }
        | RuntimeError::InvalidCursor
        | RuntimeError::UnknownProvider { .. }
        | RuntimeError::UnknownAgent { .. }
        | RuntimeError::UnknownExecutor { .. }
        | RuntimeError::InvalidCut { .. } => ErrorCode::InvalidParams,
        RuntimeError::InputNotFound { .. } => ErrorCode::InputNotFound,
        RuntimeError::InputTaken { .. } => ErrorCode::InputTaken,
        RuntimeError::QueueChanged { .. } => ErrorCode::QueueChanged,
        _ => ErrorCode::Runtime,
    };
    let mut answer = RpcError::new(code, with_causes(error));
    if let RuntimeError::ApprovalAnswered { approval } = error {
        answer.data = to_raw_value(approval).ok();
    }
    answer
}

/// An error and what caused it, in one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // Some errors show what caused them themselves.
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use openvaala_core::RuntimeError;
    use openvaala_core::storage::Error;
    use pretty_assertions::assert_eq;

    use super::rpc_error;

    #[test]
    fn an_error_of_the_storage_is_told_with_its_cause() {
        let cause = io::Error::other("the disk is on fire");
        let error = RuntimeError::Storage(Error::io("append to", "/data/x", cause));
        let error = rpc_error(&error);
        assert_eq!(
            (error.code, error.message.as_str()),
            (
                -32000,
                "the storage failed: can't append to /data/x: the disk is on fire"
            )
        );
    }

    #[test]
    fn what_the_client_named_wrongly_is_a_matter_of_its_parameters() {
        let known = vec!["demo".to_owned()];
        let error = rpc_error(&RuntimeError::UnknownProvider {
            name: "acme".to_owned(),
            known,
        });
        assert_eq!(
            (error.code, error.message.as_str()),
            (
                -32602,
                r#"there is no model provider "acme"; there are: demo"#
            )
        );
    }
}
