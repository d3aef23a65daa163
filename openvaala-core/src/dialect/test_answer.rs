//! What the tests of all dialects do with an answer: read it as it would come over the network, and show it.

use std::fs;

use futures::StreamExt;
use openvaala_protocol::content::Content;

use super::http::AnswerReader;
use super::sse::SseReader;
use crate::model::{Message, ModelError, ModelEvent, ModelProvider, ModelRequest, PartKind};

/// What an answer comes to: its events up to its end or its error.
pub(crate) type Answer = (Vec<ModelEvent>, Option<ModelError>);

/// A recorded body.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/streams");
    fs::read(format!("{folder}/{name}.sse")).unwrap()
}

/// The names of all recorded answers of an API, bodies of failed requests left out, sorted.
pub(crate) fn answers_of(api: &str) -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/streams");
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = files
        .filter_map(|file| {
            let name = file.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".sse").map(str::to_owned)
        })
        .filter(|name| name.rsplit('-').nth(1) == Some(api) && !name.contains("-err"))
        .collect();
    names.sort();
    names
}

/// Reads an answer from pieces of its bytes.
pub(crate) fn read_pieces<'a, R: AnswerReader>(
    mut reader: R,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Answer {
    let mut sse = SseReader::new();
    let mut whole = Vec::new();
    for piece in pieces {
        whole.extend(sse.feed(piece).unwrap());
    }
    let last = sse.finish().unwrap();
    let mut all = Vec::new();
    let mut read = || -> Result<(), ModelError> {
        for event in &whole {
            all.extend(reader.push(event)?);
            if reader.is_done() {
                break;
            }
        }
        if let Some(event) = last.as_ref().filter(|_| !reader.is_done()) {
            all.extend(reader.push_last(event)?);
        }
        Ok(())
    };
    match read() {
        Ok(()) => match reader.finish() {
            Ok(events) => {
                all.extend(events);
                (all, None)
            }
            Err(error) => (all, Some(error)),
        },
        Err(error) => (all, Some(error)),
    }
}

/// A request that says hi to that model.
pub(crate) fn question(model: &str) -> ModelRequest {
    let messages = vec![Message::User(vec![Content::text("hi")])];
    ModelRequest {
        model: model.to_owned(),
        messages: messages.into(),
        ..ModelRequest::default()
    }
}

/// Asks a provider and takes its answer to the end; nothing may come after an error.
pub(crate) async fn ask(provider: &impl ModelProvider, question: ModelRequest) -> Answer {
    let mut stream = match provider.stream(question).await {
        Ok(stream) => stream,
        Err(error) => return (vec![], Some(error)),
    };
    let (mut events, mut error) = (vec![], None);
    while let Some(event) = stream.next().await {
        assert!(error.is_none(), "{event:?} after an error");
        match event {
            Ok(event) => events.push(event),
            Err(failure) => error = Some(failure),
        }
    }
    (events, error)
}

/// The answer as a text that is easy to compare; neighbouring deltas of a part are joined with `|`.
pub(crate) fn shown((events, error): (Vec<ModelEvent>, Option<ModelError>)) -> String {
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
