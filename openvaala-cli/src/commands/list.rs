//! `openvaala list`.

use std::process::ExitCode;

use openvaala_core::environment::{Clock, SystemClock};
use openvaala_protocol::conversation::{Conversation, ConversationStatus};
use openvaala_protocol::rpc::method::ConversationList;
use openvaala_protocol::rpc::params::conversation::ListParams;
use openvaala_protocol::time::Timestamp;

use super::folder::folder_of;
use crate::args::{ListArgs, StatusArg};
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{ago, note, one_line, out};
use crate::remote::RemoteServer;
use crate::start::connect;

/// How many are asked for at once if all are wanted.
const PAGE: u32 = 1_000;

pub(super) async fn run(dirs: &Dirs, args: ListArgs) -> Result<ExitCode, CliError> {
    let mut params = params(&args, SystemClock.now(), dirs.remote.as_ref())?;
    let (client, _notices) = connect(dirs).await?;
    let mut head = true;
    let mut is_stale = false;
    let next = loop {
        let page = client.call::<ConversationList>(params.clone()).await?;
        let shown = if args.json {
            lines(&page.conversations)?
        } else {
            table(&page.conversations, head, SystemClock.now())
        };
        head &= page.conversations.is_empty();
        is_stale |= page.stale;
        if !out(&shown)? {
            break None;
        }
        params.cursor = page.next;
        if !args.all || params.cursor.is_none() {
            break params.cursor.take();
        }
    };
    if let Some(next) = next {
        note(&format!(
            "there may be more: say the same with --cursor {next}, or with --all"
        ));
    } else if head {
        note(nothing(&args));
    }
    if is_stale {
        note("the index is still being brought up to date: newer changes may be missing");
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

fn params(
    args: &ListArgs,
    now: Timestamp,
    remote: Option<&RemoteServer>,
) -> Result<ListParams, CliError> {
    let root = match args.cwd.as_deref() {
        Some(cwd) => folder_of(remote, Some(cwd))?,
        None => None,
    };
    Ok(ListParams {
        cursor: args.cursor.clone(),
        limit: Some(if args.all { PAGE } else { args.limit }),
        status: args.status.map(|status| match status {
            StatusArg::Running => ConversationStatus::Running,
            StatusArg::Idle => ConversationStatus::Idle,
        }),
        root,
        search: args.search.clone(),
        updated_since: args.since.map(|since| since.timestamp(now)),
        archived: args.archived,
    })
}

/// What to say if nothing was listed.
fn nothing(args: &ListArgs) -> &'static str {
    let filtered = args.status.is_some()
        || args.cwd.is_some()
        || args.search.is_some()
        || args.archived
        || args.since.is_some();
    if args.cursor.is_some() {
        "there are no more"
    } else if filtered {
        "no conversation is like that: `openvaala list` shows all"
    } else {
        "there are no conversations yet: start one with `openvaala exec \"…\"`"
    }
}

fn lines(conversations: &[Conversation]) -> Result<String, serde_json::Error> {
    let mut lines = String::new();
    for conversation in conversations {
        lines.push_str(&serde_json::to_string(conversation)?);
        lines.push('\n');
    }
    Ok(lines)
}

/// A line a conversation; above the first page a line that names the columns.
fn table(conversations: &[Conversation], head: bool, now: Timestamp) -> String {
    let mut table = String::new();
    if head && !conversations.is_empty() {
        table.push_str(&row("ID", "UPDATED", "STATUS", "TITLE", "FOLDER"));
    }
    for conversation in conversations {
        let status = match conversation.status {
            _ if conversation.damaged.is_some() => "damaged",
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
        if let Some(damaged) = &conversation.damaged {
            table.push_str(&format!(
                "{:<36}  damaged: {}\n",
                "",
                one_line(damaged, 200)
            ));
        }
    }
    table
}

fn row(id: &str, updated: &str, status: &str, title: &str, folder: &str) -> String {
    format!("{id:<36}  {updated:<11}  {status:<7}  {title}  {folder}\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use insta::assert_snapshot;
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::args::{Cli, Command};

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
        assert_snapshot!(table(&conversations, true, now), @r"
        ID                                    UPDATED      STATUS   TITLE  FOLDER
        0192d3f5-8c1e-7a5b-9c2d-000000000001  just now     running  look around  /home/me/work
        0192d3f5-8c1e-7a5b-9c2d-000000000002  2 d ago      idle     (no title)  /home/me/work
        ");
        assert_eq!(table(&[], true, now), "");
        let next_page = table(&conversations, false, now);
        assert_eq!(next_page.lines().count(), 2, "{next_page}");
    }

    #[test]
    fn u_003_a_damaged_conversation_has_a_line_with_the_reason() {
        let mut damaged = conversation(3, "null", "running", "2026-11-30T05:00:00.000Z");
        damaged.damaged = Some("metadata entry 2 cannot\nbe read".to_owned());
        let now = "2026-12-02T05:00:00.000Z".parse().unwrap();
        assert_snapshot!(table(&[damaged.clone()], false, now), @r"
        0192d3f5-8c1e-7a5b-9c2d-000000000003  2 d ago      damaged  (no title)  /home/me/work
                                              damaged: metadata entry 2 cannot be read
        ");
        let line: serde_json::Value = serde_json::from_str(&lines(&[damaged]).unwrap()).unwrap();
        assert_eq!(line["damaged"], "metadata entry 2 cannot\nbe read");
    }

    #[test]
    fn every_filter_reaches_the_server() {
        let line = "openvaala list --limit 5 --cursor c --status running --cwd / --search x --since 1h --archived";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let Command::List(args) = cli.command else {
            panic!("another command");
        };
        let now = "2026-12-02T05:00:00.000Z".parse().unwrap();
        let expected = ListParams {
            cursor: Some("c".to_owned()),
            limit: Some(5),
            status: Some(ConversationStatus::Running),
            root: Some("/".to_owned()),
            search: Some("x".to_owned()),
            updated_since: Some("2026-12-02T04:00:00.000Z".parse().unwrap()),
            archived: true,
        };
        assert_eq!(params(&args, now, None).unwrap(), expected);
    }
}
