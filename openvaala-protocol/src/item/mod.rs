//! Items: what a session records, in the order in which it first appeared.
//!
//! An item is written once, when it is final or cut; approvals, plans and notices may be written again
//! with the same `pos`. Readers order by `pos`.

mod message;
mod notice;
mod tool;

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

pub use self::message::{
    AgentMessage, AssistantMessage, CompactionTrigger, ContextSummary, Instructions, KeptMessage,
    Opaque, Reasoning, Skill, SummaryUndone, UserMessage,
};
pub use self::notice::{
    AgentChange, Approval, ApprovalState, ExecutorChange, HookRun, Interruption, InterruptionCause,
    ModelChange, ModelError, Plan, PlanStep, PlanStepState, RetryNotice,
};
pub use self::tool::{ToolCall, ToolResult, ToolResultStatus};

use crate::id::{ItemId, TurnId};
use crate::time::Timestamp;

/// One thing that a session records: a typed head, and its whole JSON text as it was written.
///
/// The text is what is stored and sent on, so unknown kinds, unknown fields, key order and integers of any
/// size survive. The body is decoded on demand with [`Item::body`].
#[derive(Clone)]
pub struct Item {
    head: ItemHead,
    raw: Box<RawValue>,
}

/// The part of an item that every kind has.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct ItemHead {
    /// The item's own id.
    pub id: ItemId,
    /// What the body is.
    pub kind: ItemKind,
    /// The turn that it belongs to, if it belongs to one.
    pub turn: Option<TurnId>,
    /// Its place in the session: counted from 1 in order of first appearance.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub pos: u64,
    /// When it first appeared.
    pub started_at: Timestamp,
    /// When it was final or cut.
    pub ended_at: Timestamp,
}

impl ItemHead {
    /// A head with all its fields.
    #[must_use]
    pub const fn new(
        id: ItemId,
        kind: ItemKind,
        turn: Option<TurnId>,
        pos: u64,
        started_at: Timestamp,
        ended_at: Timestamp,
    ) -> Self {
        Self {
            id,
            kind,
            turn,
            pos,
            started_at,
            ended_at,
        }
    }
}

/// An item as it stands in JSON.
#[derive(Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema, ts_rs::TS),
    ts(rename = "Item")
)]
#[cfg_attr(feature = "schema", schemars(rename = "Item"))]
pub(crate) struct ItemShape<'a> {
    /// The item's own id.
    id: ItemId,
    /// What the body is.
    kind: ItemKind,
    /// The turn that it belongs to, if it belongs to one.
    turn: Option<TurnId>,
    /// Its place in the session: counted from 1 in order of first appearance.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pos: u64,
    /// When it first appeared.
    started_at: Timestamp,
    /// When it was final or cut.
    ended_at: Timestamp,
    /// The body, shaped by `kind`.
    #[cfg_attr(
        feature = "schema",
        ts(type = "unknown"),
        schemars(with = "serde_json::Value")
    )]
    body: &'a RawValue,
}

impl Item {
    /// Builds an item from its head and body.
    ///
    /// # Errors
    /// Fails if the body cannot be written as JSON, which no body of this crate does.
    pub fn new<B: ItemBody>(mut head: ItemHead, body: &B) -> Result<Self, serde_json::Error> {
        head.kind = B::KIND;
        let body = to_raw_value(body)?;
        let raw = to_raw_value(&ItemShape {
            id: head.id,
            kind: head.kind.clone(),
            turn: head.turn,
            pos: head.pos,
            started_at: head.started_at,
            ended_at: head.ended_at,
            body: &body,
        })?;
        Ok(Self { head, raw })
    }

    /// Takes an item's JSON text as it is; only the head is parsed.
    ///
    /// # Errors
    /// Fails if the text is no JSON object or lacks a field of the head.
    pub fn from_raw(raw: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let head = serde_json::from_str(raw.get())?;
        Ok(Self { head, raw })
    }

    /// What every item has.
    #[must_use]
    pub const fn head(&self) -> &ItemHead {
        &self.head
    }

