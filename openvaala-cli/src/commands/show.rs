//! `openvaala show`.

use std::process::ExitCode;

use openvaala_protocol::client::Client;
use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::item::{
    AssistantMessage, Interruption, Item, ItemKind, ModelError, Reasoning, ToolCall, ToolResult,
    ToolResultStatus, UserMessage,
};
use openvaala_protocol::rpc::method::{ConversationGet, ConversationList, SessionItems};
use openvaala_protocol::rpc::params::conversation::{GetParams, ListParams};
use openvaala_protocol::rpc::params::session::{ItemsOrder, ItemsParams};

use crate::args::{ShowArgs, exact_id};
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, one_line, out};
use crate::start::connect;

pub(super) async fn run(dirs: &Dirs, args: ShowArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let id = find(&client, &args.id).await?;
    let got = client
        .call::<ConversationGet>(GetParams {
            conversation_id: id,
        })
        .await?;
    if !args.json {
        let title = got.conversation.title.as_deref().unwrap_or("(no title)");
        note(&format!(
            "{id}  {}  ({} turns)",
            one_line(title, 80),
            got.turns.len()
        ));
    }
    let mut cursor = 0;
    loop {
        let params = ItemsParams {
            conversation_id: id,
            session_id: None,
            order: ItemsOrder::Ascending,
            cursor,
            limit: Some(1_000),
        };
        let page = client.call::<SessionItems>(params).await?;
        if !write(page.items, args.json)? {
            break;
        }
        match page.next {
            Some(next) => cursor = next,
            None => break,
        }
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Items of a page by their places; inversions never cross a turn, so pages of a thousand are good enough for people.
fn write(mut entries: Vec<Entry>, json: bool) -> Result<bool, CliError> {
    entries.sort_by_key(|entry| match entry {
        Entry::Item { item, .. } => item.head().pos,
        _ => u64::MAX,
    });
    for entry in entries {
        let text = match entry {
            Entry::Item { item, .. } if json => format!("{}\n", item.raw().get()),
            Entry::Item { item, .. } => shown(&item),
            Entry::Damaged { seq, message, .. } if !json => {
                format!("[entry {seq} is damaged: {message}]\n\n")
            }
            _ => continue,
        };
        if !out(&text)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Finds a conversation by its id or the beginning of it.
async fn find(client: &Client, text: &str) -> Result<ConversationId, CliError> {
    if let Some(id) = exact_id(text) {
        return Ok(id);
    }
    let hint = "`openvaala list` shows the ids; the beginning of one is enough";
    let wrong = |what: String| CliError::user(what).hint(hint);
    if text.len() < 4 || !text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return Err(wrong(format!("{text:?} is no conversation's id")));
    }
    let mut matches = Vec::new();
    let mut cursor = None;
    loop {
        let params = ListParams {
            cursor,
            limit: Some(1_000),
        };
        let page = client.call::<ConversationList>(params).await?;
        let ids = page
            .conversations
            .iter()
            .map(|conversation| conversation.id);
        matches.extend(ids.filter(|id| id.to_string().starts_with(text)));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    match matches[..] {
        [id] => Ok(id),
        [] => Err(wrong(format!("no conversation's id begins with {text:?}"))),
        _ => Err(wrong(format!(
            "{} conversations' ids begin with {text:?}",
            matches.len()
        ))),
    }
}

fn shown(item: &Item) -> String {
    let body = match &item.head().kind {
        ItemKind::UserMessage => item.body().map(|body| {
            body.map(|body: UserMessage| {
                format!("> {}", content(&body.content).replace('\n', "\n> "))
            })
        }),
        ItemKind::AssistantMessage => item.body().map(|body| {
            body.map(|body: AssistantMessage| {
                let cut = if body.cut { " [cut off]" } else { "" };
                format!("{}{cut}", clean(&body.text))
            })
        }),
        ItemKind::Reasoning => item
            .body()
            .map(|body| body.map(|body: Reasoning| format!("(thinks) {}", clean(&body.text)))),
        ItemKind::ToolCall => item.body().map(|body| {
            body.map(|body: ToolCall| format!("→ {} {}", body.tool, one_line(&body.arguments, 400)))
        }),
        ItemKind::ToolResult => item
            .body()
            .map(|body| body.map(|body: ToolResult| result(&body))),
        ItemKind::ModelError => item.body().map(|body| {
            body.map(|body: ModelError| format!("[the model failed: {}]", clean(&body.message)))
        }),
        ItemKind::Interruption => item.body().map(|body| {
            body.map(|body: Interruption| format!("[interrupted: {:?}]", body.cause).to_lowercase())
        }),
        other => Some(Ok(format!("[{other}]"))),
    };
    match body {
        Some(Ok(text)) => format!("{text}\n\n"),
        _ => format!("[a {} that cannot be read]\n\n", item.head().kind),
    }
}

fn result(result: &ToolResult) -> String {
    let mut text = format!("← {}", status(result));
    if let Some(output) = &result.output {
        text.push_str(&format!(" (the whole output has {} bytes)", output.bytes));
    }
    for line in content(&result.content).lines() {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}

/// How a call ended, in a word or two.
pub(super) fn status(result: &ToolResult) -> String {
    match (result.status, result.exit_code) {
        (ToolResultStatus::Ok, None | Some(0)) => "ok".to_owned(),
        (ToolResultStatus::Ok | ToolResultStatus::Failed, Some(code)) => {
            format!("exit code {code}")
        }
        (ToolResultStatus::Failed, None) => "failed".to_owned(),
        (ToolResultStatus::Interrupted, _) => "interrupted".to_owned(),
        _ => "outcome not known".to_owned(),
    }
}

fn content(content: &[Content]) -> String {
    let pieces = content.iter().map(|piece| match piece {
        Content::Text { text } => clean(text),
        Content::Image { media_type, data } => {
            let size = match data {
                ImageData::Base64(data) => data.len() / 4 * 3,
                ImageData::Blob(blob) => usize::try_from(blob.bytes).unwrap_or(usize::MAX),
            };
            format!("[{media_type}, {size} bytes]")
        }
        _ => "[something that this version does not know]".to_owned(),
    });
    pieces.collect::<Vec<_>>().join("\n")
}

/// Text without what a terminal would obey.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}
