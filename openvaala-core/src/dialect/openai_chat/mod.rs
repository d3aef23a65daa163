//! OpenAI Chat Completions, which nearly every service speaks: OpenAI, OpenRouter, DeepSeek, Ollama, llama.cpp,
//! vLLM, LiteLLM and many more.

mod chunk;
mod reader;
mod request;
#[cfg(test)]
mod tests;
mod tool_calls;

use std::collections::VecDeque;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};

use self::reader::ChunkReader;
use super::http::{Endpoint, EventStream, HttpOptions, Received};
use crate::model::{ModelError, ModelEvent, ModelProvider, ModelRequest};

/// What an [`OpenAiChat`] needs to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenAiChatOptions {
    /// Where the service is; `/chat/completions` is added to its base URL unless it ends so.
    pub http: HttpOptions,
}

impl OpenAiChatOptions {
    /// The service at that place.
    #[must_use]
    pub const fn new(http: HttpOptions) -> Self {
        Self { http }
    }
}

/// A provider that speaks Chat Completions.
///
/// ```no_run
/// use openvaala_core::dialect::http::{HttpOptions, Secret, default_client};
/// use openvaala_core::dialect::openai_chat::{OpenAiChat, OpenAiChatOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let http = HttpOptions::new(default_client()?, "https://api.openai.com/v1")
///     .with_api_key(Secret::new("sk-…"));
/// let provider = OpenAiChat::new(OpenAiChatOptions::new(http))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenAiChat {
    endpoint: Endpoint,
}

impl OpenAiChat {
    /// A provider at that place; nothing is sent before the first request.
    ///
    /// # Errors
    /// [`BadRequest`](crate::model::ModelErrorKind::BadRequest) if the base URL or a header is wrong,
    /// [`Unauthorized`](crate::model::ModelErrorKind::Unauthorized) if the key has characters that no key has.
    pub fn new(options: OpenAiChatOptions) -> Result<Self, ModelError> {
        Ok(Self {
            endpoint: Endpoint::new(options.http, &["chat", "completions"])?,
        })
    }
}

#[async_trait]
impl ModelProvider for OpenAiChat {
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        let events = self.endpoint.post(request::body(&request)?).await?;
        let reader = ChunkReader::new(self.endpoint.place(), self.endpoint.redactor().clone());
        let answer = Answer {
            events,
            reader: Some(reader),
            ready: VecDeque::new(),
        };
        Ok(stream::unfold(answer, |mut answer| async {
            let event = answer.next().await.transpose()?;
            Some((event, answer))
        })
        .boxed())
    }

    fn account(&self) -> Option<&str> {
        self.endpoint.account()
    }
}

/// An answer on its way.
struct Answer {
    events: EventStream,
    /// `None` after the end or an error.
    reader: Option<ChunkReader>,
    ready: VecDeque<ModelEvent>,
}

impl Answer {
    async fn next(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(mut reader) = self.reader.take() else {
                return Ok(None);
            };
            match self.events.next().await? {
                Some(Received::Whole(event)) => self.ready.extend(reader.push(&event.data)?),
                Some(Received::Last(event)) => {
                    self.ready.extend(reader.push_last(&event.data)?);
                }
                None => {
                    self.ready.extend(reader.finish()?);
                    continue;
                }
            }
            if reader.is_done() {
                self.ready.extend(reader.finish()?);
            } else {
                self.reader = Some(reader);
            }
        }
    }
}
