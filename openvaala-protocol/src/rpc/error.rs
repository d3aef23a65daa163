//! The error codes, and the error object that carries one.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::PROTOCOL_VERSION;

/// An error as it stands in a JSON-RPC response.
#[derive(Clone, Debug, Deserialize, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// What kind of error it is: a number of the table of errors.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub code: i64,
    /// What happened, where, and what to do about it.
    pub message: String,
    /// More about it, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<serde_json::Value>"),
        ts(type = "unknown", optional)
    )]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error of that kind.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code: code.number(),
            message: message.into(),
            data: None,
        }
    }

    /// Refuses what comes too fast; `data` says after how many milliseconds to send it again, as `retry_after_ms`.
    pub fn overloaded(message: impl Into<String>, retry_after: Duration) -> Self {
        let millis = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        let data = to_raw_value(&RetryData {
            // What comes a moment too early would be refused again.
            retry_after_ms: millis.saturating_add(1),
        });
        Self {
            data: data.ok(),
            ..Self::new(ErrorCode::Overloaded, message)
        }
    }

    /// After how long to send a request again that came [too fast](Self::overloaded), where the server said so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if self.kind() != Some(ErrorCode::Overloaded) {
            return None;
        }
        let data: RetryData = serde_json::from_str(self.data.as_deref()?.get()).ok()?;
        Some(Duration::from_millis(data.retry_after_ms))
    }

    /// Refuses an `initialize` whose protocol version is not this side's; `data` names this side's version.
    #[must_use]
    pub fn version_mismatch(client_version: &str) -> Self {
        let shown: String = client_version.chars().take(80).collect();
        let message = format!(
            "the server speaks protocol version {PROTOCOL_VERSION:?}, the client {shown:?}: \
             run `openvaala serve stop` and retry"
        );
        let data = to_raw_value(&VersionData {
            protocol_version: PROTOCOL_VERSION.into(),
        })
        .ok();
        Self {
            data,
            ..Self::new(ErrorCode::InvalidRequest, message)
        }
    }

    /// The protocol version that the server named, if this error is a [version mismatch](Self::version_mismatch).
    #[must_use]
    pub fn mismatched_version(&self) -> Option<String> {
        if self.kind() != Some(ErrorCode::InvalidRequest) {
            return None;
        }
        let data: VersionData<'_> = serde_json::from_str(self.data.as_deref()?.get()).ok()?;
        Some(data.protocol_version.into_owned())
    }

    /// The kind, if this version knows the number.
    #[must_use]
    pub fn kind(&self) -> Option<ErrorCode> {
        ERRORS
            .iter()
            .map(|info| info.code)
            .find(|code| code.number() == self.code)
    }
}

/// What the error of a client that is too fast carries.
#[derive(Deserialize, Serialize)]
struct RetryData {
    retry_after_ms: u64,
}

/// What the error of a version mismatch carries.
#[derive(Deserialize, Serialize)]
struct VersionData<'a> {
    protocol_version: Cow<'a, str>,
}

/// One row of the table of errors.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ErrorInfo {
    /// The kind.
    pub code: ErrorCode,
    /// Its name in documents and generated types.
    pub name: &'static str,
    /// When it is given and what to do about it.
    pub about: &'static str,
}

macro_rules! errors {
    ($($variant:ident = $number:literal, $name:literal, $about:literal;)+) => {
        /// What kind of error a response carries.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = $about] $variant,)+
        }

        impl ErrorCode {
            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> i64 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }
        }

        /// Every error that a response can carry.
        pub const ERRORS: &[ErrorInfo] = &[
            $(ErrorInfo { code: ErrorCode::$variant, name: $name, about: $about },)+
        ];
    };
}

errors! {
    Parse = -32700, "parse_error", "The message is no JSON, or its parameters are nested deeper than 127 levels.";
    InvalidRequest = -32600, "invalid_request",
        "The message is no JSON-RPC 2.0 request, is a batch, comes before `initialize`, or has another protocol version.";
    MethodNotFound = -32601, "method_not_found", "There is no such method.";
    InvalidParams = -32602, "invalid_params", "The parameters do not fit the method; the message names the field.";
    Runtime = -32000, "runtime", "The runtime could not do it; the message says why.";
    SessionBusy = -32001, "session_busy", "The session runs a turn and the request asked for an idle one.";
    ConversationNotFound = -32002, "conversation_not_found", "There is no such conversation.";
    SessionNotFound = -32003, "session_not_found", "There is no such session in that conversation.";
    TerminalNotFound = -32004, "terminal_not_found", "There is no such background command.";
    Overloaded = -32005, "overloaded", "The server has too much to do; try again a little later.";
    ConversationExists = -32006, "conversation_exists",
        "There is a conversation of that id already where this one would go: among the others, or in the trash.";
    InputNotFound = -32011, "input_not_found", "No such input waits: it was never sent, or was withdrawn.";
    InputTaken = -32012, "input_taken", "The input does not wait any more: a turn has taken it.";
    QueueChanged = -32013, "queue_changed",
        "The order does not name exactly the inputs that wait; the message says what differs. List them and try again.";
    ApprovalNotFound = -32007, "approval_not_found", "There is no such question in that session.";
    ApprovalAnswered = -32008, "approval_answered",
        "Somebody else has answered this question first, or it was taken back; `data` is the approval as it is now.";
    TurnNotFound = -32020, "turn_not_found", "There is no such turn in that conversation.";
    ConversationBusy = -32021, "conversation_busy",
        "Something runs or waits in the conversation, or somebody watches it; the message says what.";
    Forbidden = -32022, "forbidden", "The token of this connection does not allow that, or is no longer good; the message names the right it lacks.";
    TokenExists = -32023, "token_exists", "There is a token of that name already.";
    TokenNotFound = -32024, "token_not_found", "There is no token of that name.";
    ConfigChanged = -32025, "config_changed", "The configuration was changed meanwhile: look at it again.";
}
