//! One address of a provider that questions are posted to.

use std::fmt;
use std::time::Duration;

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderName,
    InvalidHeaderValue,
};
use reqwest::{Client, Response, Url};
use tokio::time::timeout;

use super::HttpOptions;
use super::body::ProviderError;
use super::events::{EventStream, silent};
use super::failure::{connection_failure, status_failure, stream_failure};
use super::secret::{Redactor, Secret};
use crate::model::{ModelError, ModelErrorKind};

/// The most of a body that is no event stream that is read.
const MAX_BODY_BYTES: usize = 64 << 10;

/// How a key is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Auth {
    /// As a bearer token in the header `Authorization`.
    Bearer,
    /// As it is, in the header of that name (in lower case).
    Header(&'static str),
}

/// An address with all that a request to it needs.
#[derive(Clone)]
pub(crate) struct Endpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    redactor: Redactor,
    idle_timeout: Duration,
    place: String,
    account: Option<String>,
}

impl Endpoint {
    /// The address `path` (such as `["chat", "completions"]`) below the base URL.
    ///
    /// If the path begins with `v1`, a base URL that ends so is as good as one that does not.
    ///
    /// # Errors
    /// [`ModelErrorKind::BadRequest`] if the URL or a header is wrong, [`ModelErrorKind::Unauthorized`] if the
    /// key has characters that no key has.
    pub(crate) fn new(options: HttpOptions, path: &[&str], auth: Auth) -> Result<Self, ModelError> {
        let url = url(&options.base_url, path)?;
        let headers = headers(&options, auth)?;
        let account = options.api_key.as_ref().map(Secret::fingerprint);
        let secrets = options.headers.into_iter().map(|(_, value)| value);
        let secrets = secrets.chain(options.api_key).chain(secrets_within(&url));
        let redactor = Redactor::new(secrets);
        let place = place(&url);
        Ok(Self {
            client: options.client,
            url,
            headers,
            redactor,
            idle_timeout: options.idle_timeout,
            place,
            account,
        })
    }

    /// Adds a header that is no secret, unless the options have set it.
    pub(crate) fn with_default_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers
            .entry(HeaderName::from_static(name))
            .or_insert(HeaderValue::from_static(value));
        self
    }

    /// The address as errors show it: without user, password and query.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Takes the secrets out of a foreign text.
    pub(crate) const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The headers of every request.
    #[cfg(test)]
    pub(super) const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The account: a hash of the key.
    pub(crate) fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    /// Posts a JSON document and gives the events of the answer.
    ///
    /// # Errors
    /// Any [`ModelErrorKind`]; see the constructors in `failure`.
    pub(crate) async fn post(&self, json: Vec<u8>) -> Result<EventStream, ModelError> {
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(json);
        let response = timeout(self.idle_timeout, request.send())
            .await
            .map_err(|_| silent(&self.place, self.idle_timeout))?
            .map_err(|error| connection_failure(&self.place, &error))?;
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = self.read_body(response).await;
            return Err(status_failure(
                &self.place,
                &self.redactor,
                status,
                &headers,
                &body,
            ));
        }
        if is_document(response.headers()) {
            let body = self.read_body(response).await;
            return Err(self.document_failure(&body));
        }
        Ok(EventStream::new(
            response,
            self.idle_timeout,
            self.place.clone(),
        ))
    }

    /// As much of a body as comes; a body that breaks off still says something.
    async fn read_body(&self, mut response: Response) -> String {
        let mut body = Vec::new();
        while body.len() < MAX_BODY_BYTES {
            match timeout(self.idle_timeout, response.chunk()).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Ok(Ok(None) | Err(_)) | Err(_) => break,
            }
        }
        body.truncate(MAX_BODY_BYTES);
        String::from_utf8_lossy(&body).into_owned()
    }

    fn document_failure(&self, body: &str) -> ModelError {
        let body = self.redactor.clean(body);
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(&body)
            && value.get("error").is_some_and(|error| !error.is_null())
        {
            return stream_failure(&self.place, &self.redactor, &value);
        }
        let said = ProviderError::from_body(&body).message;
        let message = format!(
            "{} answers with a document instead of an event stream (check the base URL, and that \
             the service can stream): {said}",
            self.place,
        );
        ModelError::new(ModelErrorKind::BadAnswer, message)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

fn is_document(headers: &HeaderMap) -> bool {
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let media_type = media_type
        .split(';')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase();
    media_type.ends_with("json") || media_type == "text/html"
}

fn url(base: &str, path: &[&str]) -> Result<Url, ModelError> {
    let wrong = |why: &str| {
        let message =
            format!("the base URL {why}; expected something like https://api.openai.com/v1");
        ModelError::new(ModelErrorKind::BadRequest, message)
    };
    let mut url = Url::parse(base.trim()).map_err(|error| wrong(&format!("is wrong ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("does not begin with http:// or https://"));
    }
    let given = url.path().trim_end_matches('/');
    if !given.ends_with(&path.join("/")) {
        let path = match path {
            ["v1", rest @ ..] if given.ends_with("/v1") => rest,
            path => path,
        };
        let mut segments = url.path_segments_mut().map_err(|()| wrong("has no path"))?;
        segments.pop_if_empty().extend(path);
    }
    Ok(url)
}

/// The password of an address, and the values of its query that are called a key or token.
fn secrets_within(url: &Url) -> Vec<Secret> {
    let is_secret = |name: &str| {
        ["key", "token", "secret"]
            .iter()
            .any(|word| name.contains(word))
    };
    let query = url
        .query_pairs()
        .filter(|(name, _)| is_secret(&name.to_ascii_lowercase()));
    let query = query.map(|(_, value)| Secret::new(value));
    query.chain(url.password().map(Secret::new)).collect()
}

/// An address as it may be shown: without user, password, query and fragment.
pub(super) fn place(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    // Neither can fail for an http address, and a URL without user and password is what is wanted.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.to_string()
}

fn headers(options: &HttpOptions, auth: Auth) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(key) = &options.api_key {
        let (name, value) = match auth {
            Auth::Bearer => (
                AUTHORIZATION,
                secret_value(&format!("Bearer {}", key.expose())),
            ),
            Auth::Header(name) => (HeaderName::from_static(name), secret_value(key.expose())),
        };
        let value = value.map_err(|error| {
            let message =
                "the key has characters that no key has; check it for line breaks and quotes";
            ModelError::new(ModelErrorKind::Unauthorized, message).with_source(error)
        })?;
        headers.insert(name, value);
    }
    for (name, value) in &options.headers {
        let wrong = || {
            let message = format!("the header {name:?} has a wrong name or value");
            ModelError::new(ModelErrorKind::BadRequest, message)
        };
        let key: HeaderName = name
            .parse()
            .map_err(|error: InvalidHeaderName| wrong().with_source(error))?;
        headers.insert(
            key,
            secret_value(value.expose()).map_err(|error| wrong().with_source(error))?,
        );
    }
    Ok(headers)
}

fn secret_value(text: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}
