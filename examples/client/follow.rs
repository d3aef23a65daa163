//! Shows what a conversation does.

use std::error::Error;
use std::io::{self, Write};

use openvaala_protocol::client::{Client, Notices};
use openvaala_protocol::event::{Entry, Live};
use openvaala_protocol::rpc::params::session::InterruptParams;
use openvaala_protocol::rpc::{Notice, method};

/// Shows what comes until a turn has ended; Ctrl-C ends it sooner.
pub(crate) async fn follow(
    client: &Client,
    mut notices: Notices,
    interrupt: InterruptParams,
) -> Result<(), Box<dyn Error>> {
    loop {
        let notice = tokio::select! {
            notice = notices.recv() => notice,
            _ = tokio::signal::ctrl_c() => {
                client.call::<method::SessionInterrupt>(interrupt.clone()).await?;
                continue;
            }
        };
        match notice {
            Some(Notice::ConversationLive(told)) => live(&told.live)?,
            Some(Notice::ConversationEntry(told)) => match told.entry {
                Entry::Turn { turn, .. } if turn.ended_at.is_some() => {
                    writeln!(io::stdout(), "\nturn: {:?}", turn.status)?;
                    return Ok(());
                }
                _ => {}
            },
            Some(_) => {}
            // The server goes on: connect again and subscribe with the last cursor, to miss nothing.
            None => return Err(client.closed().await.into()),
        }
    }
}

fn live(live: &Live) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match live {
        Live::Started(item) => writeln!(out, "\n--- {}", item.kind.as_str())?,
        Live::Delta(delta) => write!(out, "{}", delta.text)?,
        _ => {}
    }
    out.flush()
}
