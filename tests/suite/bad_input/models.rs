//! Models that cannot be asked, or answer badly.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;

use crate::support::{logged_items, of_kind};

#[test]
fn an_unreachable_provider_is_named_with_what_to_check() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let sandbox = Sandbox::new();
    sandbox.use_model(&format!("http://{free}/v1"));
    let outcome = sandbox.run(&["exec", "hello"]).expect_code(1);
    let _ = outcome.expect_stderr(&[&free.to_string()]);
    let items = logged_items(&sandbox.conversations()[0]);
    assert_eq!(of_kind(&items, "user_message").len(), 1);
    assert_eq!(of_kind(&items, "model_error").len(), 1);
}

#[test]
fn m_11_s_19_a_refused_key_is_told_and_not_shown() {
    let mut model = FakeModel::start(|_| {
        let message = "Incorrect API key provided: test-key. You can find your key elsewhere.";
        Answer::error(401, "invalid_api_key", message)
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let outcome = sandbox.run(&["exec", "hello"]).expect_code(1);
    let outcome = outcome.expect_stderr(&["key", "401"]);
    assert!(!outcome.stderr.contains("test-key"), "{}", outcome.stderr);
    let items = logged_items(&sandbox.conversations()[0]);
    let [error] = of_kind(&items, "model_error").try_into().unwrap();
    assert_eq!(error["body"]["status"], 401);
    assert!(!error.to_string().contains("test-key"), "{error}");
    assert_eq!(
        model.requests().len(),
        1,
        "a refused key is not tried again"
    );
}

#[test]
fn m_23_a_refusal_ends_with_3() {
    let model = FakeModel::start(|_| {
        Answer::error(
            400,
            "content_filter",
            "The prompt was filtered by the content policy.",
        )
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let outcome = sandbox.run(&["exec", "hello"]).expect_code(3);
    let _ = outcome.expect_stderr(&["content policy"]);
}

#[test]
fn m_02_a_broken_stream_keeps_what_came_and_says_so() {
    let model = FakeModel::start(|_| Answer::stream().say("half an answer").reset());
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    sandbox.write_config(
        "listen: 127.0.0.1:0\ndefault_model:\n  provider: fake\nretry:\n  attempts: 1\n",
    );
    let outcome = sandbox.run(&["exec", "hello"]).expect_code(1);
    assert_eq!(outcome.stdout.trim_end(), "half an answer");
    let items = logged_items(&sandbox.conversations()[0]);
    let [message] = of_kind(&items, "assistant_message").try_into().unwrap();
    assert_eq!(
        (&message["body"]["text"], &message["body"]["cut"]),
        (&"half an answer".into(), &true.into())
    );
}

#[test]
fn what_may_pass_is_asked_again_and_each_failure_is_told() {
    let asked = AtomicUsize::new(0);
    let model = FakeModel::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Answer::error(429, "rate_limit_exceeded", "Slow down."),
        1 => Answer::error(503, "server_error", "Overloaded."),
        2 => Answer::stream().say("half an answer").reset(),
        _ => Answer::text("a whole answer"),
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let outcome = sandbox.run(&["exec", "hello"]).expect_code(0);
    let notes = [
        "[attempt 1 failed, trying again: ",
        "[attempt 2 failed, trying again: ",
        "[the answer was broken off]",
        "[attempt 3 failed, trying again: ",
    ];
    let outcome = outcome.expect_stderr(&notes);
    assert_eq!(outcome.stdout, "half an answer\na whole answer\n");
    let items = logged_items(&sandbox.conversations()[0]);
    let [message] = of_kind(&items, "assistant_message").try_into().unwrap();
    assert_eq!(message["body"]["text"], "a whole answer");
    assert_eq!(of_kind(&items, "retry_notice").len(), 3);
}

#[test]
fn m_04_a_call_of_an_answer_that_broke_off_never_runs() {
    let model = FakeModel::start(|_| {
        let touch = r#"{"command":"touch ran.txt"}"#;
        Answer::stream().call("call_1", "bash", touch).reset()
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let _ = sandbox.run(&["exec", "hello"]).expect_code(1);
    assert!(!sandbox.project().join("ran.txt").exists());
    let items = logged_items(&sandbox.conversations()[0]);
    assert_eq!(
        of_kind(&items, "tool_call").len(),
        of_kind(&items, "tool_result").len()
    );
}

#[test]
fn events_split_anywhere_are_read_the_same() {
    for bytes in [1, 2, 3, 7, 64] {
        // Letters of several bytes, line ends and the JSON of the arguments are all cut somewhere.
        let model = FakeModel::start(move |asked| {
            let answer = if asked.results().is_empty() {
                let arguments = r#"{"command":"echo ok > ran.txt"}"#;
                Answer::stream()
                    .say("grüße 🦀")
                    .call("call_1", "bash", arguments)
                    .end()
            } else {
                Answer::text("done, 你好")
            };
            answer.in_pieces_of(bytes)
        });
        let sandbox = Sandbox::new();
        sandbox.use_model(&model.base_url());
        let outcome = sandbox.run(&["exec", "hello"]).expect_code(0);
        assert_eq!(
            outcome.stdout, "grüße 🦀\ndone, 你好\n",
            "in pieces of {bytes}"
        );
        assert!(sandbox.project().join("ran.txt").exists());
    }
}
