//! What each agent does, by the number of the answers that it has given: nothing is remembered between two requests.

use std::time::Duration;

use openvaala_tests::fake_model::{Answer, Asked};
use serde_json::{Value, json};

/// Plays all agents of all conversations; main does what its last `task…` says, and then answers `pong` to `ping…`.
pub(super) fn plays_all_agents(asked: &Asked) -> Answer {
    let messages = asked.body["messages"].as_array();
    let messages = messages.map_or(&[][..], Vec::as_slice);
    let Some((path, name)) = path_below_main(messages) else {
        return main(messages);
    };
    let step = answers(messages);
    let (kind, task) = name.split_once('-').unwrap_or((&name, ""));
    // Where several agents may be at the same step, the path tells them apart.
    let mark = format!("{}-{step}", path.replace('/', "."));
    match (kind, step) {
        ("a", 0) => work(&mark, "; sleep 0.02"),
        ("a", 1) => calls(
            &mark,
            [
                spawn(&format!("d-{task}"), true),
                bash(&mark, "; sleep 0.03"),
            ],
        ),
        ("a", 2) => calls(
            &mark,
            [say_to("main", "half of it is done", "steer"), file(&mark)],
        ),
        // Every other time the one below is left to end later than its starter.
        ("a", 3) if task.ends_with(['0', '2', '4', '6', '8']) => {
            calls(&mark, [("wait_agent", json!({ "timeout_seconds": 20 }))])
        }
        ("b", 0 | 3) => work(&mark, "; sleep 1000 &"),
        ("b", 1) => calls(&mark, [file(&mark), bash(&mark, "; seq 3000")]),
        ("c", 0 | 1) => work(&mark, "; sleep 0.03"),
        ("c", 2) => calls(
            &mark,
            [say_to(
                &format!("main/b-{task}"),
                "c is nearly done",
                "steer",
            )],
        ),
        ("d", 0 | 1) => work(&mark, "; sleep 0.05"),
        _ => words().say(&format!("{path} is done.")).end(),
    }
}

fn main(messages: &[Value]) -> Answer {
    let is_task = |message: &Value| {
        let text = said(message);
        message["role"] == "user" && (text.starts_with("task") || text.starts_with("ping"))
    };
    let place = messages.iter().rposition(is_task).unwrap_or_default();
    let (told, since) = messages[place..].split_first().expect("there is a message");
    let text = said(told);
    let Some(task) = text.strip_prefix("task") else {
        return Answer::text("pong");
    };
    let step = answers(since);
    let mark = format!("main.{task}-{step}");
    let [a, b, c] = ["a", "b", "c"].map(|kind| format!("{kind}-{task}"));
    let wait = (
        "wait_agent",
        json!({ "until": "all", "timeout_seconds": 20 }),
    );
    match step {
        0 => calls(&mark, [spawn(&a, true), spawn(&b, true), bash(&mark, "")]),
        1 => calls(&mark, [spawn(&c, false), say_to(&a, "be quick", "steer")]),
        2 => calls(&mark, [wait]),
        3 => calls(&mark, [say_to(&b, "once more", "queue"), bash(&mark, "")]),
        4 => calls(&mark, [wait]),
        5 if task.ends_with(['2', '5', '8']) => {
            calls(&mark, [("close_agent", json!({ "agent": b }))])
        }
        _ => words().say("Done.").end(),
    }
}

type Call = (&'static str, Value);

fn spawn(name: &str, background: bool) -> Call {
    let arguments = json!({ "name": name, "task": format!("do {name}"), "background": background });
    ("spawn_agent", arguments)
}

fn say_to(agent: &str, text: &str, mode: &str) -> Call {
    let arguments = json!({ "agent": agent, "text": text, "mode": mode });
    ("send_message", arguments)
}

/// A command that leaves a mark each time it runs.
fn bash(mark: &str, rest: &str) -> Call {
    let command = format!("echo {mark} >> marks.txt{rest}");
    ("bash", json!({ "command": command }))
}

fn file(mark: &str) -> Call {
    let patch = format!("*** Begin Patch\n*** Add File: {mark}.txt\n+{mark}\n*** End Patch\n");
    ("apply_patch", json!({ "patch": patch }))
}

fn work(mark: &str, rest: &str) -> Answer {
    calls(mark, [bash(mark, rest)])
}

fn calls(mark: &str, calls: impl IntoIterator<Item = Call>) -> Answer {
    let calls = calls.into_iter().enumerate();
    let answer = calls.fold(words(), |answer, (n, (tool, arguments))| {
        answer.call(&format!("{mark}-{n}"), tool, &arguments.to_string())
    });
    answer.end()
}

fn words() -> Answer {
    let words = ["Now ", "comes ", "the ", "next. "];
    words.into_iter().fold(Answer::stream(), |answer, word| {
        answer.say(word).pause(Duration::from_millis(2))
    })
}

/// The path and the name of the agent that asks, unless it is the main one.
fn path_below_main(messages: &[Value]) -> Option<(String, String)> {
    let prompt = said(messages.first()?);
    let (_, rest) = prompt.split_once("You are the agent ")?;
    let (path, _) = rest.split_once(',')?;
    let (_, name) = path.rsplit_once('/')?;
    Some((path.to_owned(), name.to_owned()))
}

/// How many answers the model has given.
fn answers(messages: &[Value]) -> usize {
    let answers = messages.iter();
    answers
        .filter(|message| message["role"] == "assistant")
        .count()
}

fn said(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}
