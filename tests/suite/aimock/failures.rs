//! Services that refuse, are overloaded, or break off.

use openvaala_protocol::time::Timestamp;
use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Aimock;
use crate::dialect::{Dialect, test_in_each_dialect};
use crate::support::{logged_items, of_kind};

test_in_each_dialect! {
    m_02_m_04_a_cut_answer_keeps_its_text_and_runs_no_call,
    a_conversation_whose_answer_was_cut_goes_on,
    m_05_a_rate_limit_is_waited_out_and_told,
    an_overload_that_passes_is_told_and_gets_an_answer,
    an_overload_that_stays_fails_with_the_number_of_attempts,
    m_11_errors_that_will_not_pass_are_asked_once_and_told,
}

fn m_02_m_04_a_cut_answer_keeps_its_text_and_runs_no_call(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let sandbox = aimock.sandbox();
    let outcome = sandbox.run(&["exec", "[cut] please"]).expect_code(1);
    assert!(outcome.stdout.starts_with("This "), "{outcome:?}");
    let items = logged_items(&sandbox.conversations()[0]);
    let [message] = of_kind(&items, "assistant_message").try_into().unwrap();
    assert_eq!(message["body"]["cut"], true);
    assert_eq!(attempts(&items), json!([[1, 2], 3]));

    let _ = sandbox.run(&["exec", "[cut call] please"]).expect_code(1);
    assert!(!sandbox.project().join("cut-call-ran.txt").exists());
    aimock.expect_valid_requests(6);
}

fn a_conversation_whose_answer_was_cut_goes_on(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let mut service = aimock.service();
    service.attempts = 1;
    let sandbox = aimock.sandbox_for(&service);
    let _ = sandbox.run(&["exec", "[cut] please"]).expect_code(1);
    let on = sandbox
        .run(&["exec", "--last", "[two tools]"])
        .expect_code(0);
    assert!(on.stdout.contains("the work is done."), "{on:?}");
    let on = sandbox.run(&["exec", "--last", "hello"]).expect_code(0);
    assert!(on.stdout.contains("Hello from the far side"), "{on:?}");
    assert_eq!(sandbox.conversations().len(), 1);
    aimock.expect_valid_requests(4);
}

fn m_05_a_rate_limit_is_waited_out_and_told(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let sandbox = aimock.sandbox();
    let outcome = sandbox.run(&["exec", "[429 once]"]).expect_code(0);
    assert_eq!(outcome.stdout.trim_end(), "The second try got through.");
    let items = only_items(&sandbox);
    let [notice] = of_kind(&items, "retry_notice").try_into().unwrap();
    assert_eq!(notice["body"]["attempt"], 1);
    let message = notice["body"]["message"].as_str().unwrap();
    assert!(message.contains("Rate limit reached, once"), "{notice}");
    // The service asked for one second; the configuration alone would have waited for one millisecond.
    let time = |value: &Value| -> Timestamp { value.as_str().unwrap().parse().unwrap() };
    let (told, next) = (time(&notice["ended_at"]), time(&notice["body"]["next_at"]));
    assert_eq!(next.as_millis() - told.as_millis(), 1_000);
    assert_eq!(of_kind(&items, "model_error"), Vec::<&Value>::new());
    aimock.expect_valid_requests(2);
}

/// What the vendor of a dialect says when it has too much to do.
const fn overload(dialect: Dialect) -> u16 {
    match dialect {
        Dialect::Chat | Dialect::Responses => 503,
        Dialect::Messages => 529,
    }
}

fn an_overload_that_passes_is_told_and_gets_an_answer(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let sandbox = aimock.sandbox();
    let prompt = format!("[{} once]", overload(dialect));
    let outcome = sandbox.run(&["exec", &prompt]).expect_code(0);
    assert_eq!(outcome.stdout.trim_end(), "The server is back.");
    let items = only_items(&sandbox);
    let [notice] = of_kind(&items, "retry_notice").try_into().unwrap();
    let message = notice["body"]["message"].as_str().unwrap();
    assert!(message.contains("Overloaded, once"), "{notice}");
    aimock.expect_valid_requests(2);
}

fn an_overload_that_stays_fails_with_the_number_of_attempts(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let sandbox = aimock.sandbox();
    let status = overload(dialect);
    let outcome = sandbox
        .run(&["exec", &format!("[{status}]")])
        .expect_code(1)
        .expect_stderr(&["Overloaded for ever"]);
    assert_eq!(outcome.stdout.trim(), "");
    let items = only_items(&sandbox);
    assert_eq!(attempts(&items), json!([[1, 2], 3]));
    let [error] = of_kind(&items, "model_error").try_into().unwrap();
    assert_eq!(error["body"]["status"], status);
    aimock.expect_valid_requests(3);
}

fn m_11_errors_that_will_not_pass_are_asked_once_and_told(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let sandbox = aimock.sandbox();
    for (prompt, text) in [
        ("[401]", "Incorrect API key provided"),
        ("[404]", "no-such-model"),
        ("[context]", "maximum context length"),
    ] {
        let outcome = sandbox
            .run(&["exec", prompt])
            .expect_code(1)
            .expect_stderr(&[text]);
        assert_eq!(outcome.stdout.trim(), "", "{outcome:?}");
    }
    aimock.expect_valid_requests(3);
}

#[track_caller]
fn only_items(sandbox: &Sandbox) -> Vec<Value> {
    let [conversation] = sandbox.conversations().try_into().unwrap();
    logged_items(&conversation)
}

/// The attempts that the retry notices count, and how many the error counts at the end.
#[track_caller]
fn attempts(items: &[Value]) -> Value {
    let notices = of_kind(items, "retry_notice");
    let counted: Vec<&Value> = notices
        .iter()
        .map(|notice| &notice["body"]["attempt"])
        .collect();
    let [error] = of_kind(items, "model_error").try_into().unwrap();
    json!([counted, error["body"]["attempts"]])
}
