//! The files of the configuration directory as they are written.
//!
//! What is wrong with a value is found while it is read, so that the error knows its line.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use openvaala_core::dialect::http::Secret;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The longest time that a limit may be set to.
const MAX_SECONDS: u64 = 7 * 24 * 3600;

/// `openvaala.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MainFile {
    pub(super) listen: Option<Listen>,
    pub(super) default_model: Option<DefaultModel>,
    pub(super) environment: EnvironmentSection,
    pub(super) step_limit: Option<StepLimit>,
    pub(super) idle_exit_seconds: Option<Seconds>,
}

/// `default_model` in `openvaala.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DefaultModel {
    pub(super) provider: String,
    pub(super) model: Option<Filled>,
    pub(super) effort: Option<Filled>,
}

/// `environment` in `openvaala.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct EnvironmentSection {
    pub(super) allow: Vec<String>,
}

/// The kind of a provider file; everything else in it is left for later.
#[derive(Debug, Deserialize)]
pub(super) struct ProviderHead {
    #[serde(rename = "type")]
    pub(super) kind: ProviderType,
}

/// What a provider speaks.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProviderType {
    OpenaiChat,
}

/// `providers/<name>.yaml` of the type `openai_chat`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenAiChatFile {
    /// Read before, to choose this struct.
    #[serde(rename = "type")]
    _kind: ProviderType,
    pub(super) base_url: BaseUrl,
    pub(super) api_key: Option<Key>,
    pub(super) api_key_env: Option<Filled>,
    pub(super) default_model: Filled,
    #[serde(default)]
    pub(super) headers: Headers,
    pub(super) idle_timeout_seconds: Option<Seconds>,
}

/// An address on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listen(pub(super) SocketAddr);

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let address: SocketAddr = text.parse().map_err(|_| {
            D::Error::custom(format!("{text:?} is no address: expected one such as 127.0.0.1:8790"))
        })?;
        if !address.ip().is_loopback() {
            return Err(D::Error::custom(format!(
                "{address} can be reached from other machines, which needs TLS and is not there yet: \
                 use 127.0.0.1 or [::1]"
            )));
        }
        Ok(Self(address))
    }
}

/// A text with something in it.
#[derive(Clone, Debug)]
pub(super) struct Filled(pub(super) String);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let text = text.trim();
        if text.is_empty() {
            return Err(D::Error::custom("it is empty: give a value or leave the line out"));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A key; its errors do not show it.
#[derive(Clone, Debug)]
pub(super) struct Key(pub(super) Secret);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = deserializer.deserialize_any(KeyVisitor)?;
        check_key(&key).map_err(D::Error::custom)?;
        Ok(Self(Secret::new(key)))
    }
}

/// Why a text can be no key.
pub(super) fn check_key(key: &str) -> Result<(), &'static str> {
    let key = key.trim();
    if key.is_empty() {
        return Err("the key is empty: give it, or leave the line out if the service wants none");
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a key has no spaces, line breaks or letters outside ASCII: was it cut or copied wrongly?");
    }
    Ok(())
}

/// Takes a text and says of everything else what is expected without saying what it was.
struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key as text (in quotes if it is only digits)")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<String, E> {
        Err(E::custom("expected a key as text"))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<String, E> {
        Err(E::custom("expected a key as text: put it in quotes"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<String, E> {
        Err(E::custom("expected a key as text: put it in quotes"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<String, E> {
        Err(E::custom("expected a key as text: put it in quotes"))
    }
}

/// Where an API begins.
#[derive(Clone, Debug)]
pub(super) struct BaseUrl(pub(super) String);

impl<'de> Deserialize<'de> for BaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        check_url(&text).map(Self).map_err(D::Error::custom)
    }
}

/// The text if it is the URL of an API.
pub(super) fn check_url(text: &str) -> Result<String, String> {
    let text = text.trim();
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is no URL of an API: expected one such as https://api.openai.com/v1")),
    }
}

/// Headers by name; their values count as secret.
#[derive(Debug, Default)]
pub(super) struct Headers(pub(super) BTreeMap<String, Secret>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadersVisitor)
    }
}

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = Headers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("headers, each as `Name: value`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
        let mut headers = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(A::Error::custom(format!("{name:?} is no name of an HTTP header")));
            }
            let HeaderText(value) = map.next_value()?;
            if headers.insert(name.to_ascii_lowercase(), value).is_some() {
                return Err(A::Error::custom(format!("the header {name:?} is given twice")));
            }
        }
        Ok(Headers(headers))
    }
}

struct HeaderText(Secret);

impl<'de> Deserialize<'de> for HeaderText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_any(KeyVisitor)?;
        if HeaderValue::from_str(text.trim()).is_err() {
            return Err(D::Error::custom("the value of a header has no line breaks or control characters"));
        }
        Ok(Self(Secret::new(text)))
    }
}

/// A time in whole seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) Duration);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = u64::deserialize(deserializer)?;
        if (1..=MAX_SECONDS).contains(&seconds) {
            Ok(Self(Duration::from_secs(seconds)))
        } else {
            Err(D::Error::custom(format!("{seconds} is out of range: expected 1 to {MAX_SECONDS} seconds")))
        }
    }
}

/// How many model responses a turn may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepLimit(pub(super) u32);

impl<'de> Deserialize<'de> for StepLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            0 => Err(D::Error::custom("a turn needs at least one step")),
            steps => Ok(Self(steps)),
        }
    }
}
