//! A real language model, small enough for the machine that tests run on, in the dialects of llama.cpp's own server.
//!
//! Only `tests/run --long` fetches and serves it (`tests/counterparts/serve_small_model.py`) and sets
//! `OPENVAALA_SMALL_MODEL_ADDRESS`. Its first answer takes a minute and it is not clever, so it is asked up to three times.

use std::time::{Duration, Instant};

use openvaala_tests::recorder::Recorder;
use openvaala_tests::sandbox::Sandbox;

use crate::dialect::{Dialect, Service, long_service, test_in_each_dialect};
use crate::support::{logged_items, of_kind};

const TRIES: usize = 3;
/// A busy machine reads the instructions and the tools at ten tokens a second.
const TRY_LIMIT: Duration = Duration::from_secs(600);

test_in_each_dialect! {
    the_first_command_of_the_readme_calls_a_tool_and_answers,
}

fn the_first_command_of_the_readme_calls_a_tool_and_answers(dialect: Dialect) {
    let prompt = "look around this folder and tell me what it is";
    let address = long_service("OPENVAALA_SMALL_MODEL_ADDRESS");
    let mut said = Vec::new();
    for number in 1..=TRIES {
        let mut recorder = Recorder::start(&address);
        let sandbox = Sandbox::new();
        dialect.use_service(&sandbox, &service(dialect, recorder.address()));
        sandbox.write_project(
            "README.md",
            "# Paper plane\n\nFolds paper planes from a sheet of paper.\n",
        );
        let begin = Instant::now();
        let outcome = sandbox.start(&["exec", prompt]).finish_within(TRY_LIMIT);
        let items = logged_items(&sandbox.conversations()[0]);
        let results = of_kind(&items, "tool_result").len();
        let answered = !outcome.stdout.trim().is_empty() && outcome.code == Some(0);
        let count = recorder.requests().len();
        dialect.expect_valid(recorder.requests(), count);
        println!(
            "try {number} of {TRIES}: {results} results of tools, {} s\n{}{}",
            begin.elapsed().as_secs(),
            outcome.stderr,
            outcome.stdout
        );
        if answered && results > 0 {
            return;
        }
        said.push(outcome);
    }
    panic!("asked {TRIES} times, the model never called a tool and then answered: {said:#?}");
}

fn service(dialect: Dialect, address: String) -> Service {
    let mut provider = "idle_timeout_seconds: 600\n".to_owned();
    if dialect == Dialect::Messages {
        provider.push_str("max_tokens: 2000\n");
    }
    Service {
        address,
        key: "none".to_owned(),
        model: "small".to_owned(),
        provider,
        // It likes to call one tool for ever; then the next try is a better use of the time.
        more_config: "step_limit: 8\n".to_owned(),
        attempts: 1,
    }
}
