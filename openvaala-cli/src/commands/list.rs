//! `openvaala list`.

use std::process::ExitCode;

use openvaala_core::environment::{Clock, SystemClock};
use openvaala_protocol::conversation::{Conversation, ConversationStatus};
use openvaala_protocol::rpc::method::ConversationList;
use openvaala_protocol::rpc::params::conversation::ListParams;
use openvaala_protocol::time::Timestamp;

use crate::args::ListArgs;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{ago, note, one_line, out};
use crate::start::connect;

pub(super) async fn run(dirs: &Dirs, args: ListArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let params = ListParams {
        cursor: None,
        limit: Some(args.limit),
    };
    let page = client.call::<ConversationList>(params).await?;
    if args.json {
        for conversation in &page.conversations {
            out(&format!("{}\n", serde_json::to_string(conversation)?))?;
        }
    } else {
        out(&table(&page.conversations, SystemClock.now()))?;
        if page.conversations.is_empty() {
            note("there are no conversations yet: start one with `openvaala exec \"…\"`");
        } else if page.next.is_some() {
            note(&format!("there are more than {}: see --limit", args.limit));
        }
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

fn table(conversations: &[Conversation], now: Timestamp) -> String {
    let mut table = String::new();
    for conversation in conversations {
        let status = match conversation.status {
            ConversationStatus::Running => "running",
            _ => "",
        };
        let title = conversation.title.as_deref().unwrap_or("(no title)");
        let folder = conversation
            .executors
            .first()
            .map_or("", |location| location.root.as_str());
        table.push_str(&format!(
            "{}  {:<11} {:<8} {}  {}\n",
            conversation.id,
            ago(conversation.updated_at, now),
            status,
            one_line(title, 60),
            one_line(folder, 60),
        ));
    }
    table
}
