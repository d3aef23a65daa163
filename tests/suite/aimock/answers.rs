//! What a model says and what its tools answer.

use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Aimock;
use crate::dialect::{Dialect, test_in_each_dialect};
use crate::support::{logged_items, of_kind, result_text};

test_in_each_dialect! {
    a_text_comes_through_whole_and_in_pieces,
    one_tool_is_called_and_answered,
    two_tools_at_once_are_answered_each,
    thoughts_go_back_to_the_service_unchanged,
    m_29_odd_tool_calls_are_answered_and_the_turn_goes_on,
}

fn a_text_comes_through_whole_and_in_pieces(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let sandbox = aimock.sandbox();
    let outcome = sandbox.run(&["exec", "hello"]).expect_code(0);
    assert_eq!(
        outcome.stdout.trim_end(),
        "Hello from the far side: héllo, 你好, 🦀."
    );
    assert!(outcome.stdout_pieces > 1, "not streamed: {outcome:?}");
    aimock.expect_valid_requests(1);
}

fn one_tool_is_called_and_answered(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let sandbox = aimock.sandbox();
    let outcome = sandbox
        .run(&["exec", "[tool] what is in the README?"])
        .expect_code(0);
    assert!(
        outcome.stdout.contains("I will read the file."),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
    assert_eq!(
        results(&sandbox),
        ["# Paper plane\n\nFolds paper planes.\n"]
    );
    aimock.expect_valid_requests(2);
}

fn two_tools_at_once_are_answered_each(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let sandbox = aimock.sandbox();
    let outcome = sandbox.run(&["exec", "[two tools] please"]).expect_code(0);
    assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
    assert_eq!(
        results(&sandbox),
        ["# Paper plane\n\nFolds paper planes.\n", "README.md\n"]
    );
    aimock.expect_valid_requests(2);
}

/// The texts of all tool results of the only conversation, sorted: they are logged as the tools end.
#[track_caller]
fn results(sandbox: &Sandbox) -> Vec<String> {
    let items = logged_items(&sandbox.conversations()[0]);
    let results = of_kind(&items, "tool_result");
    let mut texts: Vec<String> = results.iter().map(|result| result_text(result)).collect();
    texts.sort();
    texts
}

fn thoughts_go_back_to_the_service_unchanged(dialect: Dialect) {
    let thought = "The question is about the README. I read it before I answer.";
    let mut aimock = Aimock::start(dialect);
    let mut service = aimock.service();
    service.more_config = "  effort: high\n".to_owned();
    let sandbox = aimock.sandbox_for(&service);
    let _ = sandbox.run(&["exec", "[think] please"]).expect_code(0);
    let items = logged_items(&sandbox.conversations()[0]);
    // In Responses each answer has thoughts that are secret as a whole, too.
    let mut thoughts = of_kind(&items, "reasoning");
    thoughts.retain(|item| item["body"]["text"] != "");
    let [reasoning] = thoughts.try_into().unwrap();
    assert_eq!(reasoning["body"]["text"], thought);
    aimock.expect_valid_requests(2);
    let [first, second] = aimock.requests() else {
        panic!("other than two requests");
    };
    match dialect {
        Dialect::Chat => {
            let [message] = from_assistant(&second.body["messages"]).try_into().unwrap();
            assert_eq!(message["reasoning_content"], thought);
        }
        Dialect::Responses => {
            // Nothing is stored at the service, so it has to be asked for what it will want back.
            assert_eq!(
                first.body["include"],
                json!(["reasoning.encrypted_content"])
            );
            let input = second.body["input"].as_array().unwrap();
            let kinds = input.iter().map(|item| item["type"].as_str());
            let place = kinds.clone().position(|kind| kind == Some("reasoning"));
            let call = kinds.clone().position(|kind| kind == Some("function_call"));
            assert!(place < call, "{input:?}");
            assert_eq!(input[place.unwrap()], reasoning["body"]["opaque"]["data"]);
            assert_eq!(
                input[place.unwrap()]["summary"],
                json!([{ "type": "summary_text", "text": thought }])
            );
            assert!(input[place.unwrap()]["encrypted_content"].is_string());
        }
        Dialect::Messages => {
            let [message] = from_assistant(&second.body["messages"]).try_into().unwrap();
            assert_eq!(
                message["content"][0],
                json!({ "type": "thinking", "thinking": thought, "signature": "aimock-placeholder-signature" })
            );
        }
    }
}

fn from_assistant(messages: &Value) -> Vec<&Value> {
    let messages = messages.as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "assistant")
        .collect()
}

fn m_29_odd_tool_calls_are_answered_and_the_turn_goes_on(dialect: Dialect) {
    let mut aimock = Aimock::start(dialect);
    let sandbox = aimock.sandbox();
    for (prompt, text) in [
        ("[unknown tool]", "no_such_tool"),
        ("[wrong arguments]", "path"),
        ("[missing file]", "no/such/file.txt"),
    ] {
        let before = sandbox.conversations();
        let outcome = sandbox.run(&["exec", prompt]).expect_code(0);
        assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
        let mut new = sandbox.conversations();
        new.retain(|folder| !before.contains(folder));
        let items = logged_items(&new[0]);
        let [result] = of_kind(&items, "tool_result").try_into().unwrap();
        assert_eq!(result["body"]["status"], "failed");
        assert!(result_text(result).contains(text), "{result}");
    }
    aimock.expect_valid_requests(6);
}

/// The first command of the README, on a machine that has nothing but a key in its environment.
#[track_caller]
fn the_first_command_works_with_a_key_alone(dialect: Dialect, vendor: &str) {
    let mut aimock = Aimock::start(dialect);
    let mut sandbox = Sandbox::with_empty_home();
    sandbox.write_project("README.md", "# Paper plane\n");
    sandbox.set(format!("{vendor}_API_KEY"), "test-key");
    sandbox.set(format!("{vendor}_BASE_URL"), aimock.base_url());
    let prompt = "look around this folder and tell me what it is";
    let outcome = sandbox.run(&["exec", prompt]).expect_code(0);
    assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
    assert_eq!(results(&sandbox), ["# Paper plane\n", "README.md\n"]);
    aimock.expect_valid_requests(2);
}

#[test]
fn openai_the_first_command_of_the_readme_works_with_a_key_alone() {
    the_first_command_works_with_a_key_alone(Dialect::Chat, "OPENAI");
}

#[test]
fn anthropic_the_first_command_of_the_readme_works_with_a_key_alone() {
    the_first_command_works_with_a_key_alone(Dialect::Messages, "ANTHROPIC");
}
