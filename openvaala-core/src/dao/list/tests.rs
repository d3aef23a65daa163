//! Paging through a list of which only a part is asked for.

use openvaala_protocol::conversation::WorkLocation;
use openvaala_protocol::id::{ConversationId, ExecutorId, SessionId};
use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions, SqliteRecordStorage};
use openvaala_storage::{Fingerprint, Record};
use pretty_assertions::assert_eq;
use serde_json::value::to_raw_value;
use uuid::Uuid;

use super::*;
use crate::dao::index::namespaces;

const ROWS: u128 = 40;

fn at(n: u128) -> Timestamp {
    Timestamp::from_millis(1_000 * n as i64)
}

/// Every second one runs, every third one is in `/b`, every fifth one has another title.
fn conversation(n: u128) -> Conversation {
    let root = if n.is_multiple_of(3) { "/b" } else { "/a" };
    let title = if n.is_multiple_of(5) {
        "ÄPFEL"
    } else {
        "pears"
    };
    let status = if n.is_multiple_of(2) {
        ConversationStatus::Running
    } else {
        ConversationStatus::Idle
    };
    Conversation {
        id: ConversationId::from_uuid(Uuid::from_u128(n)),
        title: (n != 1).then(|| title.to_owned()),
        status,
        root_session: SessionId::from_uuid(Uuid::from_u128(n)),
        executors: vec![WorkLocation {
            executor: ExecutorId::local(),
            root: root.to_owned(),
        }],
        created_at: at(0),
        updated_at: at(n),
        damaged: None,
        archived: false,
        forked_from: None,
    }
}

/// The records of forty conversations, the last of them used last, and one that cannot be read.
async fn records() -> SqliteRecordStorage {
    let storage = SqliteDatabase::open(SqliteOptions::in_memory().namespaces(namespaces()))
        .unwrap()
        .records();
    for n in 1..=ROWS {
        let row = Row::new(conversation(n), false, &Fingerprint::new("x"));
        let data = to_raw_value(&row).unwrap();
        let record = Record::new(row.conversation.id.to_string(), 1_000 * n as i64, data);
        storage.set(CONVERSATION, record).await.unwrap();
    }
    let odd = Record::new("odd", 20_500, to_raw_value("no row").unwrap());
    storage.set(CONVERSATION, odd).await.unwrap();
    storage
}

/// All pages one after the other.
async fn all(
    records: &SqliteRecordStorage,
    limit: usize,
    filter: &ConversationFilter,
) -> Vec<u128> {
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let options = ListConversations {
            cursor,
            limit,
            filter: filter.clone(),
        };
        let page = list(records, options).await.unwrap();
        assert!(page.conversations.len() <= limit);
        if page.next.is_some() {
            assert_eq!(
                page.conversations.len(),
                limit,
                "a page that is not full is the last"
            );
        }
        let ids = page.conversations.iter();
        seen.extend(ids.map(|conversation| conversation.id.as_uuid().as_u128()));
        cursor = page.next;
        if cursor.is_none() {
            return seen;
        }
    }
}

#[tokio::test]
async fn pages_of_any_size_have_what_passes_the_filter_once_and_in_order() {
    let records = records().await;
    let status = Some(ConversationStatus::Running);
    let root = Some("/b".to_owned());
    let search = Some("äpf".to_owned());
    let updated_since = Some(at(20));
    let none = ConversationFilter::default();
    type Rule = fn(&u128) -> bool;
    let table: [(ConversationFilter, Rule); 6] = [
        (none.clone(), |_| true),
        (
            ConversationFilter {
                status,
                ..none.clone()
            },
            |n| n.is_multiple_of(2),
        ),
        (
            ConversationFilter {
                root: root.clone(),
                ..none.clone()
            },
            |n| n.is_multiple_of(3),
        ),
        (
            ConversationFilter {
                search: search.clone(),
                ..none.clone()
            },
            |n| n.is_multiple_of(5),
        ),
        (
            ConversationFilter {
                updated_since,
                ..none.clone()
            },
            |n| *n >= 20,
        ),
        (
            ConversationFilter {
                status,
                root,
                search,
                updated_since,
                archived: false,
            },
            |n| n.is_multiple_of(30) && *n >= 20,
        ),
    ];
    for (filter, rule) in table {
        let expected: Vec<u128> = (1..=ROWS).rev().filter(rule).collect();
        for limit in [1, 2, 3, 7, 39, 40, 41, 5_000] {
            let seen = all(&records, limit, &filter).await;
            assert_eq!(seen, expected, "{filter:?} by {limit}");
        }
    }
}

#[tokio::test]
async fn a_filter_that_nothing_passes_gives_one_empty_page() {
    let filter = ConversationFilter {
        root: Some("/".to_owned()),
        ..ConversationFilter::default()
    };
    let options = ListConversations {
        filter,
        ..ListConversations::default()
    };
    let page = list(&records().await, options).await.unwrap();
    let (conversations, next) = (Vec::new(), None);
    assert_eq!(
        page,
        ConversationPage {
            conversations,
            next,
            stale: false,
        }
    );
}

#[tokio::test]
async fn a_cursor_that_no_page_gave_is_the_callers_mistake() {
    let options = ListConversations {
        cursor: Some("yesterday".to_owned()),
        ..ListConversations::default()
    };
    let error = list(&records().await, options).await.unwrap_err();
    assert!(
        matches!(error, RuntimeError::InvalidInput { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains(r#""yesterday""#), "{error}");
}
