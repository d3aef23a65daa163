//! `openvaala interrupt`.

use std::process::ExitCode;

use openvaala_protocol::rpc::method::SessionInterrupt;
use openvaala_protocol::rpc::params::session::{InterruptParams, InterruptScope};

use super::find;
use crate::args::InterruptArgs;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::note;
use crate::start::connect;

pub(super) async fn run(dirs: &Dirs, args: InterruptArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let params = InterruptParams {
        conversation_id: find::id(&client, &args.id).await?,
        session_id: None,
        scope: if args.all {
            InterruptScope::Tree
        } else {
            InterruptScope::Turn
        },
    };
    let interrupted = client.call::<SessionInterrupt>(params).await?;
    client.close().await;
    match interrupted.turn_id {
        Some(turn) => note(&format!("interrupted turn {turn}")),
        None => note("no turn runs in this conversation"),
    }
    Ok(ExitCode::SUCCESS)
}
