//! `openvaala rename`, `archive`, `unarchive`, `fork` and `set`.

use std::process::ExitCode;

use openvaala_protocol::client::Client;
use openvaala_protocol::conversation::{ModelRef, WorkLocation};
use openvaala_protocol::id::{ConversationId, ExecutorId};
use openvaala_protocol::rpc::method::{ConversationFork, ConversationUpdate, SessionUpdate};
use openvaala_protocol::rpc::params::update::{
    ConversationUpdateParams, ForkParams, SessionUpdateParams,
};
use uuid::Uuid;

use super::exec::model;
use super::find;
use super::folder::folder_of;
use crate::args::{ForkArgs, RenameArgs, SetArgs};
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, out};
use crate::start::connect;

const fn nothing(conversation_id: ConversationId) -> ConversationUpdateParams {
    ConversationUpdateParams {
        conversation_id,
        title: None,
        archived: None,
        executors: None,
    }
}

pub(super) async fn rename(dirs: &Dirs, args: RenameArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let params = ConversationUpdateParams {
        title: Some(args.title),
        ..nothing(find::id(&client, &args.id).await?)
    };
    let renamed = client.call::<ConversationUpdate>(params).await?;
    client.close().await;
    let title = renamed.conversation.title.unwrap_or_default();
    out(&format!("renamed {} to {title}\n", renamed.conversation.id))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn archive(
    dirs: &Dirs,
    ids: &[String],
    archived: bool,
) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    // All of them are found before the first one is changed.
    let mut found = Vec::new();
    for text in ids {
        found.push(find::id(&client, text).await?);
    }
    for id in found {
        let params = ConversationUpdateParams {
            archived: Some(archived),
            ..nothing(id)
        };
        client.call::<ConversationUpdate>(params).await?;
        let done = if archived { "archived" } else { "unarchived" };
        out(&format!("{done} {id}\n"))?;
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn fork(dirs: &Dirs, args: ForkArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let params = ForkParams {
        conversation_id: find::id(&client, &args.id).await?,
        session_id: None,
        item_id: args.at,
        new_id: Some(ConversationId::from_uuid(Uuid::now_v7())),
    };
    let forked = client.call::<ConversationFork>(params).await?;
    client.close().await;
    let id = forked.conversation.id;
    out(&format!("{id}\n"))?;
    note(&format!(
        "go on with it: openvaala exec --resume {id} \"…\""
    ));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn set(dirs: &Dirs, args: SetArgs) -> Result<ExitCode, CliError> {
    let model = args.model.as_deref().map(model).transpose()?;
    let folder = match args.cwd.as_deref() {
        Some(cwd) => folder_of(dirs.remote.as_ref(), Some(cwd))?,
        None => None,
    };
    let (client, _notices) = connect(dirs).await?;
    let conversation_id = find::id(&client, &args.id).await?;
    if model.is_some() || args.effort.is_some() || args.agent.is_some() {
        let params = SessionUpdateParams {
            conversation_id,
            session_id: None,
            model,
            effort: args.effort,
            agent: args.agent,
        };
        let session = client.call::<SessionUpdate>(params).await?.session;
        let agent = session.agent.as_deref().unwrap_or("the default agent");
        out(&format!(
            "from the next turn on: {}, {agent}\n",
            named(&session.model)
        ))?;
    }
    if let Some(root) = folder {
        move_to(&client, conversation_id, root).await?;
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

async fn move_to(
    client: &Client,
    conversation_id: ConversationId,
    root: String,
) -> Result<(), CliError> {
    let executor = ExecutorId::local();
    let params = ConversationUpdateParams {
        executors: Some(vec![WorkLocation { executor, root }]),
        ..nothing(conversation_id)
    };
    let moved = client.call::<ConversationUpdate>(params).await?;
    for location in &moved.conversation.executors {
        out(&format!(
            "from the next turn on: {} on {}\n",
            location.root, location.executor
        ))?;
    }
    Ok(())
}

/// A model and how hard it thinks.
fn named(model: &ModelRef) -> String {
    let name = format!("{}/{}", model.provider, model.model);
    match &model.effort {
        Some(effort) => format!("{name} (effort {effort})"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_model_is_named_with_its_effort() {
        let mut asked = model("a/b/c").unwrap();
        assert_eq!(named(&asked), "a/b/c");
        asked.effort = Some("high".to_owned());
        assert_eq!(named(&asked), "a/b/c (effort high)");
    }
}
