//! The files of the configuration directory as they are written.
//!
//! What is wrong with a value is found while it is read, so that the error knows its line.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::Duration;

use openvaala_core::dialect::http::Secret;
use openvaala_protocol::approval::{ApprovalMode, ApprovalRule};
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::limits::LimitsSection;
use super::provider_type::{ProviderType, UnknownProviderType};
use super::remote::RemoteSection;

/// The longest time that a limit may be set to.
const MAX_SECONDS: u64 = 7 * 24 * 3600;
/// The longest time that the trash may be set to keep something.
const MAX_DAYS: u64 = 36_500;

/// `openvaala.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "settings, each as `name: value`"
)]
pub(super) struct MainFile {
    #[serde(default, deserialize_with = "given")]
    pub(super) listen: Option<Listen>,
    #[serde(default, deserialize_with = "given")]
    pub(super) default_model: Option<DefaultModel>,
    pub(super) environment: EnvironmentSection,
    #[serde(default, deserialize_with = "given")]
    pub(super) step_limit: Option<StepLimit>,
    #[serde(default, deserialize_with = "given")]
    pub(super) repeat_limit: Option<RepeatLimit>,
    pub(super) retry: RetrySection,
    #[serde(default, deserialize_with = "given")]
    pub(super) idle_exit_seconds: Option<Seconds>,
    pub(super) trash: TrashSection,
    #[serde(default, deserialize_with = "given")]
    pub(super) unload_after_seconds: Option<Seconds>,
    pub(super) compaction: CompactionSection,
    pub(super) approval: ApprovalSection,
    pub(super) agent_limits: AgentLimitsSection,
    pub(super) limits: LimitsSection,
    #[serde(default, deserialize_with = "given")]
    pub(super) remote: Option<RemoteSection>,
    pub(super) origins: Vec<Origin>,
}

/// `agent_limits` in `openvaala.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "`depth` or `open`, each with a number"
)]
pub(super) struct AgentLimitsSection {
    #[serde(default, deserialize_with = "given")]
    pub(super) depth: Option<AgentNumber>,
    #[serde(default, deserialize_with = "given")]
    pub(super) open: Option<AgentNumber>,
}

/// A number of agents, or of levels of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentNumber(pub(super) usize);

impl<'de> Deserialize<'de> for AgentNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(
            deserializer,
            "a number of agents",
            |number| match usize::try_from(number) {
                Ok(number @ 0..=1_000) => Ok(Self(number)),
                _ => Err(format!("{number} is out of range: expected 0 to 1000")),
            },
        )
    }
}

/// `approval` in `openvaala.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "`mode` with a name, `rules` with a list, or `answer_within_seconds` with a number"
)]
pub(super) struct ApprovalSection {
    #[serde(default, deserialize_with = "given")]
    pub(super) mode: Option<ApprovalMode>,
    pub(super) rules: Vec<ApprovalRule>,
    #[serde(default, deserialize_with = "given")]
    pub(super) answer_within_seconds: Option<Seconds>,
}

/// `approvals.yaml`, which the server writes.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "`rules` with a list")]
pub(super) struct ApprovalsFile {
    pub(super) rules: Vec<ApprovalRule>,
}

/// `compaction` in `openvaala.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "`automatic: true` or `false`, or `share_percent` with a number"
)]
pub(super) struct CompactionSection {
    #[serde(default, deserialize_with = "given")]
    pub(super) automatic: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    pub(super) share_percent: Option<Percent>,
}

/// `trash` in `openvaala.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "`keep_days` with a number")]
pub(super) struct TrashSection {
    #[serde(default, deserialize_with = "given")]
    pub(super) keep_days: Option<Days>,
}

/// `default_model` in `openvaala.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "`provider: name` and perhaps `model` and `effort`"
)]
pub(super) struct DefaultModel {
    pub(super) provider: String,
    #[serde(default, deserialize_with = "given")]
    pub(super) model: Option<Filled>,
    #[serde(default, deserialize_with = "given")]
    pub(super) effort: Option<Filled>,
}

/// `environment` in `openvaala.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "`allow: [NAME, …]`")]
pub(super) struct EnvironmentSection {
    pub(super) allow: Vec<String>,
}

/// `retry` in `openvaala.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "`attempts`, `first_wait_ms` or `longest_wait_seconds`, each with a number"
)]
pub(super) struct RetrySection {
    #[serde(default, deserialize_with = "given")]
    pub(super) attempts: Option<Attempts>,
    #[serde(default, deserialize_with = "given")]
    pub(super) first_wait_ms: Option<Millis>,
    #[serde(default, deserialize_with = "given")]
    pub(super) longest_wait_seconds: Option<Seconds>,
}

/// The type of a provider file, which must be a known one; everything else in it is left for later.
#[derive(Debug, Deserialize)]
#[serde(expecting = "settings, each as `name: value`")]
pub(super) struct ProviderHead {
    #[serde(rename = "type")]
    _kind: ProviderType,
}

