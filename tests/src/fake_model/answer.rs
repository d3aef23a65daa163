//! The step language of the script.

use std::time::Duration;

use serde_json::{Value, json};

use super::Gate;

/// One step of an answer after its head.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Bytes that go out in a write of their own.
    Send(Vec<u8>),
    /// Waits until the test opens the door.
    Wait(Gate),
    /// Waits a while, as a slow model does.
    Pause(Duration),
    /// Nothing more comes, and the connection stays.
    Stall,
    /// The connection breaks.
    Reset,
}

/// An answer: a head and the steps that follow it.
///
/// `Answer::stream().say("I will look.").call("call_1", "bash", "{}").end()`.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
    calls: usize,
}

impl Answer {
    /// Begins a stream of events; [`end`](Self::end) must follow, or the stream breaks off.
    #[must_use]
    pub fn stream() -> Self {
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        let answer = Self {
            status: 200,
            headers,
            steps: Vec::new(),
            calls: 0,
        };
        answer.delta(&json!({ "role": "assistant", "content": "" }))
    }

    /// A whole answer: that text, word by word.
    #[must_use]
    pub fn text(text: &str) -> Self {
        text.split_inclusive(' ')
            .fold(Self::stream(), Self::say)
            .end()
    }

    /// A whole answer: one tool call.
    #[must_use]
    pub fn tool(id: &str, name: &str, arguments: &str) -> Self {
        Self::stream().call(id, name, arguments).end()
    }

    /// No answer: the request is taken, and not even a head comes back.
    #[must_use]
    pub fn silence() -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            steps: vec![Step::Stall],
            calls: 0,
        }
    }

    /// An answer that is an error, in the shape in which OpenAI sends them.
    #[must_use]
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let error = json!({ "message": message, "type": code, "param": null, "code": code });
        let body = json!({ "error": error }).to_string().into_bytes();
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self {
            status,
            headers,
            steps: vec![Step::Send(body)],
            calls: 0,
        }
    }

    /// Adds a header to the head.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends a piece of text in an event of its own.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.delta(&json!({ "content": text }))
    }

    /// Sends a tool call in two events: its name, then its arguments.
    #[must_use]
    pub fn call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        let index = self.calls;
        self.calls += 1;
        let function = json!({ "name": name, "arguments": "" });
        let head = json!({ "index": index, "id": id, "type": "function", "function": function });
        let tail = json!({ "index": index, "function": { "arguments": arguments } });
        self.delta(&json!({ "tool_calls": [head] }))
            .delta(&json!({ "tool_calls": [tail] }))
    }

    /// Sends the event that says why the model stopped, the token counts, and the end.
    #[must_use]
    pub fn end(self) -> Self {
        self.end_after(10)
    }

    /// The same with another number of tokens in the request.
    #[must_use]
    pub fn end_after(self, tokens: u64) -> Self {
        let reason = if self.calls > 0 { "tool_calls" } else { "stop" };
        let usage = json!({
            "prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5
        });
        self.event(&json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "fake-1",
            "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }],
        }))
        .event(&json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "fake-1",
            "choices": [], "usage": usage,
        }))
        .send("data: [DONE]\n\n")
    }

    /// Sends any text, in a write of its own.
    #[must_use]
    pub fn send(mut self, text: &str) -> Self {
        self.steps.push(Step::Send(text.as_bytes().to_vec()));
        self
    }

    /// Splits all that is sent so far into writes of that many bytes, wherever they fall.
    ///
    /// # Panics
    /// If it is 0, or something other than sending is among the steps.
    #[must_use]
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        let all: Vec<u8> = self
            .steps
            .drain(..)
            .flat_map(|step| match step {
                Step::Send(bytes) => bytes,
                other => panic!("{other:?} cannot be split"),
            })
            .collect();
        self.steps = all
            .chunks(bytes)
            .map(|piece| Step::Send(piece.to_vec()))
            .collect();
        self
    }

    /// Waits until the test opens the door.
    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Wait(gate.clone()));
        self
    }

    /// Waits a while, as a slow model does.
    #[must_use]
    pub fn pause(mut self, time: Duration) -> Self {
        self.steps.push(Step::Pause(time));
        self
    }

    /// Sends nothing more and keeps the connection.
    #[must_use]
    pub fn stall(mut self) -> Self {
        self.steps.push(Step::Stall);
        self
    }

    /// Breaks the connection.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.steps.push(Step::Reset);
        self
    }

    fn delta(self, delta: &Value) -> Self {
        self.event(&json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "fake-1",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": null }],
        }))
    }

    fn event(self, data: &Value) -> Self {
        self.send(&format!("data: {data}\n\n"))
    }
}
