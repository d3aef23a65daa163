//! Takes connections, and waits when the system has no more to give.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

/// How long to wait after the system could not give a connection, such as with too many open files.
const BACKOFF: Duration = Duration::from_millis(100);

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listener: TcpListener,
    retry_at: Option<Instant>,
    /// The last try gave none: said once, not at every try.
    is_short: bool,
}

impl Acceptor {
    pub(crate) const fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            retry_at: None,
            is_short: false,
        }
    }

    /// The next connection. Cancel safe.
    pub(crate) async fn next(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            if let Some(at) = self.retry_at {
                sleep_until(at).await;
                self.retry_at = None;
            }
            match self.listener.accept().await {
                Ok(accepted) => {
                    self.is_short = false;
                    return accepted;
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.is_short, true) {
                        tracing::warn!(%error, "no connection can be taken right now");
                    }
                    self.retry_at = Some(Instant::now() + BACKOFF);
                }
            }
        }
    }
}
