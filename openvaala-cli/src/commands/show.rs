//! `openvaala show`.

use std::process::ExitCode;

use openvaala_protocol::client::Client;
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::method::{ConversationGet, SessionItems};
use openvaala_protocol::rpc::params::conversation::{GetParams, GetResult};
use openvaala_protocol::rpc::params::session::{ItemsOrder, ItemsParams};

use super::{describe, find, markdown};
use crate::args::ShowArgs;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, one_line, out};
use crate::start::connect;

/// How many items are asked for at once.
const PAGE: u32 = 1_000;

/// How a conversation is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Text,
    Json,
    Markdown,
}

pub(super) async fn run(dirs: &Dirs, args: ShowArgs) -> Result<ExitCode, CliError> {
    let form = match (args.json, args.markdown) {
        (true, _) => Form::Json,
        (false, true) => Form::Markdown,
        (false, false) => Form::Text,
    };
    let (client, _notices) = connect(dirs).await?;
    let params = GetParams {
        conversation_id: find::id(&client, &args.id).await?,
    };
    let got = client.call::<ConversationGet>(params).await?;
    if begin(&got, form)? {
        items(&client, got.conversation.id, form).await?;
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

/// What stands above the items; `false` once nobody reads any longer.
fn begin(got: &GetResult, form: Form) -> Result<bool, CliError> {
    match form {
        Form::Json => Ok(true),
        Form::Markdown => Ok(out(&markdown::head(&got.conversation))?),
        Form::Text => {
            let title = got.conversation.title.as_deref().unwrap_or("(no title)");
            let turns = match got.turns.len() {
                1 => "1 turn".to_owned(),
                turns => format!("{turns} turns"),
            };
            let (id, title) = (got.conversation.id, one_line(title, 80));
            note(&format!("{id}  {title}  ({turns})"));
            Ok(true)
        }
    }
}

/// Writes page by page.
async fn items(client: &Client, id: ConversationId, form: Form) -> Result<(), CliError> {
    let mut cursor = 0;
    loop {
        let params = ItemsParams {
            conversation_id: id,
            session_id: None,
            order: ItemsOrder::Ascending,
            cursor,
            limit: Some(PAGE),
        };
        let page = client.call::<SessionItems>(params).await?;
        if !write(page.items, form)? {
            return Ok(());
        }
        match page.next {
            Some(next) => cursor = next,
            None => return Ok(()),
        }
    }
}

/// Items of a page by their places; inversions never cross a turn, so large pages are good enough for people.
fn write(mut entries: Vec<Entry>, form: Form) -> Result<bool, CliError> {
    entries.sort_by_key(|entry| match entry {
        Entry::Item { item, .. } => item.head().pos,
        _ => u64::MAX,
    });
    for entry in entries {
        let text = match entry {
            Entry::Item { item, .. } => match form {
                Form::Json => format!("{}\n", item.raw().get()),
                Form::Markdown => markdown::item(&item),
                Form::Text => describe::item(&item),
            },
            // There is no item to show, but nobody shall think that all is there.
            Entry::Damaged { seq, message, .. } => {
                note(&format!(
                    "[entry {seq} is damaged: {}]",
                    one_line(&message, 400)
                ));
                continue;
            }
            _ => continue,
        };
        if !out(&text)? {
            return Ok(false);
        }
    }
    Ok(true)
}
