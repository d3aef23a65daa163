//! `openvaala send`: says something and leaves.

use std::process::ExitCode;

use openvaala_protocol::id::ItemId;
use openvaala_protocol::rpc::method::SessionSend;
use openvaala_protocol::rpc::params::session::{SendMode, SendParams};

use super::follow::{Follower, Mode, Start, watch};
use super::{find, prompt};
use crate::args::SendArgs;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::note;
use crate::start::connect;

pub(super) async fn run(dirs: &Dirs, args: SendArgs) -> Result<ExitCode, CliError> {
    let content = prompt::read(args.prompt).await?;
    let send_mode = if args.steer {
        SendMode::Steer
    } else {
        SendMode::Queue
    };
    let (client, notices) = connect(dirs).await?;
    let conversation = find::conversation(&client, &args.id).await?;
    let conversation_id = conversation.id;
    if !args.follow {
        let params = SendParams {
            conversation_id,
            session_id: None,
            item_id: ItemId::from_uuid(uuid::Uuid::now_v7()),
            content,
            mode: send_mode,
            output_schema: None,
            approval_mode: None,
        };
        client.call::<SessionSend>(params).await?;
        client.close().await;
        note(&format!("sent; see `openvaala show {conversation_id}`"));
        return Ok(ExitCode::SUCCESS);
    }
    let cursor = watch(&client, conversation_id).await?;
    let start = Start {
        conversation,
        cursor,
        content,
        send_mode,
        output_schema: None,
        approval_mode: None,
        mode: if args.json { Mode::Json } else { Mode::Text },
    };
    Follower::new(dirs.clone(), start)
        .run(client, notices)
        .await
}
