//! `openvaala show`.

use std::process::ExitCode;

use openvaala_protocol::client::Client;
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::method::{ConversationGet, ConversationList, SessionItems};
use openvaala_protocol::rpc::params::conversation::{GetParams, ListParams};
use openvaala_protocol::rpc::params::session::{ItemsOrder, ItemsParams};

use super::describe;
use crate::args::ShowArgs;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, one_line, out};
use crate::start::connect;

/// How many items are asked for at once.
const PAGE: u32 = 1_000;
/// The shortest beginning of an id that is looked for.
const MIN_PREFIX: usize = 4;

pub(super) async fn run(dirs: &Dirs, args: ShowArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let id = find(&client, &args.id).await?;
    let params = GetParams {
        conversation_id: id,
    };
    let got = client.call::<ConversationGet>(params).await?;
    if !args.json {
        let title = got.conversation.title.as_deref().unwrap_or("(no title)");
        let turns = match got.turns.len() {
            1 => "1 turn".to_owned(),
            turns => format!("{turns} turns"),
        };
        note(&format!("{id}  {}  ({turns})", one_line(title, 80)));
    }
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

/// Items of a page by their places; inversions never cross a turn, so large pages are good enough for people.
fn write(mut entries: Vec<Entry>, json: bool) -> Result<bool, CliError> {
    entries.sort_by_key(|entry| match entry {
        Entry::Item { item, .. } => item.head().pos,
        _ => u64::MAX,
    });
    for entry in entries {
        let text = match entry {
            Entry::Item { item, .. } if json => format!("{}\n", item.raw().get()),
            Entry::Item { item, .. } => describe::item(&item),
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

/// Finds a conversation by its id or the beginning of it.
async fn find(client: &Client, text: &str) -> Result<ConversationId, CliError> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let text = text.to_ascii_lowercase();
    if text.len() < MIN_PREFIX || !text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return Err(wrong(format!(
            "{text:?} is neither a conversation's id nor the beginning of one"
        )));
    }
    let mut matches = Vec::new();
    let mut cursor = None;
    loop {
        let params = ListParams {
            cursor,
            limit: Some(PAGE),
        };
        let page = client.call::<ConversationList>(params).await?;
        let ids = page
            .conversations
            .iter()
            .map(|conversation| conversation.id);
        matches.extend(ids.filter(|id| id.to_string().starts_with(&text)));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    the_only_one(&text, &matches)
}

fn the_only_one(text: &str, matches: &[ConversationId]) -> Result<ConversationId, CliError> {
    match matches {
        [id] => Ok(*id),
        [] => Err(wrong(format!("no conversation's id begins with {text:?}"))),
        several => {
            let shown: Vec<String> = several.iter().take(5).map(ToString::to_string).collect();
            let count = several.len();
            let message = format!("the ids of {count} conversations begin with {text:?}");
            Err(wrong(message).because_text(format!("among them {}", shown.join(", "))))
        }
    }
}

fn wrong(what: String) -> CliError {
    CliError::user(what).hint("`openvaala list` shows the ids; at least 4 characters of one do")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pretty_assertions::assert_eq;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_beginning_of_an_id_must_fit_one_conversation_only() {
        let [a, b] = [0x11, 0x12].map(|n| ConversationId::from_uuid(Uuid::from_u128(n << 120)));
        assert_eq!(the_only_one("1100", &[a]).unwrap(), a);
        assert_snapshot!(the_only_one("beef", &[]).unwrap_err().text(), @r#"
        error: no conversation's id begins with "beef"
        hint: `openvaala list` shows the ids; at least 4 characters of one do
        "#);
        assert_snapshot!(the_only_one("1", &[a, b]).unwrap_err().text(), @r#"
        error: the ids of 2 conversations begin with "1"
          because: among them 11000000-0000-0000-0000-000000000000, 12000000-0000-0000-0000-000000000000
        hint: `openvaala list` shows the ids; at least 4 characters of one do
        "#);
    }
}
