//! A scripted model behind HTTP: OpenAI Chat Completions, streamed.
//!
//! It is strict: a request whose tool calls and results do not belong together is answered with 400, as real
//! providers do.

mod answer;
mod asked;
mod connection;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::watch;

pub use self::answer::Answer;
pub use self::asked::{Asked, ToolMessage};
use crate::loopback::Loopback;

/// Decides what is answered.
pub(crate) type Behaviour = Arc<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// The server; it ends when this is dropped.
#[derive(Debug)]
pub struct FakeModel {
    loopback: Loopback,
    incoming: Receiver<Seen>,
    seen: Vec<Seen>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When its last byte had come.
    pub at: Instant,
    /// The value of its header `Authorization`.
    pub authorization: Option<String>,
    /// Its body.
    pub body: Value,
    /// Why it was refused, if it was.
    pub refused: Option<String>,
}

impl FakeModel {
    /// Starts on a free port of this machine.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn start(behaviour: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let (sender, incoming) = channel();
        let behaviour: Behaviour = Arc::new(behaviour);
        let loopback = Loopback::start(move |stream| {
            connection::serve(stream, Arc::clone(&behaviour), sender.clone())
        });
        Self {
            loopback,
            incoming,
            seen: Vec::new(),
        }
    }

    /// The base URL for a provider file.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.loopback.address())
    }

    /// All requests that have come so far.
    pub fn requests(&mut self) -> &[Seen] {
        self.seen.extend(self.incoming.try_iter());
        &self.seen
    }

    /// Forgets all requests that have come so far, for tests whose requests are too many or too long to be kept.
    pub fn forget(&mut self) {
        self.incoming.try_iter().for_each(drop);
        self.seen.clear();
    }

    /// Checks that no request was refused for what it said.
    ///
    /// # Panics
    /// With the reasons, if any was.
    #[track_caller]
    pub fn expect_sound_requests(&mut self) {
        let refused: Vec<&String> = self
            .requests()
            .iter()
            .filter_map(|seen| seen.refused.as_ref())
            .collect();
        assert!(
            refused.is_empty(),
            "the model refused requests: {refused:#?}"
        );
    }
}

/// A door that a script waits at until the test opens it.
#[derive(Clone, Debug)]
pub struct Gate {
    open: watch::Sender<bool>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed door.
    #[must_use]
    pub fn new() -> Self {
        Self {
            open: watch::Sender::new(false),
        }
    }

    /// Opens it for all who wait and who will come.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until it is open.
    pub async fn passed(&self) {
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}
