//! Finds the conversation that somebody means.

use openvaala_protocol::client::Client;
use openvaala_protocol::conversation::Conversation;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::method::{ConversationGet, ConversationList, TrashList};
use openvaala_protocol::rpc::params::conversation::{GetParams, ListParams};
use openvaala_protocol::rpc::params::trash::ListParams as TrashListParams;

use crate::error::CliError;

/// How many conversations are asked for at once.
const PAGE: u32 = 1_000;
/// The shortest beginning of an id that is looked for.
const MIN_PREFIX: usize = 4;

/// Finds a conversation by its id or the beginning of it.
///
/// A whole id is given back as it is, whether there is such a conversation or not.
pub(super) async fn id(client: &Client, text: &str) -> Result<ConversationId, CliError> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let text = prefix(text)?;
    let mut matches = Vec::new();
    for archived in [false, true] {
        let mut params = ListParams {
            limit: Some(PAGE),
            archived,
            ..ListParams::default()
        };
        loop {
            let page = client.call::<ConversationList>(params.clone()).await?;
            let ids = page
                .conversations
                .iter()
                .map(|conversation| conversation.id);
            matches.extend(ids.filter(|id| id.to_string().starts_with(&text)));
            params.cursor = page.next;
            if params.cursor.is_none() {
                break;
            }
        }
    }
    the_only_one(&text, &matches)
}

/// Finds a conversation in the trash by its id or the beginning of it.
pub(super) async fn trashed(client: &Client, text: &str) -> Result<ConversationId, CliError> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let text = prefix(text)?;
    let listed = client.call::<TrashList>(TrashListParams::default()).await?;
    let ids = listed.conversations.iter().map(|it| it.id);
    let matches: Vec<ConversationId> = ids.filter(|id| id.to_string().starts_with(&text)).collect();
    the_only_one(&text, &matches).map_err(in_trash)
}

/// An error about what is looked for in the trash.
pub(super) fn in_trash(error: CliError) -> CliError {
    error.hint("`openvaala trash list` shows what can be restored")
}

fn prefix(text: &str) -> Result<String, CliError> {
    let text = text.to_ascii_lowercase();
    if text.len() < MIN_PREFIX || !text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return Err(wrong(format!(
            "{text:?} is neither a conversation's id nor the beginning of one"
        )));
    }
    Ok(text)
}

/// Finds a conversation by its id or the beginning of it, and gives its state.
pub(super) async fn conversation(client: &Client, text: &str) -> Result<Conversation, CliError> {
    let conversation_id = id(client, text).await?;
    let params = GetParams { conversation_id };
    let got = client.call::<ConversationGet>(params).await?;
    Ok(got.conversation)
}

/// The conversation that was last used in a folder.
pub(super) async fn last_in(client: &Client, folder: String) -> Result<Conversation, CliError> {
    let params = ListParams {
        limit: Some(1),
        root: Some(folder.clone()),
        ..ListParams::default()
    };
    let page = client.call::<ConversationList>(params).await?;
    page.conversations.into_iter().next().ok_or_else(|| {
        CliError::user(format!("there is no conversation yet in {folder}")).hint(
            "`openvaala list` shows those in other folders; --resume ID goes on with one of them",
        )
    })
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
