//! Deletion, the trash and the check, through the wire.

use openvaala_protocol::client::{Client, ClientError, Notices};
use openvaala_protocol::content::Content;
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ConversationId, ItemId};
use openvaala_protocol::rpc::method::{
    ConversationCreate, ConversationDelete, ConversationGet, ConversationList, ConversationRestore,
    ConversationSubscribe, ServerCheck, ServerStatus, SessionSend, TrashEmpty, TrashList,
};
use openvaala_protocol::rpc::params::check::{CheckParams, FindingKind};
use openvaala_protocol::rpc::params::conversation::{
    CreateParams, DeleteParams, DeletedParams, GetParams, ListParams, RestoreParams,
    SubscribeParams,
};
use openvaala_protocol::rpc::params::server::{ProgressParams, StatusParams};
use openvaala_protocol::rpc::params::session::{SendMode, SendParams};
use openvaala_protocol::rpc::params::trash;
use openvaala_protocol::rpc::{ErrorCode, Method, Notice};
use pretty_assertions::assert_eq;
use tokio::time::timeout;
use uuid::Uuid;

use crate::support::{LONG, Running};

/// A conversation in which a turn has ended, and to which the client has subscribed.
async fn used(client: &Client, notices: &mut Notices) -> ConversationId {
    let created = client
        .call::<ConversationCreate>(CreateParams::default())
        .await;
    let conversation_id = created.unwrap().conversation.id;
    let params = SubscribeParams {
        conversation_id,
        cursor: None,
    };
    client.call::<ConversationSubscribe>(params).await.unwrap();
    let params = SendParams {
        conversation_id,
        session_id: None,
        item_id: ItemId::from_uuid(Uuid::now_v7()),
        content: vec![Content::text("look around")],
        mode: SendMode::Queue,
        output_schema: None,
        approval_mode: None,
    };
    client.call::<SessionSend>(params).await.unwrap();
    loop {
        let notice = timeout(LONG, notices.recv()).await.unwrap().unwrap();
        if let Notice::ConversationEntry(told) = notice
            && let Entry::Turn { turn, .. } = told.entry
            && turn.ended_at.is_some()
        {
            return conversation_id;
        }
    }
}

async fn refused<M: Method>(client: &Client, params: M::Params) -> Option<ErrorCode> {
    match client.call::<M>(params).await {
        Err(ClientError::Rpc(error)) => error.kind(),
        _ => None,
    }
}

async fn trashed(client: &Client) -> Vec<ConversationId> {
    let listed = client
        .call::<TrashList>(trash::ListParams {})
        .await
        .unwrap();
    listed.conversations.iter().map(|it| it.id).collect()
}

#[tokio::test]
async fn a_conversation_goes_to_the_trash_whoever_watches_is_told_and_it_comes_back() {
    let server = Running::start().await;
    let (client, mut notices) = server.client().await;
    let conversation_id = used(&client, &mut notices).await;
    let got = client
        .call::<ConversationGet>(GetParams { conversation_id })
        .await
        .unwrap();
    let deleted = client
        .call::<ConversationDelete>(DeleteParams { conversation_id })
        .await;
    assert!(deleted.unwrap().in_trash);
    let told = loop {
        match timeout(LONG, notices.recv()).await.unwrap().unwrap() {
            Notice::ConversationDeleted(told) => break told,
            Notice::ConversationEntry(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(told, DeletedParams { conversation_id });
    assert_eq!(trashed(&client).await, [conversation_id]);
    let listed = client
        .call::<ConversationList>(ListParams::default())
        .await
        .unwrap();
    assert_eq!(listed.conversations, []);
    client
        .call::<ConversationRestore>(RestoreParams { conversation_id })
        .await
        .unwrap();
    let again = client
        .call::<ConversationGet>(GetParams { conversation_id })
        .await
        .unwrap();
    assert_eq!(again, got);
    assert_eq!(trashed(&client).await, []);
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_there_has_an_error_of_its_own() {
    let server = Running::start().await;
    let (client, mut notices) = server.client().await;
    let here = used(&client, &mut notices).await;
    let unknown = ConversationId::from_uuid(Uuid::now_v7());
    let not_found = Some(ErrorCode::ConversationNotFound);
    let delete = DeleteParams {
        conversation_id: unknown,
    };
    assert_eq!(
        refused::<ConversationDelete>(&client, delete).await,
        not_found
    );
    for conversation_id in [unknown, here] {
        let restore = RestoreParams { conversation_id };
        assert_eq!(
            refused::<ConversationRestore>(&client, restore).await,
            not_found
        );
        let empty = trash::EmptyParams {
            conversation_ids: vec![conversation_id],
            older_than_seconds: None,
        };
        assert_eq!(refused::<TrashEmpty>(&client, empty).await, not_found);
    }
    let check = CheckParams {
        conversation_id: Some(unknown),
        repair: false,
    };
    assert_eq!(refused::<ServerCheck>(&client, check).await, not_found);
    client
        .call::<ConversationDelete>(DeleteParams {
            conversation_id: here,
        })
        .await
        .unwrap();
    let old = trash::EmptyParams {
        conversation_ids: Vec::new(),
        older_than_seconds: Some(3_600),
    };
    assert_eq!(client.call::<TrashEmpty>(old).await.unwrap().removed, []);
    let all = trash::EmptyParams::default();
    let removed = client.call::<TrashEmpty>(all).await.unwrap().removed;
    assert_eq!(removed.iter().map(|it| it.id).collect::<Vec<_>>(), [here]);
    assert_eq!(trashed(&client).await, []);
    server.stop().await;
}

/// I-4, in the check and in the status.
#[tokio::test]
async fn a_repair_goes_through_the_server_and_its_status_names_what_was_cut() {
    let server = Running::start().await;
    let (client, mut notices) = server.client().await;
    let id = used(&client, &mut notices).await;
    let planted = server
        .place
        .dir("data")
        .join(format!("conversations/{id}/other.jsonl"));
    std::fs::write(&planted, b"{\"seq\":1,").unwrap();
    let params = |repair| CheckParams {
        conversation_id: None,
        repair,
    };
    let found = client.call::<ServerCheck>(params(false)).await.unwrap();
    assert_eq!(
        (found.conversations, found.findings.len()),
        (1, 1),
        "{found:?}"
    );
    assert_eq!(found.findings[0].kind, FindingKind::TornTail);
    assert!(!found.findings[0].repaired);
    let repaired = client.call::<ServerCheck>(params(true)).await.unwrap();
    assert!(repaired.findings[0].repaired, "{repaired:?}");
    assert_eq!(
        client
            .call::<ServerCheck>(params(false))
            .await
            .unwrap()
            .findings,
        []
    );
    let status = client.call::<ServerStatus>(StatusParams {}).await.unwrap();
    let named = |line: &String| {
        line.contains(&format!("conversations/{id}/other")) && line.contains("9 bytes at 0")
    };
    assert_eq!(
        status.degraded.iter().filter(|line| named(line)).count(),
        1,
        "{:?}",
        status.degraded
    );
    let mut last = None;
    while let Some(notice) = notices.try_recv() {
        if let Notice::ServerProgress(progress) = notice {
            last = Some(progress);
        }
    }
    let expected = ProgressParams {
        method: ServerCheck::NAME.to_owned(),
        done: 1,
        total: 1,
    };
    assert_eq!(last, Some(expected));
    server.stop().await;
}
