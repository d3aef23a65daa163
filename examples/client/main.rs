//! A client of a running server: lists, creates, sends, follows, and interrupts on Ctrl-C.
//!
//! Start a server with `openvaala serve`, then run it with `cargo run -p openvaala-examples --example client --
//! ~/.local/state/openvaala/runtime-server.yaml "look around this folder"`.

mod connect;
mod follow;

use std::env;
use std::error::Error;

use openvaala_protocol::client::Client;
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::WorkLocation;
use openvaala_protocol::id::{ConversationId, ExecutorId, ItemId};
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::conversation::{CreateParams, ListParams, SubscribeParams};
use openvaala_protocol::rpc::params::session::{
    InterruptParams, InterruptScope, SendMode, SendParams,
};
use uuid::Uuid;

use self::connect::connect;
use self::follow::follow;

/// Creates a conversation in this folder and subscribes to it.
async fn create(client: &Client) -> Result<ConversationId, Box<dyn Error>> {
    let root = env::current_dir()?.to_string_lossy().into_owned();
    let executor = ExecutorId::local();
    let params = CreateParams {
        executors: vec![WorkLocation { executor, root }],
        ..CreateParams::default()
    };
    let created = client.call::<method::ConversationCreate>(params).await?;
    let params = SubscribeParams {
        conversation_id: created.conversation.id,
        cursor: None,
    };
    client.call::<method::ConversationSubscribe>(params).await?;
    Ok(created.conversation.id)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = (env::args().nth(1), env::args().nth(2));
    let (Some(file), Some(prompt)) = arguments else {
        return Err("give FILE and PROMPT".into());
    };
    let (client, notices) = connect(&file).await?;
    let all = ListParams::default();
    for it in client
        .call::<method::ConversationList>(all)
        .await?
        .conversations
    {
        println!("{} {}", it.id, it.title.unwrap_or_default());
    }
    let (conversation_id, session_id) = (create(&client).await?, None);
    let params = SendParams {
        conversation_id,
        session_id,
        // Sent again under the same id, after a lost connection, it is taken once.
        item_id: ItemId::from_uuid(Uuid::now_v7()),
        content: vec![Content::text(prompt)],
        mode: SendMode::Queue,
        output_schema: None,
        approval_mode: None,
    };
    client.call::<method::SessionSend>(params).await?;
    let interrupt = InterruptParams {
        conversation_id,
        session_id,
        scope: InterruptScope::Turn,
    };
    follow(&client, notices, interrupt).await
}
