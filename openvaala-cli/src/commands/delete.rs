//! `openvaala delete` and `openvaala restore`.

use std::process::ExitCode;

use openvaala_protocol::rpc::method::{ConversationDelete, ConversationRestore};
use openvaala_protocol::rpc::params::conversation::{DeleteParams, RestoreParams};

use super::find;
use crate::args::{DeleteArgs, RestoreArgs};
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, out};
use crate::start::connect;

pub(super) async fn run(dirs: &Dirs, args: DeleteArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    // All of them are found before the first one is deleted.
    let mut ids = Vec::new();
    for text in &args.ids {
        let id = find::id(&client, text).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    for conversation_id in ids {
        let params = DeleteParams { conversation_id };
        let deleted = client.call::<ConversationDelete>(params).await?;
        out(&format!("deleted {conversation_id}\n"))?;
        note(&if deleted.in_trash {
            format!("undo: openvaala restore {conversation_id}")
        } else {
            "nothing was ever said in it, so nothing is left of it".to_owned()
        });
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn restore(dirs: &Dirs, args: RestoreArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let conversation_id = find::trashed(&client, &args.id).await?;
    let params = RestoreParams { conversation_id };
    let restored = client.call::<ConversationRestore>(params).await;
    restored.map_err(|error| find::in_trash(error.into()))?;
    client.close().await;
    out(&format!("restored {conversation_id}\n"))?;
    Ok(ExitCode::SUCCESS)
}
