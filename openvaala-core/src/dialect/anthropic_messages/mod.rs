//! Anthropic Messages: Claude, and the services that are compatible with its API (LiteLLM, llama.cpp, DeepSeek and
//! more).
//!
//! Three things differ from Chat Completions. How hard the model thinks is set by `effort`: a word (`low`, `medium`,
//! `high`, `xhigh`, `max`) asks for adaptive thinking, which models from Claude 4.6 on understand; a number is a
//! budget of thinking tokens, which is the way of the models before, and Claude 5 and later refuse it. Thoughts are signed, and go back exactly as they
//! came. And caching has to be asked for: see the layout of the body in the module `request`.

mod block;
mod event;
mod messages;
mod reader;
mod request;
#[cfg(test)]
mod tests;
mod tool_id;

use async_trait::async_trait;
use futures::stream::BoxStream;

use self::reader::EventReader;
use super::http::{Auth, Endpoint, HttpOptions, answer};
use crate::model::{ModelError, ModelEvent, ModelProvider, ModelRequest};

/// How many tokens an answer may have unless somebody says otherwise: as many as every model since Claude 4 can give.
pub const DEFAULT_MAX_TOKENS: u32 = 32_000;

/// The header that carries the key.
const KEY_HEADER: &str = "x-api-key";
/// The header that names the version of the API, and that version.
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// What an [`AnthropicMessages`] needs to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnthropicMessagesOptions {
    /// Where the service is; `/v1/messages` is added to its base URL, or what is missing of it. The key is sent as
    /// `x-api-key`; a service that wants a bearer token gets it as a header of its own.
    pub http: HttpOptions,
    /// How many tokens an answer may have, thinking included. The API wants a number and refuses one that is more
    /// than the model can give. Default: [`DEFAULT_MAX_TOKENS`].
    pub max_tokens: u32,
}

impl AnthropicMessagesOptions {
    /// The service at that place.
    #[must_use]
    pub const fn new(http: HttpOptions) -> Self {
        Self {
            http,
            max_tokens: DEFAULT_MAX_TOKENS,
        }
    }

    /// Sets how many tokens an answer may have.
    #[must_use]
    pub const fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }
}

/// A provider that speaks Anthropic Messages.
///
/// ```no_run
/// use openvaala_core::dialect::anthropic_messages::{AnthropicMessages, AnthropicMessagesOptions};
/// use openvaala_core::dialect::http::{HttpOptions, Secret, default_client};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let http = HttpOptions::new(default_client()?, "https://api.anthropic.com")
///     .with_api_key(Secret::new("sk-ant-…"));
/// let options = AnthropicMessagesOptions::new(http).with_max_tokens(64_000);
/// let provider = AnthropicMessages::new(options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AnthropicMessages {
    endpoint: Endpoint,
    max_tokens: u32,
}

impl AnthropicMessages {
    /// A provider at that place; nothing is sent before the first request.
    ///
    /// # Errors
    /// [`BadRequest`](crate::model::ModelErrorKind::BadRequest) if the base URL or a header is wrong,
    /// [`Unauthorized`](crate::model::ModelErrorKind::Unauthorized) if the key has characters that no key has.
    pub fn new(options: AnthropicMessagesOptions) -> Result<Self, ModelError> {
        let (name, value) = VERSION;
        let endpoint = Endpoint::new(options.http, &["v1", "messages"], Auth::Header(KEY_HEADER))?;
        Ok(Self {
            endpoint: endpoint.with_default_header(name, value),
            max_tokens: options.max_tokens,
        })
    }
}

#[async_trait]
impl ModelProvider for AnthropicMessages {
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        let body = request::body(&request, self.max_tokens)?;
        let events = self.endpoint.post(body).await?;
        let reader = EventReader::new(self.endpoint.place(), self.endpoint.redactor().clone());
        Ok(answer(events, reader))
    }

    fn account(&self) -> Option<&str> {
        self.endpoint.account()
    }
}
