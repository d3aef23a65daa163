//! Turns, terminals, files and the other things that clients ask for, over a real socket.

mod config;
mod conversations;
mod lists;
mod order;
mod terminals;

use openvaala_protocol::id::ItemId;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::model::{Model, Step};
use crate::support::{Place, Raw, Running};

/// A server whose model says that, a client of it, and a conversation in the folder `work`.
pub(crate) struct Scene {
    pub(crate) server: Running,
    pub(crate) raw: Raw,
    pub(crate) id: String,
    pub(crate) root: String,
    _model: Model,
}

impl Scene {
    pub(crate) async fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let model = Model::start(steps).await;
        let place = Place::new();
        place.write("providers/fake.yaml", &model.provider());
        let work = place.dir("work");
        std::fs::create_dir_all(&work).unwrap();
        let server = Running::start_in(place).await;
        let mut raw = server.raw().await;
        let created = raw
            .call(
                "conversation/create",
                json!({
                    "executors": [{ "executor": "local", "root": work }],
                    "approval_mode": "full",
                }),
            )
            .await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            id: text(&created["result"]["conversation"]["id"]),
            root: text(&created["result"]["session"]["id"]),
            server,
            raw,
            _model: model,
        }
    }

    /// Asks with the id of the conversation among the parameters; gives the result.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.try_ask(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Asks for something that is refused; gives code and message.
    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let answer = self.try_ask(method, params).await;
        let error = &answer["error"];
        let message = error["message"].as_str();
        let message = message.unwrap_or_else(|| panic!("{method} was not refused: {answer}"));
        (error["code"].as_i64().unwrap(), message.to_owned())
    }

    async fn try_ask(&mut self, method: &str, mut params: Value) -> Value {
        params["conversation_id"] = json!(self.id);
        self.raw.call(method, params).await
    }

    /// Sends a message and waits for the end of its turn; gives the turn.
    pub(crate) async fn turn(&mut self, text: &str) -> Value {
        self.ask("conversation/subscribe", json!({})).await;
        self.send(text).await;
        let turn = loop {
            let message = self.raw.receive().await;
            let turn = &message["params"]["entry"]["turn"]["turn"];
            if turn["ended_at"].is_string() {
                break turn.clone();
            }
        };
        self.ask("conversation/unsubscribe", json!({})).await;
        turn
    }

    pub(crate) async fn send(&mut self, text: &str) {
        let params = json!({
            "item_id": ItemId::from_uuid(Uuid::now_v7()),
            "content": [{ "type": "text", "text": text }],
        });
        self.ask("session/send", params).await;
    }
}
