mod request;
mod server;
mod stream;

use super::reader::EventReader;
use crate::dialect::http::{AnswerReader, Redactor};
use crate::dialect::sse::{SseEvent, SseReader};
use crate::model::{ModelError, ModelEvent, PartKind};

/// Reads an answer as it would come over the network, in those pieces.
fn read_pieces<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<ModelEvent>, Option<ModelError>) {
    let mut sse = SseReader::new();
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(sse.feed(piece).unwrap());
    }
    let last = sse.finish().unwrap();
    let mut all = Vec::new();
    let error = read_into(&events, last.as_ref(), &mut all).err();
    (all, error)
}

fn read(bytes: &[u8]) -> (Vec<ModelEvent>, Option<ModelError>) {
    read_pieces([bytes])
}

fn read_into(
    events: &[SseEvent],
    last: Option<&SseEvent>,
    all: &mut Vec<ModelEvent>,
) -> Result<(), ModelError> {
    let mut reader = EventReader::new("http://test/v1", Redactor::default());
    for event in events {
        all.extend(reader.push(event)?);
    }
    if let Some(event) = last {
        all.extend(reader.push_last(event)?);
    }
    all.extend(reader.finish()?);
    Ok(())
}

/// The answer as a text that is easy to compare; neighbouring deltas of a part are joined with `|`.
fn shown((events, error): (Vec<ModelEvent>, Option<ModelError>)) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut growing = None;
    for event in events {
        let line = match event {
            ModelEvent::Delta { part, text } => {
                let text = format!("{text:?}").trim_matches('"').to_owned();
                if growing == Some(part) {
                    let last = lines.last_mut().unwrap();
                    last.push('|');
                    last.push_str(&text);
                    continue;
                }
                growing = Some(part);
                lines.push(format!("{part} + {text}"));
                continue;
            }
            ModelEvent::Started {
                part,
                kind: PartKind::ToolCall { id, name },
            } => {
                format!("{part} call {name} {id:?}")
            }
            ModelEvent::Started { part, kind } => format!("{part} {kind:?}"),
            ModelEvent::Ended {
                part,
                opaque: Some(opaque),
            } => format!("{part} end {opaque}"),
            ModelEvent::Ended { part, opaque: None } => format!("{part} end"),
            ModelEvent::Finished { reason, usage } => format!(
                "{reason:?}, in {:?} cached {:?} out {:?} reasoning {:?}",
                usage.input_tokens,
                usage.cached_input_tokens,
                usage.output_tokens,
                usage.reasoning_tokens,
            ),
        };
        growing = None;
        lines.push(line);
    }
    lines.extend(error.map(|error| format!("error {:?}: {error}", error.kind)));
    lines.join("\n")
}
