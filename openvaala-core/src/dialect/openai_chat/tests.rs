mod request;
mod server;
mod stream;

use super::reader::ChunkReader;
use crate::dialect::http::Redactor;
use crate::dialect::sse::SseReader;
use crate::model::{ModelError, ModelEvent, PartKind};

/// Reads an answer as it would come over the network.
fn read(bytes: &[u8]) -> (Vec<ModelEvent>, Option<ModelError>) {
    let mut sse = SseReader::new();
    let events = sse.feed(bytes).unwrap();
    let data: Vec<String> = events.into_iter().map(|event| event.data).collect();
    let last = sse.finish().unwrap().map(|event| event.data);
    let mut all = Vec::new();
    let error = read_into(&data, last.as_deref(), &mut all).err();
    (all, error)
}

fn read_into(
    data: &[String],
    last: Option<&str>,
    all: &mut Vec<ModelEvent>,
) -> Result<(), ModelError> {
    let mut reader = ChunkReader::new("http://test/v1", Redactor::default());
    for data in data {
        all.extend(reader.push(data)?);
    }
    if let Some(data) = last {
        all.extend(reader.push_last(data)?);
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