    /// The whole item as JSON text.
    #[must_use]
    pub const fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// The whole item as JSON text, owned.
    #[must_use]
    pub fn into_raw(self) -> Box<RawValue> {
        self.raw
    }

    /// Decodes the body, if the item is of that kind.
    ///
    /// `None` for another kind; an error if the body does not fit its kind.
    pub fn body<B: ItemBody>(&self) -> Option<Result<B, serde_json::Error>> {
        (self.head.kind == B::KIND).then(|| self.body_as())
    }

    /// The body as JSON text.
    ///
    /// # Errors
    /// Fails if the item has no body.
    pub fn raw_body(&self) -> Result<&RawValue, serde_json::Error> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            body: &'a RawValue,
        }
        serde_json::from_str::<Body<'_>>(self.raw.get()).map(|item| item.body)
    }

    fn body_as<B: DeserializeOwned>(&self) -> Result<B, serde_json::Error> {
        serde_json::from_str(self.raw_body()?.get())
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.raw.get() == other.raw.get()
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({})", self.raw.get())
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_raw(Box::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ItemKind {
    fn schema_name() -> Cow<'static, str> {
        "ItemKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let known: Vec<&str> = Self::KNOWN.iter().map(Self::as_str).collect();
        schemars::json_schema!({
            "type": "string",
            "description": "What an item is; there may be kinds that this version does not know.",
            "examples": known,
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Item {
    fn schema_name() -> Cow<'static, str> {
        ItemShape::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        ItemShape::json_schema(generator)
    }
}

/// The body of one kind of item.
pub trait ItemBody: DeserializeOwned + Serialize {
    /// The kind whose body this is.
    const KIND: ItemKind;
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident, $name:literal;)+) => {
        /// What an item is.
        #[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[cfg_attr(feature = "schema", derive(ts_rs::TS), ts(type = "string"))]
        #[non_exhaustive]
        pub enum ItemKind {
            $($(#[doc = $doc])+ $variant,)+
            /// A kind that this version does not know; kept as it came.
            Unknown(Box<str>),
        }

        impl ItemKind {
            /// Every kind that this version knows.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// The name of the kind as it stands in JSON.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Unknown(name) => name,
                }
            }

            fn from_name(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)+
                    other => Self::Unknown(other.into()),
                }
            }
        }

        $(impl ItemBody for $variant {
            const KIND: ItemKind = ItemKind::$variant;
        })+

        /// Visits the body of every kind in the order of [`ItemKind::KNOWN`].
        #[cfg(feature = "schema")]
        pub(crate) fn body_types(visit: &mut impl crate::schema::VisitTypes) {
            $(visit.visit::<$variant>();)+
        }
    };
}

kinds! {
    /// What a person (or a program for one) said.
    UserMessage, "user_message";
    /// What the model said.
    AssistantMessage, "assistant_message";
    /// What one agent of the conversation said to another.
    AgentMessage, "agent_message";
    /// What the model thought.
    Reasoning, "reasoning";
    /// A tool that the model asked for.
    ToolCall, "tool_call";
    /// What came of a tool call.
    ToolResult, "tool_result";
    /// A model request that failed for good.
    ModelError, "model_error";
    /// A summary that stands for all items before it.
    ContextSummary, "context_summary";
    /// The session goes on with another model or effort.
    ModelChange, "model_change";
    /// The conversation goes on with other executors or folders.
    ExecutorChange, "executor_change";
    /// A skill that was brought into the context.
    Skill, "skill";
    /// An AGENTS.md that was brought into the context.
    Instructions, "instructions";
    /// A hook that ran around a tool call.
    HookRun, "hook_run";
    /// The turn was ended before its time.
    Interruption, "interruption";
    /// A question whether a tool call may run.
    Approval, "approval";
    /// The agent's list of steps.
    Plan, "plan";
    /// A model request failed and is tried again.
    RetryNotice, "retry_notice";
    /// The session goes on with another agent.
    AgentChange, "agent_change";
    /// A summary counts no longer.
    SummaryUndone, "summary_undone";
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ItemKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ItemKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from_name(&Cow::<'de, str>::deserialize(
            deserializer,
        )?))
    }
}
