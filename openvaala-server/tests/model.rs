//! A model server that says what a test tells it to: OpenAI Chat Completions, streamed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// What the model answers to one request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Say(&'static str),
    /// A call of a tool.
    Call(&'static str, Value),
    /// Nothing, for ever.
    Stall,
}

/// The server; it ends when this is dropped.
pub(crate) struct Model {
    pub(crate) url: String,
    _task: AbortOnDropHandle<()>,
}

impl Model {
    pub(crate) async fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let steps: VecDeque<Step> = steps.into_iter().collect();
        let steps = Arc::new(Mutex::new(steps));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&steps)));
            }
        });
        Self {
            url,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// The file of a provider that is this model.
    pub(crate) fn provider(&self) -> String {
        format!(
            "type: openai_chat\nbase_url: {}\napi_key: sk-canary-of-the-tests\ndefault_model: m\n",
            self.url
        )
    }
}

async fn answer(stream: TcpStream, steps: Arc<Mutex<VecDeque<Step>>>) {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let step = steps.lock().unwrap().pop_front();
    let (delta, reason) = match step.unwrap_or(Step::Say("there is no more")) {
        Step::Say(text) => (json!({ "content": text }), "stop"),
        Step::Call(name, arguments) => {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            let id = uuid::Uuid::now_v7().to_string();
            let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
            (json!({ "tool_calls": [call] }), "tool_calls")
        }
        Step::Stall => return std::future::pending().await,
    };
    let event = |choices: Value, usage: Value| {
        let data = json!({
            "id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m",
            "choices": choices, "usage": usage,
        });
        format!("data: {data}\n\n")
    };
    let first = json!([{ "index": 0, "delta": delta, "finish_reason": null }]);
    let last = json!([{ "index": 0, "delta": {}, "finish_reason": reason }]);
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    let text = [
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            .to_owned(),
        event(first, Value::Null),
        event(last, Value::Null),
        event(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ];
    let _ = stream.write_all(text.concat().as_bytes()).await;
    let _ = stream.shutdown().await;
}
