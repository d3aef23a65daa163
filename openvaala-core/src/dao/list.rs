//! The list of conversations: pages of the index, and what of them is asked for.

use openvaala_protocol::conversation::{Conversation, ConversationStatus};
use openvaala_protocol::time::Timestamp;
use openvaala_storage::{Error, ListOptions, Order, RecordPage, RecordStorage, SortBy};

use super::index::{ARCHIVED, CONVERSATION, ROOTS, Row, STATUS, TITLE, status_name, yes_or_no};
use crate::error::RuntimeError;

/// The most conversations that one page may have.
const MAX_PAGE: usize = 1_000;

/// Which page of the list of conversations to read; by default the first 50 of all.
#[derive(Clone, Debug)]
pub struct ListConversations {
    /// Where the last page ended; `None` begins with the last used.
    pub cursor: Option<String>,
    /// How many: 1 to 1,000.
    pub limit: usize,
    /// Which conversations; the same from page to page.
    pub filter: ConversationFilter,
}

impl Default for ListConversations {
    fn default() -> Self {
        Self {
            cursor: None,
            limit: 50,
            filter: ConversationFilter::default(),
        }
    }
}

/// Which conversations are listed: those that pass all that is given; by default all that are not archived.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ConversationFilter {
    /// Those with this status.
    pub status: Option<ConversationStatus>,
    /// Those that work in this directory itself, on any executor.
    pub root: Option<String>,
    /// Those whose title has this text, in any mixture of upper and lower case.
    pub search: Option<String>,
    /// Those in which something was said or done at this time or later.
    pub updated_since: Option<Timestamp>,
    /// Those that are archived; `false` means those that are not.
    pub archived: bool,
}

impl ConversationFilter {
    /// Says it in the terms of the index.
    fn options(&self) -> ListOptions {
        let mut options = ListOptions::default()
            .sort(SortBy::UpdatedAt)
            .order(Order::Descending)
            .filter(ARCHIVED, yes_or_no(self.archived))
            .updated_from(self.updated_since.map(|since| since.as_millis()));
        if let Some(status) = self.status {
            options = options.filter(STATUS, status_name(status));
        }
        if let Some(root) = &self.root {
            options = options.filter(ROOTS, root);
        }
        // Conversations without a title have the empty text, too.
        if let Some(search) = self.search.as_deref().filter(|search| !search.is_empty()) {
            options = options.contains(TITLE, search);
        }
        options
    }
}

/// A page of the list of conversations.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConversationPage {
    /// The conversations, the last used first.
    pub conversations: Vec<Conversation>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
    /// Whether newer changes may be missing: the index is still being brought in step with the log, or cannot be written.
    pub stale: bool,
}

/// Reads a page; rows that cannot be read are passed over.
pub(crate) async fn list(
    records: &dyn RecordStorage,
    options: ListConversations,
) -> Result<ConversationPage, RuntimeError> {
    let ListConversations {
        mut cursor,
        limit,
        filter,
    } = options;
    let limit = limit.clamp(1, MAX_PAGE);
    let mut conversations = Vec::new();
    loop {
        let wanted = limit - conversations.len();
        let page = page(records, filter.options().cursor(cursor).limit(wanted)).await?;
        let rows = page.records.iter().filter_map(Row::parse);
        conversations.extend(rows.map(|row| row.conversation));
        cursor = page.next;
        if cursor.is_none() || conversations.len() == limit {
            break;
        }
    }
    Ok(ConversationPage {
        conversations,
        next: cursor,
        stale: false,
    })
}

async fn page(
    records: &dyn RecordStorage,
    options: ListOptions,
) -> Result<RecordPage, RuntimeError> {
    let page = records.list(CONVERSATION, options).await;
    page.map_err(|error| match error {
        Error::InvalidCursor { .. } => RuntimeError::InvalidInput {
            message: error.to_string(),
        },
        other => other.into(),
    })
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests;
