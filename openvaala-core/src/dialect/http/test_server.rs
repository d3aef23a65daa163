//! A provider for tests: a real HTTP server that does what a script says.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// How one request is answered.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    status: u16,
    headers: Vec<(&'static str, String)>,
    steps: VecDeque<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Send(Bytes),
    /// Break the connection.
    Reset,
    /// Send nothing more and keep the connection.
    Stall,
}

impl Script {
    /// An answer with that status and an empty body.
    pub(crate) const fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            steps: VecDeque::new(),
        }
    }

    /// A stream of events.
    pub(crate) fn events() -> Self {
        Self::status(200).header("content-type", "text/event-stream")
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn send(self, bytes: impl Into<Bytes>) -> Self {
        self.then(Step::Send(bytes.into()))
    }

    pub(crate) fn reset(self) -> Self {
        self.then(Step::Reset)
    }

    pub(crate) fn stall(self) -> Self {
        self.then(Step::Stall)
    }

    fn then(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    fn body(self) -> impl Stream<Item = Result<Frame<Bytes>, io::Error>> + Send {
        stream::unfold(self.steps, |mut steps| async {
            let frame = match steps.pop_front()? {
                Step::Send(bytes) => Ok(Frame::data(bytes)),
                Step::Reset => {
                    // A body that waits makes hyper send what it has so far.
                    tokio::task::yield_now().await;
                    Err(io::Error::from(io::ErrorKind::ConnectionReset))
                }
                Step::Stall => std::future::pending().await,
            };
            Some((frame, steps))
        })
    }
}

/// A request as the server saw it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The server; it answers every request in the same way, and ends when it is dropped.
#[derive(Debug)]
pub(crate) struct TestServer {
    address: SocketAddr,
    seen: mpsc::UnboundedReceiver<Seen>,
    task: AbortHandle,
}

impl TestServer {
    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (report, seen) = mpsc::unbounded_channel();
        let task = tokio::spawn(serve(listener, script, report)).abort_handle();
        Self {
            address,
            seen,
            task,
        }
    }

    /// The base URL of its API.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The next request that came.
    pub(crate) async fn seen(&mut self) -> Seen {
        self.seen.recv().await.unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, script: Script, report: mpsc::UnboundedSender<Seen>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let (script, report) = (script.clone(), report.clone());
        connections.spawn(async move {
            let service = service_fn(|request| respond(request, script.clone(), report.clone()));
            // A broken connection is part of many scripts.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

async fn respond(
    request: Request<Incoming>,
    script: Script,
    report: mpsc::UnboundedSender<Seen>,
) -> Result<Response<impl hyper::body::Body<Data = Bytes, Error = io::Error>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    // Most tests do not look.
    let _ = report.send(Seen {
        uri: head.uri,
        headers: head.headers,
        body,
    });
    let mut response = Response::builder().status(script.status);
    for (name, value) in &script.headers {
        response = response.header(*name, value);
    }
    Ok(response
        .body(StreamBody::new(script.body().boxed()))
        .unwrap())
}

/// An address where nobody listens.
pub(crate) async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/v1", listener.local_addr().unwrap())
}

/// An address that closes every connection before it answers.
pub(crate) async fn hangs_up() -> (String, AbortHandle) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let task = tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    (url, task.abort_handle())
}
