//! `openvaala compact`.

use std::process::ExitCode;

use openvaala_protocol::client::Client;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::method::{SessionCompact, SessionInterrupt, SessionUncompact};
use openvaala_protocol::rpc::params::compaction::{CompactParams, UncompactParams};
use openvaala_protocol::rpc::params::session::{InterruptParams, InterruptScope};

use super::describe::clean;
use super::find;
use crate::args::CompactArgs;
use crate::dirs::Dirs;
use crate::error::{CliError, INTERRUPTED};
use crate::output::{note, out};
use crate::start::connect;

pub(super) async fn run(dirs: &Dirs, args: CompactArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let conversation_id = find::id(&client, &args.id).await?;
    let outcome = if args.undo {
        undo(&client, conversation_id).await
    } else {
        compact(&client, conversation_id, args).await
    };
    client.close().await;
    outcome
}

async fn undo(client: &Client, conversation_id: ConversationId) -> Result<ExitCode, CliError> {
    let params = UncompactParams {
        conversation_id,
        session_id: None,
    };
    client.call::<SessionUncompact>(params).await?;
    note("the last summary is taken back");
    Ok(ExitCode::SUCCESS)
}

async fn compact(
    client: &Client,
    conversation_id: ConversationId,
    args: CompactArgs,
) -> Result<ExitCode, CliError> {
    let is_preview = args.preview;
    let params = CompactParams {
        conversation_id,
        session_id: None,
        guidance: args.guidance,
        preview: is_preview,
    };
    let made = tokio::select! {
        made = client.call::<SessionCompact>(params) => made?,
        _ = tokio::signal::ctrl_c() => {
            let session_id = None;
            let params = InterruptParams { conversation_id, session_id, scope: InterruptScope::Turn };
            client.call::<SessionInterrupt>(params).await?;
            note("interrupted: the conversation is as it was");
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    out(&format!("{}\n", clean(&made.summary.text)))?;
    note(if is_preview {
        "nothing was changed: without --preview the conversation would go on from this summary"
    } else {
        "the conversation goes on from this summary; `openvaala compact ID --undo` takes it back"
    });
    Ok(ExitCode::SUCCESS)
}
