//! A way to a server that breaks: a proxy that cuts each connection after a number of bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use openvaala_protocol::client::ConnectOptions;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy};
use tokio::net::TcpStream;

use crate::dice::Dice;
use crate::loopback::Loopback;

/// A proxy before a server on this machine.
#[derive(Debug)]
pub struct Cutter {
    loopback: Loopback,
    cuts: Arc<AtomicU64>,
}

impl Cutter {
    /// Starts a proxy that cuts `most` connections, each after a random number of bytes below `longest` that the server sent, and then none.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn start(server: &str, dice: Dice, most: u64, longest: u64) -> Self {
        let server: SocketAddr = server.parse().expect("the server has an address");
        let cuts = Arc::new(AtomicU64::new(0));
        let (cut, dice) = (Arc::clone(&cuts), std::sync::Mutex::new(dice));
        let loopback = Loopback::start(move |client| {
            let room = {
                let mut dice = dice.lock().expect("no holder has panicked");
                (cut.load(Ordering::Acquire) < most).then(|| dice.below(longest))
            };
            let cut = Arc::clone(&cut);
            async move {
                if pass(client, server, room).await {
                    cut.fetch_add(1, Ordering::AcqRel);
                }
            }
        });
        Self { loopback, cuts }
    }

    /// How many connections were cut.
    #[must_use]
    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Acquire)
    }

    /// How to connect over it.
    #[must_use]
    pub fn through(&self, options: &ConnectOptions) -> ConnectOptions {
        let mut through = options.clone();
        through.address = self.loopback.address().to_string();
        through
    }
}

/// Passes bytes both ways; whether the connection was cut rather than ended.
async fn pass(client: TcpStream, server: SocketAddr, room: Option<u64>) -> bool {
    let Ok(stream) = TcpStream::connect(server).await else {
        return false;
    };
    let own = client.local_addr().map(|own| own.to_string());
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = stream.into_split();
    let up = rename_host(
        &mut from_client,
        &mut to_server,
        own.unwrap_or_default(),
        server.to_string(),
    );
    let down = async {
        match room {
            Some(room) => {
                let passed = copy(&mut (&mut from_server).take(room), &mut to_client).await;
                passed.is_ok_and(|passed| passed == room)
            }
            None => {
                let _ = copy(&mut from_server, &mut to_client).await;
                false
            }
        }
    };
    tokio::select! {
        () = up => false,
        cut = down => cut,
    }
}

/// A server takes only requests that name it: the first two of a connection, each with a head of its own, name the proxy.
async fn rename_host(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    own: String,
    server: String,
) {
    let mut buffer = vec![0; 16 << 10];
    for _ in 0..2 {
        let Ok(read @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        let head = String::from_utf8_lossy(&buffer[..read]).replace(&own, &server);
        if to.write_all(head.as_bytes()).await.is_err() {
            return;
        }
    }
    let _ = copy(from, to).await;
}
