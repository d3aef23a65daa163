//! Ids: UUIDv7 text, a type each, and the names that people give.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A text that is no id of the wanted kind.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{value:?} is no {kind}: {reason}")]
#[non_exhaustive]
pub struct InvalidId {
    /// What the id stands for, such as `conversation id`.
    pub kind: &'static str,
    /// The text as it was given, at most 80 characters of it.
    pub value: String,
    /// What a right one looks like.
    pub reason: &'static str,
}

impl InvalidId {
    fn new(kind: &'static str, value: &str, reason: &'static str) -> Self {
        Self {
            kind,
            value: value.chars().take(80).collect(),
            reason,
        }
    }
}

macro_rules! uuid_id {
    ($(#[doc = $doc:literal])+ $name:ident, $kind:literal) => {
        $(#[doc = $doc])+
        ///
        /// Written as a lower-case hyphenated UUID; ids made later sort later.
        #[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[cfg_attr(feature = "schema", derive(ts_rs::TS), ts(type = "string"))]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID.
            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID inside.
            #[must_use]
            pub const fn as_uuid(&self) -> &Uuid {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Reads the canonical text only, so that one id has one spelling in paths and logs.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let reason = "expected a lower-case UUID such as 0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";
                let wrong = || InvalidId::new($kind, text, reason);
                let uuid = Uuid::try_parse(text).map_err(|_| wrong())?;
                let canonical = text.len() == 36 && !text.bytes().any(|b| b.is_ascii_uppercase());
                if canonical { Ok(Self(uuid)) } else { Err(wrong()) }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "format": "uuid" })
            }
        }
    };
}

uuid_id!(/// Names one conversation.
    ConversationId, "conversation id");
uuid_id!(/// Names one session of a conversation.
    SessionId, "session id");
uuid_id!(/// Names one turn of a session.
    TurnId, "turn id");
uuid_id!(/// Names one item; clients choose the id of the input that they send.
    ItemId, "item id");
uuid_id!(/// Names one large text or attachment in a session's blob stream.
    BlobId, "blob id");

/// Names an executor, such as `local` or `build-host`.
///
/// One to 64 of `a-z A-Z 0-9 _ -`, since models see it as a value of a tool parameter.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(transparent)]
pub struct ExecutorId(String);

impl ExecutorId {
    /// The id of the machine that the runtime itself is on.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExecutorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ExecutorId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId::new(
                "executor id",
                text,
                "expected 1 to 64 of a-z A-Z 0-9 _ -",
            ))
        }
    }
}

impl<'de> Deserialize<'de> for ExecutorId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
