//! `openvaala trash`.

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

use openvaala_core::environment::{Clock, SystemClock};
use openvaala_protocol::client::Client;
use openvaala_protocol::rpc::method::{TrashEmpty, TrashList};
use openvaala_protocol::rpc::params::trash::{EmptyParams, ListParams, TrashedConversation};
use openvaala_protocol::time::Timestamp;

use super::find;
use crate::args::{EmptyArgs, TrashCommand};
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{ago, note, one_line, out};
use crate::start::connect;

/// How much of a title is shown.
const TITLE: usize = 60;

pub(super) async fn run(dirs: &Dirs, command: TrashCommand) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let done = match command {
        TrashCommand::List { json } => list(&client, json).await,
        TrashCommand::Empty(args) => empty(&client, args).await,
    };
    client.close().await;
    done
}

async fn list(client: &Client, json: bool) -> Result<ExitCode, CliError> {
    let listed = client.call::<TrashList>(ListParams::default()).await?;
    if listed.conversations.is_empty() && !json {
        note("the trash is empty");
    }
    let now = SystemClock.now();
    for conversation in &listed.conversations {
        let line = if json {
            serde_json::to_string(conversation)?
        } else {
            line(conversation, now)
        };
        if !out(&format!("{line}\n"))? {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(conversation: &TrashedConversation, now: Timestamp) -> String {
    let when = conversation
        .deleted_at
        .map_or_else(|| "unknown".to_owned(), |at| ago(at, now));
    let title = conversation.title.as_deref().unwrap_or("(no title)");
    let title = one_line(title, TITLE);
    format!("{}  {when:>10}  {title}", conversation.id)
}

async fn empty(client: &Client, args: EmptyArgs) -> Result<ExitCode, CliError> {
    let mut conversation_ids = Vec::new();
    for text in &args.ids {
        conversation_ids.push(find::trashed(client, text).await?);
    }
    if !args.yes && !confirmed(client, &args).await? {
        note("nothing was removed");
        return Ok(ExitCode::SUCCESS);
    }
    let params = EmptyParams {
        conversation_ids,
        older_than_seconds: args.older_than.map(|age| age.as_secs()),
    };
    let emptied = client.call::<TrashEmpty>(params).await;
    let emptied = emptied.map_err(|error| find::in_trash(error.into()))?;
    for conversation in &emptied.removed {
        note(&format!("removed for ever: {}", conversation.id));
    }
    let count = emptied.removed.len();
    let what = if count == 1 {
        "conversation"
    } else {
        "conversations"
    };
    out(&format!("removed {count} {what} from the trash\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Asks whoever sits at the terminal.
async fn confirmed(client: &Client, args: &EmptyArgs) -> Result<bool, CliError> {
    if !io::stdin().is_terminal() {
        let message = "this removes conversations for ever, and there is nobody to ask";
        return Err(CliError::usage(message).hint("give --yes if that is what you want"));
    }
    let listed = client.call::<TrashList>(ListParams::default()).await?;
    let what = match (args.ids.len(), args.older_than) {
        (0, None) => format!(
            "all {} conversations in the trash",
            listed.conversations.len()
        ),
        (0, Some(_)) => "what was deleted so long ago".to_owned(),
        (count, _) => format!("{count} conversations in the trash"),
    };
    note(&format!("remove {what} for ever? [y/N]"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn s_32_a_title_in_the_trash_is_one_harmless_line() {
        let conversation = TrashedConversation {
            id: "01890000-0000-7000-8000-000000000000".parse().unwrap(),
            title: Some("a\u{1b}[2Jb\nc".to_owned()),
            deleted_at: Some(Timestamp::from_millis(0)),
        };
        assert_eq!(
            line(&conversation, Timestamp::from_millis(7_200_000)),
            "01890000-0000-7000-8000-000000000000     2 h ago  a [2Jb c"
        );
    }
}
