//! A conversation with the demo script, through the wire.

use std::fs;

use futures::StreamExt;
use openvaala_protocol::client::{Client, Notices};
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{TurnStatus, WorkLocation};
use openvaala_protocol::event::{Entry, Live, ResumeCursor};
use openvaala_protocol::id::{ConversationId, ExecutorId, ItemId};
use openvaala_protocol::item::{AssistantMessage, ItemKind};
use openvaala_protocol::rpc::Notice;
use openvaala_protocol::rpc::method::{
    ConversationCreate, ConversationGet, ConversationList, ConversationSubscribe,
    ConversationUnsubscribe, ServerReindex, SessionItems, SessionSend,
};
use openvaala_protocol::rpc::params::conversation::{
    CreateParams, GetParams, ListParams, SubscribeParams, UnsubscribeParams,
};
use openvaala_protocol::rpc::params::server::{ProgressParams, ReindexParams};
use openvaala_protocol::rpc::params::session::{ItemsOrder, ItemsParams, SendMode, SendParams};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use crate::support::{LONG, Running};

async fn create(server: &Running, client: &Client) -> ConversationId {
    let folder = server.place.dir("work");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("README.md"),
        "# Canary\n\nA folder for tests.\n",
    )
    .unwrap();
    let root = folder.to_str().unwrap().to_owned();
    let executors = vec![WorkLocation {
        executor: ExecutorId::local(),
        root,
    }];
    let params = CreateParams {
        executors,
        ..CreateParams::default()
    };
    client
        .call::<ConversationCreate>(params)
        .await
        .unwrap()
        .conversation
        .id
}

fn input(conversation_id: ConversationId, text: &str) -> SendParams {
    SendParams {
        conversation_id,
        session_id: None,
        item_id: ItemId::from_uuid(Uuid::now_v7()),
        content: vec![Content::text(text)],
        mode: SendMode::Queue,
        output_schema: None,
        approval_mode: None,
    }
}

