//! What a failed request means and what to do about it.

use std::error::Error;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::Value;

use super::body::{ProviderError, shown};
use super::retry_after::retry_after;
use super::secret::Redactor;
use crate::model::{ModelError, ModelErrorKind};

/// Codes and types of errors that say more than the status; compared as a whole.
const BY_NAME: &[(&str, ModelErrorKind)] = &[
    ("insufficient_quota", ModelErrorKind::Quota),
    ("billing_hard_limit_reached", ModelErrorKind::Quota),
    ("billing_not_active", ModelErrorKind::Quota),
    ("usage_not_included", ModelErrorKind::Quota),
    ("insufficient_balance", ModelErrorKind::Quota),
    ("billing_error", ModelErrorKind::Quota),
    ("context_length_exceeded", ModelErrorKind::ContextTooLong),
    ("exceed_context_size_error", ModelErrorKind::ContextTooLong),
    ("request_too_large", ModelErrorKind::ContextTooLong),
    ("content_filter", ModelErrorKind::Refused),
    ("content_policy_violation", ModelErrorKind::Refused),
    ("image_content_policy_violation", ModelErrorKind::Refused),
    ("bio_policy", ModelErrorKind::Refused),
    ("cyber_policy", ModelErrorKind::Refused),
    ("misalignment_policy_violation", ModelErrorKind::Refused),
];

/// Types of errors that stand for a status, for errors that come without one.
const BY_TYPE: &[(&str, ModelErrorKind)] = &[
    ("invalid_prompt", ModelErrorKind::BadRequest),
    ("invalid_image", ModelErrorKind::BadRequest),
    ("invalid_image_format", ModelErrorKind::BadRequest),
    ("invalid_image_mode", ModelErrorKind::BadRequest),
    ("invalid_base64_image", ModelErrorKind::BadRequest),
    ("unsupported_image_media_type", ModelErrorKind::BadRequest),
    ("image_too_large", ModelErrorKind::BadRequest),
    ("image_too_small", ModelErrorKind::BadRequest),
    ("image_parse_error", ModelErrorKind::BadRequest),
    ("image_file_too_large", ModelErrorKind::BadRequest),
    ("empty_image_file", ModelErrorKind::BadRequest),
    ("rate_limit_error", ModelErrorKind::RateLimited),
    ("rate_limit_exceeded", ModelErrorKind::RateLimited),
    ("throttling_error", ModelErrorKind::RateLimited),
    ("authentication_error", ModelErrorKind::Unauthorized),
    ("invalid_api_key", ModelErrorKind::Unauthorized),
    ("permission_error", ModelErrorKind::Unauthorized),
    ("not_found_error", ModelErrorKind::NotFound),
    ("model_not_found", ModelErrorKind::NotFound),
    ("invalid_request_error", ModelErrorKind::BadRequest),
    ("overloaded_error", ModelErrorKind::Unavailable),
    ("api_error", ModelErrorKind::Unavailable),
    ("timeout_error", ModelErrorKind::Unavailable),
];

/// What providers without a code of their own write when a request is too long.
const TOO_LONG: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "context window",
    "context size",
    "prompt is too long",
    "exceed context limit",
    "input token count",
    "maximum prompt length",
];

/// What providers without a code of their own write when there is no credit left.
const NO_CREDIT: &[&str] = &["credit balance is too low", "specified api usage limits"];

/// The error of a request that was answered with another status than 2xx.
pub(super) fn status_failure(
    place: &str,
    redactor: &Redactor,
    status: StatusCode,
    headers: &HeaderMap,
    body: &str,
) -> ModelError {
    let error = ProviderError::from_body(&redactor.clean(body));
    let kind = kind(Some(status.as_u16()), &error);
    let location = headers
        .get(LOCATION)
        .and_then(|target| target.to_str().ok());
    let place = match location.filter(|_| status.is_redirection()) {
        Some(target) => format!("{place} (redirects to {})", shown(&redactor.clean(target))),
        None => place.to_owned(),
    };
    ModelError::new(kind, worded(kind, &place, Some(status), &error))
        .with_status(status.as_u16())
        .with_retry_after(wait(kind, headers, &error))
}

