//! One event of an answer, as far as it matters; all else in it is ignored.

use openvaala_protocol::usage::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use crate::dialect::sse::SseEvent;

/// What an event says.
#[derive(Debug)]
pub(super) enum Event<'a> {
    MessageStart(MessageStart),
    BlockStart(BlockStart<'a>),
    BlockDelta(BlockDelta),
    BlockStop(BlockStop),
    MessageDelta(MessageDelta),
    MessageStop,
    /// An error in the place of the rest.
    Error(Value),
    /// A ping, or what a later version of the API brings.
    Other,
}

impl<'a> Event<'a> {
    /// Reads an event.
    ///
    /// # Errors
    /// If its data is no JSON object, or lacks what its type needs.
    pub(super) fn read(event: &'a SseEvent) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(default, rename = "type")]
            kind: Option<String>,
            #[serde(borrow, default)]
            error: Option<&'a RawValue>,
        }
        let data = event.data.trim();
        // serde would read a list as a struct, too.
        if !data.starts_with('{') {
            return Err(serde::de::Error::custom("no JSON object"));
        }
        let head: Head<'_> = serde_json::from_str(data)?;
        let kind = head.kind.as_deref().or(event.event.as_deref());
        Ok(match kind.unwrap_or_default() {
            "message_start" => Self::MessageStart(serde_json::from_str(data)?),
            "content_block_start" => Self::BlockStart(serde_json::from_str(data)?),
            "content_block_delta" => Self::BlockDelta(serde_json::from_str(data)?),
            "content_block_stop" => Self::BlockStop(serde_json::from_str(data)?),
            "message_delta" => Self::MessageDelta(serde_json::from_str(data)?),
            "message_stop" => Self::MessageStop,
            "error" => Self::Error(serde_json::from_str(data)?),
            _ if head.error.is_some() => Self::Error(serde_json::from_str(data)?),
            _ => Self::Other,
        })
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageStart {
    pub(super) message: Started,
}

#[derive(Debug, Deserialize)]
pub(super) struct Started {
    #[serde(default)]
    pub(super) usage: Option<Counts>,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockStart<'a> {
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) content_block: StartedBlock<'a>,
}

/// A block at its beginning: the fields of all kinds of blocks.
#[derive(Debug, Deserialize)]
pub(super) struct StartedBlock<'a> {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) thinking: Option<String>,
    #[serde(default)]
    pub(super) signature: Option<String>,
    /// A thought that nobody may read.
    #[serde(default)]
    pub(super) data: Option<String>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
    /// Arguments that some services send whole; empty where they follow in pieces.
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockDelta {
    pub(super) index: u64,
    pub(super) delta: Delta,
}

/// More of a block.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    /// A citation, or what a later version of the API brings.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockStop {
    pub(super) index: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageDelta {
    #[serde(default)]
    pub(super) delta: Option<Stopped>,
    #[serde(default)]
    pub(super) usage: Option<Counts>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Stopped {
    #[serde(default)]
    pub(super) stop_reason: Option<String>,
}

/// Token counts so far; whatever is no count (negative, a text) is unknown.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Counts {
    #[serde(default)]
    input_tokens: Value,
    #[serde(default)]
    cache_creation_input_tokens: Value,
    #[serde(default)]
    cache_read_input_tokens: Value,
    #[serde(default)]
    output_tokens: Value,
    #[serde(default)]
    output_tokens_details: Value,
}

/// The token counts of an answer. Those of a later event include those of the earlier ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Tokens of the request that were neither read from the cache nor written to it.
    uncached: Option<u64>,
    written: Option<u64>,
    read: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl Tally {
    pub(super) fn take(&mut self, counts: &Counts) {
        // A count that an event leaves out, or that some services set back to zero, is the one before.
        let grow = |known: &mut Option<u64>, count: &Value| *known = (*known).max(count.as_u64());
        grow(&mut self.uncached, &counts.input_tokens);
        grow(&mut self.written, &counts.cache_creation_input_tokens);
        grow(&mut self.read, &counts.cache_read_input_tokens);
        grow(&mut self.output, &counts.output_tokens);
        let thinking = counts.output_tokens_details.get("thinking_tokens");
        grow(&mut self.thinking, thinking.unwrap_or(&Value::Null));
    }

    pub(super) fn usage(self) -> Usage {
        let mut usage = Usage::default();
        let of_cache = [self.written, self.read].into_iter().flatten();
        usage.input_tokens = self
            .uncached
            .map(|tokens| of_cache.fold(tokens, u64::saturating_add));
        usage.cached_input_tokens = self.read;
        usage.output_tokens = self.output;
        usage.reasoning_tokens = self.thinking;
        usage
    }
}
