//! OpenAI Chat Completions, which nearly every service speaks: OpenAI, OpenRouter, DeepSeek, Ollama, llama.cpp,
//! vLLM, LiteLLM and many more.

mod chunk;
mod reader;
mod request;
#[cfg(test)]
mod tests;
mod tool_calls;

use async_trait::async_trait;
use futures::stream::BoxStream;

use self::reader::ChunkReader;
use super::http::{Auth, Endpoint, HttpOptions, answer};
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
            endpoint: Endpoint::new(options.http, &["chat", "completions"], Auth::Bearer)?,
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
        Ok(answer(events, reader))
    }

    fn account(&self) -> Option<&str> {
        self.endpoint.account()
    }
}