/// Reads until a turn has ended; gives what came, and the last cursor.
async fn until_turn_end(notices: &mut Notices) -> (Vec<Entry>, String, ResumeCursor) {
    let (mut entries, mut live) = (Vec::new(), String::new());
    loop {
        match timeout(LONG, notices.recv()).await.unwrap().unwrap() {
            Notice::ConversationEntry(told) => {
                let ended =
                    matches!(&told.entry, Entry::Turn { turn, .. } if turn.ended_at.is_some());
                entries.push(told.entry);
                if ended {
                    return (entries, live, told.cursor);
                }
            }
            Notice::ConversationLive(told) => {
                if let Live::Delta(delta) = told.live {
                    live.push_str(&delta.text);
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn kinds(entries: &[Entry]) -> Vec<ItemKind> {
    let kind = |entry: &Entry| match entry {
        Entry::Item { item, .. } => Some(item.head().kind.clone()),
        _ => None,
    };
    entries.iter().filter_map(kind).collect()
}

#[tokio::test]
async fn a_turn_is_seen_from_its_input_to_its_end() {
    let server = Running::start().await;
    let (client, mut notices) = server.client().await;
    let id = create(&server, &client).await;
    let params = SubscribeParams {
        conversation_id: id,
        cursor: None,
    };
    let subscribed = client.call::<ConversationSubscribe>(params).await.unwrap();
    let snapshot = subscribed.snapshot.unwrap();
    assert_eq!((snapshot.conversation.id, snapshot.sessions.len()), (id, 1));

    let sent = client
        .call::<SessionSend>(input(id, "look around"))
        .await
        .unwrap();
    assert!(!sent.duplicate);
    let (entries, live, _) = until_turn_end(&mut notices).await;
    let kinds = kinds(&entries);
    assert_eq!(kinds.first(), Some(&ItemKind::UserMessage));
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| **kind == ItemKind::ToolCall)
            .count(),
        2,
        "{kinds:?}"
    );
    assert_eq!(kinds.last(), Some(&ItemKind::AssistantMessage));
    let last = entries.iter().rev().find_map(|entry| match entry {
        Entry::Item { item, .. } => item.body::<AssistantMessage>(),
        _ => None,
    });
    let text = last.unwrap().unwrap().text;
    assert!(text.contains("Canary"), "{text}");
    assert!(
        live.contains(&text),
        "what was shown live is what was written:\n{live}\n---\n{text}"
    );

    let got = client
        .call::<ConversationGet>(GetParams {
            conversation_id: id,
        })
        .await
        .unwrap();
    let statuses: Vec<TurnStatus> = got.turns.iter().map(|turn| turn.status).collect();
    assert_eq!(statuses, [TurnStatus::Completed]);
    let listed = client
        .call::<ConversationList>(ListParams::default())
        .await
        .unwrap();
    assert_eq!(
        listed
            .conversations
            .iter()
            .map(|listed| listed.id)
            .collect::<Vec<_>>(),
        [id]
    );
    let params = ItemsParams {
        conversation_id: id,
        session_id: None,
        order: ItemsOrder::Ascending,
        cursor: 0,
        limit: Some(1),
    };
    let page = client.call::<SessionItems>(params).await.unwrap();
    assert_eq!(page.items.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn the_answer_to_subscribe_comes_before_its_first_notification() {
    let server = Running::start().await;
    let (client, _notices) = server.client().await;
    let id = create(&server, &client).await;
    client
        .call::<SessionSend>(input(id, "look around"))
        .await
        .unwrap();
    // Subscribing again and again in the middle of a turn: each answer must come before what follows it.
    let mut raw = server.raw().await;
    for _ in 0..50 {
        raw.request("conversation/subscribe", json!({ "conversation_id": id }))
            .await;
    }
    let mut answers = 0;
    while answers < 50 {
        let message = raw.receive().await;
        if message.get("id").is_some() {
            answers += 1;
            assert_eq!(message["id"], answers + 1, "{message}");
            assert!(message.get("result").is_some(), "{message}");
        } else {
            assert!(
                answers > 0,
                "a notification before the first answer: {message}"
            );
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn p_27_with_the_last_cursor_exactly_what_is_missing_comes() {
    let server = Running::start().await;
    let (client, mut notices) = server.client().await;
    let id = create(&server, &client).await;
    let subscribe = |cursor| SubscribeParams {
        conversation_id: id,
        cursor,
    };
    client
        .call::<ConversationSubscribe>(subscribe(None))
        .await
        .unwrap();
    client.call::<SessionSend>(input(id, "one")).await.unwrap();
    let (_, _, cursor) = until_turn_end(&mut notices).await;
    let params = UnsubscribeParams {
        conversation_id: id,
    };
    let result = client
        .call::<ConversationUnsubscribe>(params.clone())
        .await
        .unwrap();
    assert!(result.was_subscribed);
    assert!(
        !client
            .call::<ConversationUnsubscribe>(params)
            .await
            .unwrap()
            .was_subscribed
    );

    // A second client watches what the first one misses.
    let (other, mut seen) = server.client().await;
    other
        .call::<ConversationSubscribe>(subscribe(None))
        .await
        .unwrap();
    client.call::<SessionSend>(input(id, "two")).await.unwrap();
    until_turn_end(&mut seen).await;

    let place = server.stop().await;
    let server = Running::start_in(place).await;
    let (client, _notices) = server.client().await;
    let missing = client
        .call::<ConversationSubscribe>(subscribe(Some(cursor.clone())))
        .await
        .unwrap();
    assert_eq!(missing.snapshot, None);
    let kinds = kinds(&missing.entries);
    let users = kinds
        .iter()
        .filter(|kind| **kind == ItemKind::UserMessage)
        .count();
    assert_eq!((kinds.first(), users), (Some(&ItemKind::UserMessage), 1));
    let again = client
        .call::<ConversationSubscribe>(subscribe(Some(missing.cursor)))
        .await
        .unwrap();
    assert_eq!((again.snapshot, again.entries), (None, Vec::new()));

    let error =
        client.call::<ConversationSubscribe>(subscribe(Some(ResumeCursor("nonsense".to_owned()))));
    assert!(error.await.unwrap_err().to_string().contains("cursor"));
    server.stop().await;
}

#[tokio::test]
async fn an_input_that_is_sent_again_is_taken_once() {
    let server = Running::start().await;
    let (client, mut notices) = server.client().await;
    let id = create(&server, &client).await;
    let params = SubscribeParams {
        conversation_id: id,
        cursor: None,
    };
    client.call::<ConversationSubscribe>(params).await.unwrap();
    let input = input(id, "once");
    assert!(
        !client
            .call::<SessionSend>(input.clone())
            .await
            .unwrap()
            .duplicate
    );
    until_turn_end(&mut notices).await;
    assert!(client.call::<SessionSend>(input).await.unwrap().duplicate);
    let got = client
        .call::<ConversationGet>(GetParams {
            conversation_id: id,
        })
        .await
        .unwrap();
    assert_eq!(got.turns.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn reindex_tells_its_progress_and_counts_every_conversation() {
    let server = Running::start().await;
    let (client, mut notices) = server.client().await;
    for text in ["one", "two", "three"] {
        let id = create(&server, &client).await;
        client.call::<SessionSend>(input(id, text)).await.unwrap();
    }
    let result = client
        .call::<ServerReindex>(ReindexParams {})
        .await
        .unwrap();
    assert_eq!((result.conversations, result.damaged), (3, Vec::new()));
    let mut last = None;
    while let Some(notice) = notices.try_recv() {
        if let Notice::ServerProgress(progress) = notice {
            last = Some(progress);
        }
    }
    let expected = ProgressParams {
        method: "server/reindex".to_owned(),
        done: 3,
        total: 3,
    };
    assert_eq!(last, Some(expected));
    server.stop().await;
}

#[tokio::test]
async fn p_12_a_turn_goes_on_when_its_client_leaves() {
    let server = Running::start().await;
    let (client, _notices) = server.client().await;
    let id = create(&server, &client).await;
    client
        .call::<SessionSend>(input(id, "look around"))
        .await
        .unwrap();
    client.close().await;
    let (client, mut notices) = server.client().await;
    let params = SubscribeParams {
        conversation_id: id,
        cursor: None,
    };
    let snapshot = client
        .call::<ConversationSubscribe>(params)
        .await
        .unwrap()
        .snapshot
        .unwrap();
    let turn = snapshot.sessions[0].turn.clone();
    if turn.is_none_or(|turn| turn.ended_at.is_none()) {
        until_turn_end(&mut notices).await;
    }
    let got = client
        .call::<ConversationGet>(GetParams {
            conversation_id: id,
        })
        .await
        .unwrap();
    let statuses: Vec<TurnStatus> = got.turns.iter().map(|turn| turn.status).collect();
    assert_eq!(statuses, [TurnStatus::Completed]);
    server.stop().await;
}

#[tokio::test]
async fn s_137_a_client_that_does_not_read_slows_neither_the_turn_nor_others() {
    let server = Running::start().await;
    let (client, mut notices) = server.client().await;
    let id = create(&server, &client).await;
    let params = SubscribeParams {
        conversation_id: id,
        cursor: None,
    };
    client.call::<ConversationSubscribe>(params).await.unwrap();
    client
        .call::<SessionSend>(input(id, &"long ".repeat(200_000)))
        .await
        .unwrap();
    until_turn_end(&mut notices).await;
    // It asks for 40 MB, far more than may wait for it, and reads nothing of it.
    let mut deaf = server.raw().await;
    for _ in 0..40 {
        deaf.request("conversation/subscribe", json!({ "conversation_id": id }))
            .await;
    }
    client
        .call::<SessionSend>(input(id, "look around"))
        .await
        .unwrap();
    until_turn_end(&mut notices).await;
    // Once it reads, everything is still there in order.
    let mut answers = 0;
    while answers < 40 {
        let message = timeout(LONG, deaf.socket.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let Message::Text(text) = message else {
            continue;
        };
        let message: serde_json::Value = serde_json::from_str(&text).unwrap();
        answers += usize::from(message.get("result").is_some());
    }
    server.stop().await;
}
