//! The task that owns the socket, and the handle to it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures::{Sink, Stream, StreamExt};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{self, Message};

use super::notices::{NoticeQueue, Notices, notice_queue};
use super::open::{Socket, open};
use super::{ClientError, ConnectOptions};
use crate::rpc::{
    Incoming, MAX_REQUEST_BYTES, Method, Notice, Notification, Request, RequestId, Response,
};

/// How many calls may wait to be written; callers beyond that wait for a place.
const COMMANDS: usize = 64;

/// How long a good-bye may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// The room that the id and the names of a request need besides its parameters, in bytes.
const ENVELOPE: usize = 256;

type Reply = oneshot::Sender<Result<Box<RawValue>, ClientError>>;

enum Command {
    Call {
        method: &'static str,
        params: Box<RawValue>,
        reply: Reply,
    },
    Close,
}

/// A handle to the task; the connection ends when the last one is dropped.
#[derive(Clone)]
pub(super) struct Link {
    commands: mpsc::Sender<Command>,
    /// Why the connection ended; `None` while it lives.
    end: watch::Receiver<Option<String>>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("end", &*self.end.borrow())
            .finish()
    }
}

impl Link {
    /// Opens a WebSocket and starts the task that owns it.
    pub(super) async fn open(options: &ConnectOptions) -> Result<(Self, Notices), ClientError> {
        let socket = open(options).await?;
        let (commands, incoming) = mpsc::channel(COMMANDS);
        let (end_sender, end) = watch::channel(None);
        let (queue, notices) = notice_queue();
        let connection = Connection {
            socket,
            commands: incoming,
            notices: queue,
            waiting: HashMap::new(),
            last_id: 0,
            writing: false,
        };
        tokio::spawn(connection.run(end_sender));
        Ok((Self { commands, end }, notices))
    }

    pub(super) async fn call<M: Method>(
        &self,
        params: &M::Params,
    ) -> Result<M::Result, ClientError> {
        let method = M::NAME;
        let params = to_raw_value(params).map_err(|error| ClientError::Protocol {
            message: format!("params of {method} cannot be written: {error}"),
        })?;
        let (bytes, limit) = (params.get().len(), MAX_REQUEST_BYTES - ENVELOPE);
        if bytes > limit {
            return Err(ClientError::TooLarge {
                method,
                bytes,
                limit,
            });
        }
        let (reply, answer) = oneshot::channel();
        if self
            .commands
            .send(Command::Call {
                method,
                params,
                reply,
            })
            .await
            .is_err()
        {
            return Err(ClientError::Disconnected {
                sent: false,
                reason: self.closed().await,
            });
        }
        let lost = "the task of the connection was ended".to_owned();
        let result = answer.await.unwrap_or(Err(ClientError::Disconnected {
            sent: true,
            reason: lost,
        }))?;
        serde_json::from_str(result.get()).map_err(|error| ClientError::Protocol {
            message: format!("result of {method}: {error}"),
        })
    }

    pub(super) async fn closed(&self) -> String {
        let mut end = self.end.clone();
        let reason = end
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|reason| reason.clone());
        reason.unwrap_or_else(|| "the task of the connection was ended".to_owned())
    }

    pub(super) async fn close(&self) {
        if self.commands.send(Command::Close).await.is_ok() {
            self.closed().await;
        }
    }
}

/// What the task owns.
struct Connection {
    socket: Socket,
    commands: mpsc::Receiver<Command>,
    notices: NoticeQueue,
    /// Who waits for the answer to which request.
    waiting: HashMap<i64, Reply>,
    last_id: i64,
    /// Whether a message has been given to the socket that it has not written whole.
    writing: bool,
}

/// What the loop wakes up for.
enum Event {
    Command(Option<Command>),
    Written(Result<(), tungstenite::Error>),
    Came(Option<Result<Message, tungstenite::Error>>),
    HasRoom,
}

impl Connection {
    async fn run(mut self, end: watch::Sender<Option<String>>) {
        let reason = self.serve().await;
        end.send_replace(Some(reason.clone()));
        self.commands.close();
        let disconnected = |sent| ClientError::Disconnected {
            sent,
            reason: reason.clone(),
        };
        for reply in self.waiting.into_values() {
            let _ = reply.send(Err(disconnected(true)));
        }
        while let Some(command) = self.commands.recv().await {
            if let Command::Call { reply, .. } = command {
                let _ = reply.send(Err(disconnected(false)));
            }
        }
    }

