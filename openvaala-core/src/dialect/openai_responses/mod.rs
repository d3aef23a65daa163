//! OpenAI Responses, the API in which OpenAI's reasoning models keep their thoughts from one request to the next;
//! also spoken by Azure, OpenRouter, LiteLLM, llama.cpp, vLLM and others.
//!
//! Nothing is stored at the service: every request carries the whole history, and the reasoning of earlier answers
//! goes back as the service gave it, encrypted.

mod event;
mod items;
mod output;
mod reader;
mod request;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use futures::stream::BoxStream;

use self::reader::ResponseReader;
use super::http::{Auth, Endpoint, HttpOptions, answer};
use crate::model::{ModelError, ModelEvent, ModelProvider, ModelRequest};

/// What an [`OpenAiResponses`] needs to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenAiResponsesOptions {
    /// Where the service is; `/responses` is added to its base URL unless it ends so.
    pub http: HttpOptions,
}

impl OpenAiResponsesOptions {
    /// The service at that place.
    #[must_use]
    pub const fn new(http: HttpOptions) -> Self {
        Self { http }
    }
}

/// A provider that speaks Responses.
///
/// ```no_run
/// use openvaala_core::dialect::http::{HttpOptions, Secret, default_client};
/// use openvaala_core::dialect::openai_responses::{OpenAiResponses, OpenAiResponsesOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let http = HttpOptions::new(default_client()?, "https://api.openai.com/v1")
///     .with_api_key(Secret::new("sk-…"));
/// let provider = OpenAiResponses::new(OpenAiResponsesOptions::new(http))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenAiResponses {
    endpoint: Endpoint,
}

impl OpenAiResponses {
    /// A provider at that place; nothing is sent before the first request.
    ///
    /// # Errors
    /// [`BadRequest`](crate::model::ModelErrorKind::BadRequest) if the base URL or a header is wrong,
    /// [`Unauthorized`](crate::model::ModelErrorKind::Unauthorized) if the key has characters that no key has.
    pub fn new(options: OpenAiResponsesOptions) -> Result<Self, ModelError> {
        Ok(Self {
            endpoint: Endpoint::new(options.http, &["responses"], Auth::Bearer)?,
        })
    }
}

#[async_trait]
impl ModelProvider for OpenAiResponses {
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        let events = self.endpoint.post(request::body(&request)?).await?;
        let reader = ResponseReader::new(self.endpoint.place(), self.endpoint.redactor().clone());
        Ok(answer(events, reader))
    }

    fn account(&self) -> Option<&str> {
        self.endpoint.account()
    }
}
