//! A model's answer while it comes.

use openvaala_protocol::event::{Delta, Live, PartialItem};
use openvaala_protocol::id::TurnId;
use openvaala_protocol::item::{AssistantMessage, ItemKind, Opaque, Reasoning};
use openvaala_protocol::time::Timestamp;
use serde_json::value::RawValue;

use super::scribe::{Place, Scribe, Tick};
use crate::model::{ModelEvent, PartKind, StopReason};
use crate::session::Effect;

/// The most text that one answer may have.
const MAX_BYTES: usize = 16 << 20;
/// The most parts that one answer may have.
const MAX_PARTS: usize = 512;

/// The parts of an answer, in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    parts: Vec<Part>,
    bytes: usize,
}

#[derive(Debug)]
struct Part {
    number: u32,
    kind: PartKind,
    place: Place,
    text: String,
    opaque: Option<Box<RawValue>>,
    ended: bool,
}

/// A tool call as the answer has it.
#[derive(Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) place: Place,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// Whether the answer ended before the arguments did.
    pub(crate) cut: bool,
}

/// Where opaque parts of this answer come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) account: Option<String>,
}

impl Answer {
    /// Takes in one event other than the last; says what is wrong with it, if anything is.
    pub(crate) fn take(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        turn: TurnId,
        event: ModelEvent,
    ) -> Result<(), String> {
        match event {
            ModelEvent::Started { part, kind } => self.start(scribe, tick, turn, part, kind),
            ModelEvent::Delta { part, text } => self.grow(scribe, part, text),
            ModelEvent::Ended { part, opaque } => {
                let part = self.part(part)?;
                part.ended = true;
                part.opaque = opaque.or_else(|| part.opaque.take());
                Ok(())
            }
            ModelEvent::Finished { .. } => Ok(()),
        }
    }

    fn start(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        turn: TurnId,
        number: u32,
        kind: PartKind,
    ) -> Result<(), String> {
        if self.parts.iter().any(|part| part.number == number) {
            return Err(format!("the answer starts its part {number} twice"));
        }
        if self.parts.len() >= MAX_PARTS {
            return Err(format!("the answer has more than {MAX_PARTS} parts"));
        }
        let place = scribe.place(tick);
        let (item_kind, label) = match &kind {
            PartKind::Text => (ItemKind::AssistantMessage, None),
            PartKind::Reasoning => (ItemKind::Reasoning, None),
            PartKind::ToolCall { name, .. } => (ItemKind::ToolCall, Some(name.clone())),
        };
        scribe.journal.now(Effect::Live(Live::Started(PartialItem {
            session_id: scribe.session,
            turn_id: turn,
            item_id: place.id,
            kind: item_kind,
            pos: place.pos,
            started_at: place.started_at,
            label,
            offset: 0,
            text: String::new(),
        })));
        let text = String::new();
        self.parts.push(Part {
            number,
            kind,
            place,
            text,
            opaque: None,
            ended: false,
        });
        Ok(())
    }

    fn grow(&mut self, scribe: &mut Scribe, part: u32, text: String) -> Result<(), String> {
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            return Err(format!(
                "the answer has more than {} MiB of text",
                MAX_BYTES >> 20
            ));
        }
        let session_id = scribe.session;
        let part = self.part(part)?;
        let offset = part.text.len() as u64;
        part.text.push_str(&text);
        let item_id = part.place.id;
        scribe.journal.now(Effect::Live(Live::Delta(Delta {
            session_id,
            item_id,
            offset,
            text,
        })));
        Ok(())
    }

    fn part(&mut self, number: u32) -> Result<&mut Part, String> {
        let part = self
            .parts
            .iter_mut()
            .rev()
            .find(|part| part.number == number);
        part.ok_or_else(|| format!("the answer goes on with part {number} that it never started"))
    }

    /// Writes a complete answer's text and reasoning, and gives the tools it asks for.
    pub(crate) fn finish(
        self,
        scribe: &mut Scribe,
        turn: TurnId,
        source: &Source,
        reason: StopReason,
        now: Timestamp,
    ) -> Vec<Asked> {
        let cut = reason != StopReason::Done;
        let last = self.parts.len().saturating_sub(1);
        let mut asked = Vec::new();
        for (index, part) in self.parts.into_iter().enumerate() {
            let cut = cut && (index == last || !part.ended);
            match part.kind {
                PartKind::ToolCall { id, name } => {
                    let place = part.place;
                    asked.push(Asked {
                        place,
                        id,
                        name,
                        arguments: part.text,
                        cut,
                    });
                }
                PartKind::Text | PartKind::Reasoning => part.write(scribe, turn, source, cut, now),
            }
        }
        asked
    }

    /// Keeps what came of an answer that will not come to its end; tools it was about to ask for are dropped.
    pub(crate) fn abandon(
        self,
        scribe: &mut Scribe,
        turn: TurnId,
        source: &Source,
        now: Timestamp,
    ) {
        for part in self.parts {
            let dropped = matches!(part.kind, PartKind::ToolCall { .. }) || part.text.is_empty();
            if dropped {
                let (session_id, item_id) = (scribe.session, part.place.id);
                scribe.journal.now(Effect::Live(Live::Dropped {
                    session_id,
                    item_id,
                }));
            } else {
                let cut = !part.ended;
                part.write(scribe, turn, source, cut, now);
            }
        }
    }
}

impl Answer {
    /// Drops an answer that will be asked for again.
    pub(crate) fn discard(self, scribe: &mut Scribe) {
        for part in self.parts {
            let (session_id, item_id) = (scribe.session, part.place.id);
            scribe.journal.now(Effect::Live(Live::Dropped {
                session_id,
                item_id,
            }));
        }
    }
}

impl Part {
    fn write(self, scribe: &mut Scribe, turn: TurnId, source: &Source, cut: bool, now: Timestamp) {
        if self.kind == PartKind::Text {
            let message = AssistantMessage::new(self.text, cut);
            scribe.write(self.place, Some(turn), &message, now);
            return;
        }
        let Source {
            provider,
            model,
            account,
        } = source.clone();
        let opaque = self
            .opaque
            .map(|data| Opaque::new(provider, model, account, data));
        scribe.write(
            self.place,
            Some(turn),
            &Reasoning::new(self.text, opaque, cut),
            now,
        );
    }
}