impl<'de> Deserialize<'de> for ProviderType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(
            deserializer,
            "a type of provider, such as openai_chat",
            |text| {
                text.parse()
                    .map_err(|error: UnknownProviderType| error.to_string())
            },
        )
    }
}

/// `providers/<name>.yaml` of a provider that is reached over HTTP.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpProviderFile {
    #[serde(rename = "type")]
    pub(super) kind: ProviderType,
    pub(super) base_url: BaseUrl,
    #[serde(default, deserialize_with = "given")]
    pub(super) api_key: Option<Key>,
    #[serde(default, deserialize_with = "given")]
    pub(super) api_key_env: Option<Filled>,
    pub(super) default_model: Filled,
    #[serde(default)]
    pub(super) headers: Headers,
    #[serde(default, deserialize_with = "given")]
    pub(super) idle_timeout_seconds: Option<Seconds>,
    /// Of the type `anthropic_messages` only.
    #[serde(default, deserialize_with = "given")]
    pub(super) max_tokens: Option<MaxTokens>,
    /// In tokens; what is absurd counts as not known.
    #[serde(default, deserialize_with = "given")]
    pub(super) context_window: Option<u64>,
    /// By model.
    #[serde(default)]
    pub(super) context_windows: BTreeMap<String, u64>,
}

/// A share of something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Percent(pub(super) u8);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(
            deserializer,
            "a number of percent",
            |percent| match u8::try_from(percent) {
                Ok(percent @ 1..=100) => Ok(Self(percent)),
                _ => Err(format!("{percent} is out of range: expected 1 to 100")),
            },
        )
    }
}

/// An address on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listen(pub(super) SocketAddr);

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, "an address such as 127.0.0.1:8790", |text| {
            let address: SocketAddr = text.parse().map_err(|_| {
                format!("{text:?} is no address: expected one such as 127.0.0.1:8790")
            })?;
            if !address.ip().is_loopback() {
                return Err(format!(
                    "{address} can be reached from other machines, which needs TLS: give it as `remote.listen`, \
                     and use 127.0.0.1 or [::1] here"
                ));
            }
            Ok(Self(address))
        })
    }
}

/// An address of any kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address(pub(super) SocketAddr);

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, "an address such as 0.0.0.0:8791", |text| {
            let address = text.parse().map_err(|_| {
                format!("{text:?} is no address: expected one such as 0.0.0.0:8791 or [::]:8791")
            });
            address.map(Self)
        })
    }
}

/// Where a web page comes from, as browsers write it.
#[derive(Clone, Debug)]
pub(super) struct Origin(pub(super) String);

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(
            deserializer,
            "an origin such as https://app.example.org",
            |text| {
                let rest = text
                    .split_once("://")
                    .map(|(scheme, rest)| (scheme.is_empty(), rest));
                match rest {
                    Some((false, host)) if !host.is_empty() && !host.contains(['/', '*', ' ']) => {
                        Ok(Self(text.to_owned()))
                    }
                    _ => Err(format!(
                        "{text:?} is no origin: expected one such as https://app.example.org, without a path and without `*`"
                    )),
                }
            },
        )
    }
}

/// A text with something in it.
#[derive(Clone, Debug)]
pub(super) struct Filled(pub(super) String);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, "a text", |text| match text.trim() {
            "" => Err("it is empty: give a value or leave the line out".to_owned()),
            text => Ok(Self(text.to_owned())),
        })
    }
}

/// A key; its errors do not show it.
#[derive(Clone, Debug)]
pub(super) struct Key(pub(super) Secret);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, "a key as text", |text| {
            check_key(text)?;
            Ok(Self(Secret::new(text)))
        })
    }
}

/// A field that is there must have a value: without this an empty one would read as one that is not there.
pub(super) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Why a text can be no key.
pub(super) fn check_key(key: &str) -> Result<(), &'static str> {
    let key = key.trim();
    if key.is_empty() {
        return Err("the key is empty: give it, or leave the line out if the service wants none");
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(
            "a key has no spaces, line breaks or letters outside ASCII: was it cut or copied wrongly?",
        );
    }
    Ok(())
}

/// Where an API begins.
#[derive(Clone, Debug)]
pub(super) struct BaseUrl(pub(super) String);

impl<'de> Deserialize<'de> for BaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, "a URL", |text| check_url(text).map(Self))
    }
}

/// The text if it is the URL of an API.
pub(super) fn check_url(text: &str) -> Result<String, String> {
    let text = text.trim();
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            Ok(text.to_owned())
        }
        _ => Err(format!(
            "{text:?} is no URL of an API: expected one such as https://api.openai.com/v1"
        )),
    }
}

/// Headers by name; their values count as secret.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Headers(BTreeMap<HeaderKey, HeaderText>);

impl Headers {
    /// Names and values.
    pub(super) fn into_vec(self) -> Vec<(String, Secret)> {
        self.0
            .into_iter()
            .map(|(name, value)| (name.0, value.0))
            .collect()
    }
}

