//! The dialects that services of models speak, and how a sandbox is set up for one.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

use openvaala_tests::binary::workspace;
use openvaala_tests::recorder::Recorded;
use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::json_lines;

/// A dialect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Dialect {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
}

/// A service that a sandbox shall ask.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// Where it listens, as `host:port`.
    pub(crate) address: String,
    /// The key that it wants.
    pub(crate) key: String,
    /// The model to ask.
    pub(crate) model: String,
    /// More lines of the provider file.
    pub(crate) provider: String,
    /// More lines of `openvaala.yaml`; those that begin with two spaces belong to `default_model`.
    pub(crate) more_config: String,
    /// How many times it is asked.
    pub(crate) attempts: u32,
}

/// Makes a test of each of these functions in each dialect: `openai_chat::RULE` and so on.
macro_rules! test_in_each_dialect {
    ($($rule:ident),* $(,)?) => {
        mod openai_chat {
            $(#[test] fn $rule() { super::$rule($crate::dialect::Dialect::Chat); })*
        }
        mod openai_responses {
            $(#[test] fn $rule() { super::$rule($crate::dialect::Dialect::Responses); })*
        }
        mod anthropic_messages {
            $(#[test] fn $rule() { super::$rule($crate::dialect::Dialect::Messages); })*
        }
    };
}
pub(crate) use test_in_each_dialect;

impl Dialect {
    /// The path that its requests go to.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
        }
    }

    const fn provider_type(self) -> &'static str {
        match self {
            Self::Chat => "openai_chat",
            Self::Responses => "openai_responses",
            Self::Messages => "anthropic_messages",
        }
    }

    const fn validator(self) -> &'static str {
        match self {
            Self::Chat => "validate_chat.py",
            Self::Responses => "validate_responses.py",
            Self::Messages => "validate_messages.py",
        }
    }

    /// The base URL of a service at that address, as its vendor writes it.
    pub(crate) fn base_url(self, address: &str) -> String {
        match self {
            Self::Chat | Self::Responses => format!("http://{address}/v1"),
            Self::Messages => format!("http://{address}"),
        }
    }

    /// Makes a service the default model of a sandbox.
    pub(crate) fn use_service(self, sandbox: &Sandbox, service: &Service) {
        let (kind, url) = (self.provider_type(), self.base_url(&service.address));
        let Service { key, model, .. } = service;
        sandbox.write_provider(
            "fake",
            &format!(
                "type: {kind}\nbase_url: {url}\napi_key: {key}\ndefault_model: {model}\n{}",
                service.provider
            ),
        );
        sandbox.write_config(&format!(
            "listen: 127.0.0.1:0\ndefault_model:\n  provider: fake\n  model: {model}\n{}\
             retry:\n  first_wait_ms: 1\n  attempts: {}\n",
            service.more_config, service.attempts
        ));
    }

    /// Checks that so many requests came, all in this dialect, and that its vendor would take each of them.
    #[track_caller]
    pub(crate) fn expect_valid(self, requests: &[Recorded], count: usize) {
        let elsewhere: Vec<&str> = requests
            .iter()
            .map(|request| request.path.as_str())
            .filter(|path| *path != self.path())
            .collect();
        assert_eq!(elsewhere, Vec::<&str>::new());
        let bodies: Vec<&Value> = requests.iter().map(|request| &request.body).collect();
        assert_eq!(
            self.report(&bodies),
            json!({ "checked": count, "errors": [] })
        );
    }

    /// What the validator of the vendor's own types says.
    #[track_caller]
    fn report(self, bodies: &[&Value]) -> Value {
        let mut command = Command::new(variable("OPENVAALA_SPEC_PYTHON"));
        let script = format!("tests/counterparts/{}", self.validator());
        command.arg(workspace().join(script));
        if self != Self::Messages
            && let Some(cache) = env::var_os("OPENVAALA_SPEC_CACHE")
        {
            command.arg("--cache").arg(cache);
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = piped.expect("OPENVAALA_SPEC_PYTHON can be started");
        let bodies = serde_json::to_vec(bodies).unwrap();
        child.stdin.take().unwrap().write_all(&bodies).unwrap();
        let output = child.wait_with_output().unwrap();
        let [report] = json_lines(&String::from_utf8_lossy(&output.stdout))
            .try_into()
            .unwrap();
        report
    }
}

/// A variable that `tests/run` sets.
#[track_caller]
pub(crate) fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run these tests by `tests/run`"))
}

/// The address of a service that only `tests/run --long` starts.
#[track_caller]
pub(crate) fn long_service(name: &str) -> String {
    let value = env::var(name);
    value.unwrap_or_else(|_| panic!("{name} is not set: this test belongs to `tests/run --long`"))
}
