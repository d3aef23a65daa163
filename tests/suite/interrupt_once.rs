//! An interrupt is answered once and ends its turn once, wherever the turn is.

use openvaala_protocol::PROTOCOL_VERSION;
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::raw_client::{RawClient, RawMessage};
use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::data_of;

/// The numbers of the requests that interrupt: the second is sent before the first is answered.
const INTERRUPTS: [u64; 2] = [101, 102];

/// A connection that keeps every message that has come, as it came.
struct Wire {
    client: RawClient,
    messages: Vec<Value>,
    conversation: String,
}

impl Wire {
    fn create(sandbox: &Sandbox, mut client: RawClient) -> Self {
        let peer = json!({ "name": "raw", "version": "1" });
        let hello = json!({ "protocol_version": PROTOCOL_VERSION, "client": peer });
        let _ = client.call("initialize", &hello);
        let place = json!({ "executor": "local", "root": sandbox.project() });
        let created = client.call("conversation/create", &json!({ "executors": [place] }));
        let conversation = &created["result"]["conversation"]["id"];
        let conversation = conversation.as_str().expect("it is created").to_owned();
        let watch = json!({ "conversation_id": conversation });
        let _ = client.call("conversation/subscribe", &watch);
        Self {
            client,
            messages: Vec::new(),
            conversation,
        }
    }

    fn request(&mut self, id: u64, method: &str, mut params: Value) {
        params["conversation_id"] = self.conversation.clone().into();
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.client.send_text(&request.to_string());
    }

    fn say(&mut self, id: u64, text: &str) {
        let content = json!([{ "type": "text", "text": text }]);
        let params = json!({ "item_id": Uuid::now_v7(), "content": content });
        self.request(id, "session/send", params);
    }

    /// Reads until a message is what is waited for.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) {
        loop {
            let text = match self.client.read_message() {
                RawMessage::Text(text) => text,
                RawMessage::Other(_) => continue,
                end => panic!("the connection ended: {end:?}"),
            };
            let message: Value = serde_json::from_str(&text).expect("it is JSON");
            self.messages.push(message);
            if self.messages.last().is_some_and(&is_it) {
                return;
            }
        }
    }

    /// The answers to those requests, in the order of their numbers.
    fn answers(&self, requests: &[u64]) -> Vec<(u64, &Value)> {
        let answers = self.messages.iter();
        let answers = answers.filter(|message| message.get("method").is_none());
        let mut answers: Vec<_> = answers
            .filter_map(|message| Some((message["id"].as_u64()?, &message["result"])))
            .filter(|(id, _)| requests.contains(id))
            .collect();
        answers.sort_by_key(|(id, _)| *id);
        answers
    }

    /// The ends of turns that were told: id and status.
    fn ends(&self) -> Vec<(&str, &str)> {
        self.messages.iter().filter_map(ended).collect()
    }
}

/// The turn whose end a message tells, and how it has ended.
fn ended(message: &Value) -> Option<(&str, &str)> {
    let turn = &message["params"]["entry"]["turn"]["turn"];
    let _ = turn["ended_at"].as_str()?;
    Some((turn["id"].as_str()?, turn["status"].as_str()?))
}

/// Interrupts a turn once a message says that it is where it is to be.
fn interrupted_once(mode: &str, hang: fn() -> Answer, is_there: fn(&Value) -> bool) {
    let mut model = FakeModel::start(move |asked: &Asked| match asked.last_user().as_str() {
        "hang" => hang(),
        _ => Answer::text("all is well"),
    });
    let sandbox = Sandbox::new();
    sandbox.use_model_with(&model.base_url(), &format!("approval: {{mode: {mode}}}\n"));
    let server = sandbox.serve();
    let discovery = &server.discovery;
    let client = RawClient::open(&discovery.address, &discovery.token());
    let mut wire = Wire::create(&sandbox, client);
    wire.say(100, "hang");
    wire.until(is_there);
    for id in INTERRUPTS {
        wire.request(id, "session/interrupt", json!({}));
    }
    wire.until(|message| ended(message).is_some());
    // What would come twice has come when the next turn is over.
    wire.say(103, "go on");
    wire.until(|message| ended(message).is_some_and(|(_, status)| status == "completed"));
    wire.request(104, "session/interrupt", json!({}));
    wire.until(|message| message["id"] == 104);

    let [(first, "interrupted"), (second, "completed")] = wire.ends()[..] else {
        panic!("{:?}", wire.ends());
    };
    assert_ne!(first, second);
    let turn = |id: Option<&str>| json!({ "turn_id": id });
    let [answer, again, none] = wire.answers(&[101, 102, 104])[..] else {
        panic!("{:?}", wire.answers(&[101, 102, 104]));
    };
    assert_eq!(answer, (101, &turn(Some(first))));
    // The second came while the turn was ending, or after it.
    assert!(
        again.1 == &turn(Some(first)) || again.1 == &turn(None),
        "{again:?}"
    );
    assert_eq!((again.0, none), (102, (104, &turn(None))));

    let folder = &sandbox.conversations()[0];
    let states = data_of(&folder.join("metadata.jsonl"));
    let ends = states.iter().filter(|frame| {
        frame["kind"] == "turn" && frame["id"] == first && frame["state"]["ended_at"].is_string()
    });
    assert_eq!(ends.count(), 1, "the log has one end of it");
    model.expect_sound_requests();
}

/// Live text with those words.
fn shows(message: &Value, words: &str) -> bool {
    let live = &message["params"]["live"];
    message["method"] == "conversation/live" && live.to_string().contains(words)
}

#[test]
fn u_148_an_interrupt_in_the_text_is_answered_once_and_ends_the_turn_once() {
    let hang = || Answer::stream().say("so far").stall();
    interrupted_once("full", hang, |message| shows(message, "so far"));
}

#[test]
fn u_148_an_interrupt_in_a_tool_is_answered_once_and_ends_the_turn_once() {
    let hang = || Answer::tool("call", "bash", r#"{"command":"echo re''ady; sleep 1000"}"#);
    interrupted_once("full", hang, |message| shows(message, "ready"));
}

#[test]
fn u_148_an_interrupt_in_a_question_is_answered_once_and_ends_the_turn_once() {
    let hang = || Answer::tool("call", "bash", r#"{"command":"touch made"}"#);
    interrupted_once("ask", hang, |message| {
        message["params"]["entry"]["item"]["item"]["kind"] == "approval"
    });
}