/// The error that a provider sends where an answer should be: within the stream, or as JSON with status 200.
pub(crate) fn stream_failure(place: &str, redactor: &Redactor, error: &Value) -> ModelError {
    let mut error = ProviderError::from_json(error);
    error.message = redactor.clean(&error.message);
    let status = error
        .code
        .parse()
        .ok()
        .filter(|code| (400..600).contains(code));
    let kind = kind(status, &error);
    let failure = ModelError::new(kind, worded(kind, place, None, &error)).with_retry_after(wait(
        kind,
        &HeaderMap::new(),
        &error,
    ));
    match status {
        Some(status) => failure.with_status(status),
        None => failure,
    }
}

/// The error of a request that met no HTTP answer, or lost it.
pub(super) fn connection_failure(place: &str, error: &reqwest::Error) -> ModelError {
    let cause = shown(&root_cause(error));
    let (kind, what, advice) = if cause.contains("certificate") {
        (
            ModelErrorKind::Certificate,
            "no connection to",
            "its certificate is not trusted: install the CA certificates of the system, or the one of your proxy",
        )
    } else if error.is_connect() {
        (
            ModelErrorKind::Connection,
            "no connection to",
            "check the address, the network, and that the service runs",
        )
    } else {
        (
            ModelErrorKind::Connection,
            "the connection broke to",
            "try again",
        )
    };
    let message = format!("{what} {place} ({advice}): {cause}");
    ModelError::new(kind, message).with_source(cause)
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn wait(kind: ModelErrorKind, headers: &HeaderMap, error: &ProviderError) -> Option<Duration> {
    matches!(
        kind,
        ModelErrorKind::RateLimited | ModelErrorKind::Unavailable
    )
    .then(|| retry_after(headers, &error.message))
    .flatten()
}

fn kind(status: Option<u16>, error: &ProviderError) -> ModelErrorKind {
    let names = [error.code.as_str(), error.kind.as_str()];
    let named = |list: &[(&str, ModelErrorKind)]| {
        list.iter()
            .find(|(name, _)| names.contains(name))
            .map(|(_, kind)| *kind)
    };
    if let Some(kind) = named(BY_NAME) {
        return kind;
    }
    let message = error.message.to_lowercase();
    let may_be_too_long = matches!(status, None | Some(400 | 413 | 422));
    if may_be_too_long && TOO_LONG.iter().any(|words| message.contains(words)) {
        return ModelErrorKind::ContextTooLong;
    }
    if NO_CREDIT.iter().any(|words| message.contains(words)) {
        return ModelErrorKind::Quota;
    }
    match status {
        Some(401 | 403) => ModelErrorKind::Unauthorized,
        Some(402) => ModelErrorKind::Quota,
        Some(404 | 410) => ModelErrorKind::NotFound,
        Some(408 | 409 | 500..) => ModelErrorKind::Unavailable,
        Some(429) => ModelErrorKind::RateLimited,
        Some(_) => ModelErrorKind::BadRequest,
        None => named(BY_TYPE).unwrap_or(ModelErrorKind::Unavailable),
    }
}

fn worded(
    kind: ModelErrorKind,
    place: &str,
    status: Option<StatusCode>,
    error: &ProviderError,
) -> String {
    let (what, advice) = match kind {
        ModelErrorKind::Unauthorized => (
            "refuses the key",
            "check that the key is right, belongs to this address, and may use this model",
        ),
        ModelErrorKind::NotFound => (
            "knows no such model or address",
            "check the name of the model and the base URL",
        ),
        ModelErrorKind::RateLimited => ("has had too many requests", "wait and try again"),
        ModelErrorKind::Quota => (
            "says that the account has no credit left",
            "check its plan and billing",
        ),
        ModelErrorKind::ContextTooLong => (
            "says that the request is too long for the model",
            "shorten the conversation",
        ),
        ModelErrorKind::Refused => ("refuses to answer this", "ask in another way"),
        ModelErrorKind::Unavailable => ("cannot answer now", "try again later"),
        ModelErrorKind::BadRequest
        | ModelErrorKind::BadAnswer
        | ModelErrorKind::Connection
        | ModelErrorKind::Certificate => (
            "finds fault with the request",
            "check the model's settings and the base URL",
        ),
    };
    let status = status
        .map(|status| format!(" (HTTP {})", status.as_u16()))
        .unwrap_or_default();
    let said = if error.message.is_empty() { "" } else { ": " };
    format!(
        "{place} {what}{status}{said}{}; {advice}",
        error.message.trim_end_matches('.')
    )
}
