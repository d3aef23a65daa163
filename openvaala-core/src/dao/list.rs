//! The list of conversations: pages of the index, and what of them is asked for.

use openvaala_protocol::conversation::{Conversation, ConversationStatus};
use openvaala_protocol::time::Timestamp;
use openvaala_storage::{Error, ListOptions, Order, RecordPage, RecordStorage, SortBy};

use super::index::{CONVERSATION, Row};
use crate::error::RuntimeError;

/// The most conversations that one page may have, and how many rows are read at a time.
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

/// Which conversations are listed: those that pass all that is given; by default all.
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
}

impl ConversationFilter {
    fn takes_all(&self) -> bool {
        *self == Self::default()
    }

    fn takes(&self, conversation: &Conversation) -> bool {
        let status = self
            .status
            .is_none_or(|status| conversation.status == status);
        let root = self.root.as_ref().is_none_or(|root| {
            let mut locations = conversation.executors.iter();
            locations.any(|location| location.root == *root)
        });
        let title = self.search.as_ref().is_none_or(|search| {
            let title = conversation.title.as_deref().unwrap_or_default();
            title.to_lowercase().contains(&search.to_lowercase())
        });
        status && root && title && !self.is_before(conversation)
    }

    fn is_before(&self, conversation: &Conversation) -> bool {
        self.updated_since
            .is_some_and(|since| conversation.updated_at < since)
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

/// Reads a page; rows that do not pass the filter are read on over.
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
        let rows = rows(records, cursor, wanted, &filter).await?;
        conversations.extend(rows.taken);
        cursor = rows.next;
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

struct Rows {
    /// At most as many as are wanted.
    taken: Vec<Conversation>,
    /// Where the rows after the last one that was looked at begin.
    next: Option<String>,
}

/// Looks through some rows for at most `wanted` conversations.
///
/// A cursor comes only with a whole page. So if a page has more than are wanted it is read again up to the last one
/// that is, and looked through again, for rows may have moved meanwhile.
async fn rows(
    records: &dyn RecordStorage,
    cursor: Option<String>,
    wanted: usize,
    filter: &ConversationFilter,
) -> Result<Rows, RuntimeError> {
    let mut size = if filter.takes_all() { wanted } else { MAX_PAGE };
    loop {
        let page = page(records, cursor.clone(), size).await?;
        let mut taken = Vec::new();
        let mut ended = false;
        for (place, record) in page.records.iter().enumerate() {
            let Some(conversation) = Row::parse(record).map(|row| row.conversation) else {
                continue;
            };
            // All that follow are older still.
            ended = filter.is_before(&conversation);
            if ended {
                break;
            }
            if filter.takes(&conversation) {
                taken.push((place, conversation));
            }
        }
        if taken.len() > wanted {
            size = taken[wanted - 1].0 + 1;
            continue;
        }
        let next = if ended { None } else { page.next };
        let taken = taken.into_iter().map(|(_, conversation)| conversation);
        return Ok(Rows {
            taken: taken.collect(),
            next,
        });
    }
}

async fn page(
    records: &dyn RecordStorage,
    cursor: Option<String>,
    limit: usize,
) -> Result<RecordPage, RuntimeError> {
    let options = ListOptions::default()
        .sort(SortBy::UpdatedAt)
        .order(Order::Descending)
        .cursor(cursor)
        .limit(limit);
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
