//! A client of a running server, over the wire: lists, creates, sends, follows, and interrupts on Ctrl-C.
//!
//! Start a server with `openvaala serve`, then run it with `cargo run -p openvaala-examples --example client --
//! ~/.local/state/openvaala/runtime-server.yaml "look around this folder"`.

use std::env;
use std::error::Error;
use std::fs;
use std::io::Write;

use openvaala_protocol::client::{Client, ConnectOptions, Notices};
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{Turn, WorkLocation};
use openvaala_protocol::event::{Entry, Live};
use openvaala_protocol::id::{ConversationId, ExecutorId, ItemId};
use openvaala_protocol::rpc::Notice;
use openvaala_protocol::rpc::method::{
    ConversationCreate, ConversationList, ConversationSubscribe, SessionInterrupt, SessionSend,
};
use openvaala_protocol::rpc::params::conversation::{CreateParams, ListParams, SubscribeParams};
use openvaala_protocol::rpc::params::server::Peer;
use openvaala_protocol::rpc::params::session::{InterruptParams, SendMode, SendParams};
use serde::Deserialize;
use uuid::Uuid;

/// What a running server writes down, readable by its user only.
#[derive(Deserialize)]
struct Discovery {
    address: String,
    token: String,
}

async fn connect(file: &str) -> Result<(Client, Notices), Box<dyn Error>> {
    let found: Discovery = serde_yaml::from_str(&fs::read_to_string(file)?)?;
    let (name, version) = ("example".to_owned(), "1".to_owned());
    // The token is never sent: both sides prove that they have it.
    let options = ConnectOptions::new(found.address, found.token.parse()?, Peer { name, version });
    Ok(Client::connect(options).await?)
}

/// Follows a conversation until a turn has ended.
async fn follow(
    client: &Client,
    notices: &mut Notices,
    id: ConversationId,
) -> Result<Turn, Box<dyn Error>> {
    loop {
        let notice = tokio::select! {
            notice = notices.recv() => notice,
            _ = tokio::signal::ctrl_c() => {
                let params = InterruptParams { conversation_id: id, session_id: None };
                client.call::<SessionInterrupt>(params).await?;
                continue;
            }
        };
        match notice {
            Some(Notice::ConversationLive(params)) => {
                if let Live::Delta(delta) = params.live {
                    print!("{}", delta.text);
                    std::io::stdout().flush()?;
                }
            }
            Some(Notice::ConversationEntry(params)) => match params.entry {
                Entry::Turn { turn, .. } if turn.ended_at.is_some() => return Ok(turn),
                Entry::Item { .. } => println!(),
                _ => {}
            },
            Some(_) => {}
            // The server goes on: connect again, and subscribe with the last cursor to miss nothing.
            None => return Err(client.closed().await.into()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [file, prompt] = arguments.as_slice() else {
        return Err("say where the server's file is, and what to do".into());
    };
    let (client, mut notices) = connect(file).await?;
    let listed = client
        .call::<ConversationList>(ListParams::default())
        .await?;
    for conversation in listed.conversations {
        println!(
            "{} {}",
            conversation.id,
            conversation.title.unwrap_or_default()
        );
    }
    let root = env::current_dir()?.to_string_lossy().into_owned();
    let executor = ExecutorId::local();
    let params = CreateParams {
        executors: vec![WorkLocation { executor, root }],
        ..CreateParams::default()
    };
    let conversation_id = client
        .call::<ConversationCreate>(params)
        .await?
        .conversation
        .id;
    let params = SubscribeParams {
        conversation_id,
        cursor: None,
    };
    client.call::<ConversationSubscribe>(params).await?;
    let params = SendParams {
        conversation_id,
        session_id: None,
        // Sent again with the same id, after a lost connection, it is taken once.
        item_id: ItemId::from_uuid(Uuid::now_v7()),
        content: vec![Content::text(prompt)],
        mode: SendMode::Queue,
        output_schema: None,
    };
    client.call::<SessionSend>(params).await?;
    let turn = follow(&client, &mut notices, conversation_id).await?;
    println!("turn: {:?}", turn.status);
    client.close().await;
    Ok(())
}
