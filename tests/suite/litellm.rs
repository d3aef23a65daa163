//! LiteLLM, a proxy that others wrote and many put before their models, between two dialects.
//!
//! It is asked in Responses and in Messages, and asks aimock in another dialect. Only `tests/run --long` installs and
//! starts it and sets `OPENVAALA_LITELLM_ADDRESS`.

use openvaala_tests::recorder::Recorder;
use openvaala_tests::running::Outcome;
use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::dialect::{Dialect, Service, long_service};
use crate::support::{logged_items, of_kind, result_text};

/// Makes a test of each of these functions for each way through the proxy.
macro_rules! test_each_way {
    ($($rule:ident),* $(,)?) => {
        mod responses_over_chat {
            $(#[test] fn $rule() { super::$rule($crate::dialect::Dialect::Responses, "over-chat"); })*
        }
        mod responses_over_messages {
            $(#[test] fn $rule() { super::$rule($crate::dialect::Dialect::Responses, "over-anthropic"); })*
        }
        mod messages_over_chat {
            $(#[test] fn $rule() { super::$rule($crate::dialect::Dialect::Messages, "over-chat"); })*
        }
        mod messages_over_openai {
            $(#[test] fn $rule() { super::$rule($crate::dialect::Dialect::Messages, "over-openai"); })*
        }
    };
}

test_each_way! {
    a_text_comes_through_whole,
    one_tool_is_called_and_answered,
    two_tools_at_once_are_answered_each,
    thoughts_come_through_and_the_call_behind_them_is_answered,
}

struct Proxy {
    dialect: Dialect,
    recorder: Recorder,
    sandbox: Sandbox,
}

impl Proxy {
    fn new(dialect: Dialect, model: &str) -> Self {
        let recorder = Recorder::start(&long_service("OPENVAALA_LITELLM_ADDRESS"));
        let sandbox = Sandbox::new();
        let service = Service {
            address: recorder.address(),
            key: "test-key".to_owned(),
            model: model.to_owned(),
            provider: String::new(),
            more_config: String::new(),
            attempts: 1,
        };
        dialect.use_service(&sandbox, &service);
        sandbox.write_project("README.md", "# Paper plane\n");
        Self {
            dialect,
            recorder,
            sandbox,
        }
    }

    #[track_caller]
    fn ask(&mut self, prompt: &str, requests: usize) -> (Outcome, Vec<Value>) {
        let answered = self.ask_unchecked(prompt);
        self.dialect
            .expect_valid(self.recorder.requests(), requests);
        answered
    }

    #[track_caller]
    fn ask_unchecked(&self, prompt: &str) -> (Outcome, Vec<Value>) {
        let outcome = self.sandbox.run(&["exec", prompt]).expect_code(0);
        let [conversation] = self.sandbox.conversations().try_into().unwrap();
        (outcome, logged_items(&conversation))
    }
}

/// The texts of all tool results, sorted: they are logged as the tools end.
fn results(items: &[Value]) -> Vec<String> {
    let results = of_kind(items, "tool_result");
    let mut texts: Vec<String> = results.iter().map(|result| result_text(result)).collect();
    texts.sort();
    texts
}

fn a_text_comes_through_whole(dialect: Dialect, model: &str) {
    let (outcome, _) = Proxy::new(dialect, model).ask("hello", 1);
    assert_eq!(
        outcome.stdout.trim_end(),
        "Hello from the far side: héllo, 你好, 🦀."
    );
}

fn one_tool_is_called_and_answered(dialect: Dialect, model: &str) {
    let (outcome, items) = Proxy::new(dialect, model).ask("[tool] please", 2);
    assert!(
        outcome.stdout.contains("I will read the file."),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
    assert_eq!(results(&items), ["# Paper plane\n"]);
}

fn two_tools_at_once_are_answered_each(dialect: Dialect, model: &str) {
    let (outcome, items) = Proxy::new(dialect, model).ask("[two tools] please", 2);
    assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
    assert_eq!(results(&items), ["# Paper plane\n", "README.md\n"]);
}

fn thoughts_come_through_and_the_call_behind_them_is_answered(dialect: Dialect, model: &str) {
    let mut proxy = Proxy::new(dialect, model);
    let (outcome, items) = proxy.ask_unchecked("[think] please");
    // Thoughts go back as they came, and LiteLLM's own are none that the vendor describes.
    let requests = proxy.recorder.requests();
    assert_eq!(requests.len(), 2);
    dialect.expect_valid(&requests[..1], 1);
    assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
    let thoughts = of_kind(&items, "reasoning");
    let text = thoughts[0]["body"]["text"].as_str().unwrap();
    assert!(text.contains("The question is about the README."), "{text}");
    assert_eq!(results(&items), ["# Paper plane\n"]);
}
