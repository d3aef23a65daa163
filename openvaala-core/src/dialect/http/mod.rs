//! The HTTP side that all dialects share: the client, the key, one POST request, its failures and its events.

mod answer;
mod body;
mod client;
mod endpoint;
mod events;
mod failure;
mod retry_after;
mod secret;
#[cfg(test)]
pub(crate) mod test_server;
#[cfg(test)]
mod tests;
mod verifier;

use std::fmt;
use std::time::Duration;

pub(crate) use self::answer::{AnswerReader, answer, cut_off, senseless};
pub use self::client::{ClientOptions, client, default_client};
pub(crate) use self::endpoint::{Auth, Endpoint};
pub(crate) use self::failure::stream_failure;
pub(crate) use self::secret::Redactor;
pub use self::secret::Secret;

/// How long a provider may stay silent unless somebody says otherwise: 300 seconds.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Where a provider is and how it is reached.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Sends the requests; shared by all providers of a process so that they share connections.
    pub client: reqwest::Client,
    /// Where the API begins, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, sent as the dialect does it (mostly as a bearer token); `None` for a service that wants none.
    pub api_key: Option<Secret>,
    /// More headers for every request. Their values count as secret.
    pub headers: Vec<(String, Secret)>,
    /// How long the provider may send nothing, before its answer and within it. Default: 300 seconds.
    pub idle_timeout: Duration,
}

impl HttpOptions {
    /// The service at that address, without a key.
    pub fn new(client: reqwest::Client, base_url: impl Into<String>) -> Self {
        Self {
            client,
            base_url: base_url.into(),
            api_key: None,
            headers: Vec::new(),
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn with_api_key(mut self, key: Secret) -> Self {
        self.api_key = Some(key);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// Sets how long the provider may send nothing.
    #[must_use]
    pub const fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may have a password or a key in it.
        let base_url = reqwest::Url::parse(&self.base_url).map(|url| endpoint::place(&url));
        f.debug_struct("HttpOptions")
            .field("base_url", &base_url.as_deref().unwrap_or("(no URL)"))
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("idle_timeout", &self.idle_timeout)
            .finish_non_exhaustive()
    }
}