    /// Runs until the connection ends, and tells why it did.
    async fn serve(&mut self) -> String {
        loop {
            let ended = match self.next_event().await {
                Event::Command(Some(Command::Call {
                    method,
                    params,
                    reply,
                })) => self.send(method, params, reply),
                Event::Command(Some(Command::Close) | None) => {
                    self.say_good_bye().await;
                    Err("this client closed the connection".to_owned())
                }
                Event::Written(result) => {
                    self.writing = false;
                    result.map_err(|error| error.to_string())
                }
                Event::Came(message) => self.receive(message),
                Event::HasRoom => Ok(()),
            };
            if let Err(reason) = ended {
                return reason;
            }
        }
    }

    /// Whether to read although nobody takes the notices: the answer that a caller waits for stands behind them.
    fn must_answer(&self) -> bool {
        self.waiting.values().any(|reply| !reply.is_closed())
    }

    /// Reading goes on while a message is written, or two peers with full buffers would wait for each other.
    async fn next_event(&mut self) -> Event {
        let read = !self.notices.is_full() || self.must_answer();
        let write = self.writing;
        let socket = &mut self.socket;
        let io = poll_fn(|context| {
            if write && let Poll::Ready(result) = Pin::new(&mut *socket).poll_flush(context) {
                return Poll::Ready(Event::Written(result));
            }
            if read && let Poll::Ready(message) = Pin::new(&mut *socket).poll_next(context) {
                return Poll::Ready(Event::Came(message));
            }
            Poll::Pending
        });
        tokio::select! {
            command = self.commands.recv(), if !write => Event::Command(command),
            () = self.notices.has_room(), if !read => Event::HasRoom,
            event = io, if read || write => event,
        }
    }

    fn send(&mut self, method: &str, params: Box<RawValue>, reply: Reply) -> Result<(), String> {
        if reply.is_closed() {
            return Ok(());
        }
        self.last_id += 1;
        let id = RequestId::Number(self.last_id);
        let text = Request {
            id,
            method: method.to_owned(),
            params: Some(params),
        }
        .to_text()
        .map_err(|error| error.to_string())?;
        // From here on nobody can say that the call did not reach the server.
        self.waiting.insert(self.last_id, reply);
        self.writing = true;
        Pin::new(&mut self.socket)
            .start_send(Message::text(text))
            .map_err(|error| error.to_string())
    }

    fn receive(
        &mut self,
        message: Option<Result<Message, tungstenite::Error>>,
    ) -> Result<(), String> {
        match message {
            Some(Ok(Message::Text(text))) => self.take(&text),
            Some(Ok(Message::Binary(_))) => Err("the server sent a binary message".to_owned()),
            Some(Ok(Message::Close(frame))) => Err(frame.map_or_else(
                || "the server closed the connection".to_owned(),
                |frame| format!("the server closed the connection: {frame}"),
            )),
            // The socket answers pings by itself.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the server closed the connection".to_owned()),
        }
    }

    fn take(&mut self, text: &str) -> Result<(), String> {
        match Incoming::parse(text) {
            Ok(Incoming::Response(Response {
                id: Some(id),
                result,
            })) => {
                // An id that nobody waits for does no harm.
                if let RequestId::Number(number) = id
                    && let Some(reply) = self.waiting.remove(&number)
                {
                    let _ = reply.send(result.map_err(ClientError::Rpc));
                }
                Ok(())
            }
            Ok(Incoming::Response(Response { id: None, result })) => Err(match result {
                Err(error) => format!("the server could not read a message: {error}"),
                Ok(_) => "the server sent a result without an id".to_owned(),
            }),
            Ok(Incoming::Notification(Notification { method, params })) => {
                match Notice::parse(&method, params.as_deref()) {
                    Ok(Some(notice)) => self.notices.push(notice, text.len()),
                    Ok(None) => {}
                    Err(error) => return Err(format!("the server sent a wrong message: {error}")),
                }
                Ok(())
            }
            Ok(Incoming::Request(Request { method, .. })) => Err(format!(
                "the server sent a request, {method:?}, which this protocol does not have"
            )),
            Err(refusal) => Err(match refusal.result {
                Err(error) => format!("the server sent a wrong message: {error}"),
                Ok(_) => "the server sent a wrong message".to_owned(),
            }),
        }
    }

    /// Writes what is left and the close frame, and waits for the other's, so that nothing sent is cut off.
    async fn say_good_bye(&mut self) {
        let good_bye = async {
            if self.socket.close(None).await.is_ok() {
                while let Some(Ok(_)) = self.socket.next().await {}
            }
        };
        let _ = timeout(CLOSE_LIMIT, good_bye).await;
    }
}
