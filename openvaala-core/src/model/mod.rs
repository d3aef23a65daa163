//! Model providers: who answers, and the shape of question and answer.

mod messages;
mod provider;
mod request;

pub use self::messages::Messages;
pub use self::provider::{
    ModelError, ModelErrorKind, ModelEvent, ModelProvider, PartKind, StopReason,
};
pub use self::request::{AssistantPart, Message, ModelRequest, OutputSchema, ToolAnswer};
