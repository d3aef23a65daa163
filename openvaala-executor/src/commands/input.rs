//! The standard input of a command.

use std::future::pending;
use std::pin::Pin;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::{CommandError, CommandId};
use crate::error::ExecutorError;
use crate::process::ProcessInput;

type Fed = (Box<dyn ProcessInput>, Result<(), ExecutorError>);

/// Where a reply to a write goes.
pub(super) type InputReply = oneshot::Sender<Result<(), CommandError>>;

/// The standard input of a command, and the one write that may be under way.
pub(super) enum InputSide {
    Ended,
    Feeding {
        write: Pin<Box<dyn Future<Output = Fed> + Send>>,
        /// Whether the input ends after this write.
        end: bool,
        reply: InputReply,
    },
    None,
    Open(Box<dyn ProcessInput>),
}

impl InputSide {
    pub(super) fn new(input: Option<Box<dyn ProcessInput>>) -> Self {
        input.map_or(Self::None, Self::Open)
    }

    /// Begins a write, or says why not; never waits. Tells whether it has begun.
    pub(super) fn feed(
        &mut self,
        id: CommandId,
        bytes: Bytes,
        end: bool,
        reply: InputReply,
    ) -> bool {
        let refusal = match std::mem::replace(self, Self::Ended) {
            Self::Open(mut input) => {
                let write = Box::pin(async move {
                    let result = input.write(bytes).await;
                    (input, result)
                });
                *self = Self::Feeding { write, end, reply };
                return true;
            }
            Self::Ended => CommandError::InputEnded { id },
            Self::None => {
                *self = Self::None;
                CommandError::NoInput { id }
            }
            feeding @ Self::Feeding { .. } => {
                *self = feeding;
                CommandError::InputUnread { id }
            }
        };
        // Who asked may have gone.
        let _ = reply.send(Err(refusal));
        false
    }

    /// Waits for the write that is under way; for ever if there is none. Cancel safe.
    pub(super) async fn fed(&mut self) {
        let Self::Feeding { write, .. } = self else {
            return pending().await;
        };
        let (input, result) = write.await;
        let next = if result.is_ok() {
            Self::Open(input)
        } else {
            Self::Ended
        };
        if let Self::Feeding { end, reply, .. } = std::mem::replace(self, next) {
            if end {
                *self = Self::Ended;
            }
            let _ = reply.send(result.map_err(CommandError::from));
        }
    }
}