#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
struct HeaderKey(String);

impl<'de> Deserialize<'de> for HeaderKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(
            deserializer,
            "the name of a header",
            |name| match HeaderName::from_bytes(name.as_bytes()) {
                Ok(name) => Ok(Self(name.as_str().to_owned())),
                Err(_) => Err(format!("{name:?} is no name of an HTTP header")),
            },
        )
    }
}

#[derive(Debug)]
struct HeaderText(Secret);

impl<'de> Deserialize<'de> for HeaderText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(
            deserializer,
            "the value of a header",
            |text| match HeaderValue::from_str(text.trim()) {
                Ok(_) => Ok(Self(Secret::new(text))),
                Err(_) => {
                    Err("the value of a header has no line breaks or control characters".to_owned())
                }
            },
        )
    }
}

/// A time in whole seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) Duration);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(deserializer, "a number of seconds", |seconds| {
            if (1..=MAX_SECONDS).contains(&seconds) {
                Ok(Self(Duration::from_secs(seconds)))
            } else {
                Err(format!(
                    "{seconds} is out of range: expected 1 to {MAX_SECONDS} seconds"
                ))
            }
        })
    }
}

/// A time in whole days, at most a hundred years.
#[derive(Clone, Copy, Debug)]
pub(super) struct Days(pub(super) Duration);

impl<'de> Deserialize<'de> for Days {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(deserializer, "a number of days", |days| {
            if (1..=MAX_DAYS).contains(&days) {
                Ok(Self(Duration::from_secs(days * 24 * 3600)))
            } else {
                Err(format!(
                    "{days} is out of range: expected 1 to {MAX_DAYS} days; leave the line out to keep for ever"
                ))
            }
        })
    }
}

/// A time in whole milliseconds, at most one minute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Millis(pub(super) Duration);

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(deserializer, "a number of milliseconds", |millis| {
            if (1..=60_000).contains(&millis) {
                Ok(Self(Duration::from_millis(millis)))
            } else {
                Err(format!(
                    "{millis} is out of range: expected 1 to 60000 milliseconds"
                ))
            }
        })
    }
}

/// How many times a model request is sent at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts(pub(super) u32);

impl<'de> Deserialize<'de> for Attempts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(
            deserializer,
            "a number of attempts",
            |attempts| match u32::try_from(attempts) {
                Ok(attempts @ 1..=100) => Ok(Self(attempts)),
                _ => Err(format!("{attempts} is out of range: expected 1 to 100")),
            },
        )
    }
}

/// How many model responses a turn may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepLimit(pub(super) u32);

impl<'de> Deserialize<'de> for StepLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(
            deserializer,
            "a number of steps",
            |steps| match u32::try_from(steps) {
                Ok(0) => Err("a turn needs at least one step".to_owned()),
                Ok(steps) => Ok(Self(steps)),
                Err(_) => Err(format!(
                    "{steps} is out of range: expected 1 to {}",
                    u32::MAX
                )),
            },
        )
    }
}

/// At how many equal calls in a row, with equal results, a turn fails.
#[derive(Clone, Copy, Debug)]
pub(super) struct RepeatLimit(pub(super) u32);

impl<'de> Deserialize<'de> for RepeatLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(
            deserializer,
            "a number of calls",
            |calls| match u32::try_from(calls) {
                Ok(1) => {
                    Err("one call repeats nothing: expected 0 (never) or at least 2".to_owned())
                }
                Ok(calls) => Ok(Self(calls)),
                Err(_) => Err(format!(
                    "{calls} is out of range: expected 0 (never), or 2 to {}",
                    u32::MAX
                )),
            },
        )
    }
}

/// How many tokens an answer may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxTokens(pub(super) u32);

impl<'de> Deserialize<'de> for MaxTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(
            deserializer,
            "a number of tokens",
            |tokens| match u32::try_from(tokens) {
                Ok(0) => Err("an answer needs at least one token".to_owned()),
                Ok(tokens) => Ok(Self(tokens)),
                Err(_) => Err(format!(
                    "{tokens} is out of range: expected 1 to {}",
                    u32::MAX
                )),
            },
        )
    }
}

/// Reads a text and parses it where the reader still knows its line.
pub(super) fn from_text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Parse {
        expected,
        parse,
        value: PhantomData::<str>,
    })
}

/// Reads a whole number and checks it where the reader still knows its line.
pub(super) fn from_number<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(u64) -> Result<T, String>,
) -> Result<T, D::Error> {
    deserializer.deserialize_u64(Parse {
        expected,
        parse,
        value: PhantomData::<u64>,
    })
}

/// Takes a value of the kind `V`.
struct Parse<F, V: ?Sized> {
    expected: &'static str,
    parse: F,
    value: PhantomData<V>,
}

impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Parse<F, str> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

impl<T, F: FnOnce(u64) -> Result<T, String>> Visitor<'_> for Parse<F, u64> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        (self.parse)(number).map_err(E::custom)
    }
}
