//! `openvaala token …`.

use std::process::ExitCode;

use openvaala_protocol::rpc::method::{TokenCreate, TokenList, TokenRevoke, TokenRotate};
use openvaala_protocol::rpc::params::token::{
    CreateParams, ListParams, ListResult, RevokeParams, RotateParams,
};

use crate::args::TokenCommand;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, out};
use crate::start::connect;

pub(super) async fn run(dirs: &Dirs, command: TokenCommand) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    match command {
        TokenCommand::Create { name, rights } => {
            let rights = rights.into_iter().collect();
            let params = CreateParams { name, rights };
            let created = client.call::<TokenCreate>(params).await?;
            out(&format!("{}\n", created.token.reveal()))?;
            note("this is shown once: keep it where only its user can read it");
        }
        TokenCommand::List { json } => {
            let listed = client.call::<TokenList>(ListParams::default()).await?;
            if json {
                out(&format!("{}\n", serde_json::to_string(&listed)?))?;
            } else {
                out(&table(&listed))?;
            }
        }
        TokenCommand::Revoke { name } => {
            let params = RevokeParams { name: name.clone() };
            client.call::<TokenRevoke>(params).await?;
            note(&format!("{name} is good for nothing from now on"));
        }
        TokenCommand::Rotate => {
            client.call::<TokenRotate>(RotateParams::default()).await?;
            note("the server has a new token; connections that were open end now");
        }
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

fn table(listed: &ListResult) -> String {
    let rows = listed.tokens.iter().map(|token| {
        let rights = token.rights.to_string();
        format!("{:<24} {rights:<28} {}\n", token.name, token.created_at)
    });
    rows.collect()
}
