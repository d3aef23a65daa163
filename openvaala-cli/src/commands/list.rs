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
    if !conversations.is_empty() {
        table.push_str(&row("ID", "UPDATED", "STATUS", "TITLE", "FOLDER"));
    }
    for conversation in conversations {
        let status = match conversation.status {
            ConversationStatus::Idle => "idle",
            ConversationStatus::Running => "running",
            _ => "?",
        };
        let title = conversation.title.as_deref().unwrap_or("(no title)");
        let folder = conversation
            .executors
            .first()
            .map_or("", |location| location.root.as_str());
        table.push_str(&row(
            &conversation.id.to_string(),
            &ago(conversation.updated_at, now),
            status,
            &one_line(title, 60),
            &one_line(folder, 60),
        ));
    }
    table
}

fn row(id: &str, updated: &str, status: &str, title: &str, folder: &str) -> String {
    format!("{id:<36}  {updated:<11}  {status:<7}  {title}  {folder}\n")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pretty_assertions::assert_eq;

    use super::*;

    fn conversation(n: u8, title: &str, status: &str, updated: &str) -> Conversation {
        let id = format!("0192d3f5-8c1e-7a5b-9c2d-0000000000{n:02}");
        let text = format!(
            r#"{{"id":"{id}","title":{title},"status":"{status}","root_session":"{id}",
            "executors":[{{"executor":"local","root":"/home/me/work"}}],
            "created_at":"2026-12-02T04:00:00.000Z","updated_at":"{updated}"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_table_has_a_line_a_conversation() {
        let conversations = [
            conversation(
                1,
                r#""look\naround""#,
                "running",
                "2026-12-02T04:59:30.000Z",
            ),
            conversation(2, "null", "idle", "2026-11-30T05:00:00.000Z"),
        ];
        let now = "2026-12-02T05:00:00.000Z".parse().unwrap();
        assert_snapshot!(table(&conversations, now), @r"
        ID                                    UPDATED      STATUS   TITLE  FOLDER
        0192d3f5-8c1e-7a5b-9c2d-000000000001  just now     running  look around  /home/me/work
        0192d3f5-8c1e-7a5b-9c2d-000000000002  2 d ago      idle     (no title)  /home/me/work
        ");
        assert_eq!(table(&[], now), "");
    }
}
