//! New conversations whose id the caller has chosen: asking again makes no second one.

use std::path::Path;

use futures::future::join_all;
use openvaala_core::protocol::id::{ConversationId, SessionId};
use openvaala_core::{
    ConversationHandle, ForkConversation, Input, NewConversation, Runtime, RuntimeError,
};
use pretty_assertions::assert_eq;
use uuid::Uuid;

use super::script::{Script, builder, items, turn_end};

async fn runtime(data: &Path) -> Runtime {
    let (script, _requests) = Script::new(Vec::new());
    builder(script).data_dir(data).build().await.unwrap()
}

fn new_id() -> ConversationId {
    ConversationId::from_uuid(Uuid::now_v7())
}

fn with(id: ConversationId) -> NewConversation {
    NewConversation::default().with_id(Some(id))
}

async fn talk(conversation: &ConversationHandle, text: &str) {
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text(text)).await.unwrap();
    turn_end(&mut events).await;
}

async fn root(conversation: &ConversationHandle) -> SessionId {
    conversation.details().await.unwrap().sessions[0].id
}

#[tokio::test]
async fn a_conversation_of_a_chosen_id_is_created_once_however_often_it_is_asked_for() {
    let data = tempfile::tempdir().unwrap();
    let first = runtime(data.path()).await;
    let id = new_id();
    let asked = join_all((0..20).map(|_| first.create(with(id)))).await;
    let mut roots = Vec::new();
    for conversation in asked {
        let conversation = conversation.unwrap();
        assert_eq!(conversation.id(), id);
        roots.push(root(&conversation).await);
    }
    roots.dedup();
    assert_eq!(roots.len(), 1);

    let conversation = first.open(id).await.unwrap();
    talk(&conversation, "remember this").await;
    let said = items(&conversation).await;
    drop(conversation);
    first.shutdown().await;
    drop(first);
    // What is asked for besides does not change the one that there is.
    let second = runtime(data.path()).await;
    let again = second.create(with(id).with_agent("nobody")).await.unwrap();
    assert_eq!((root(&again).await, items(&again).await), (roots[0], said));
}

#[tokio::test]
async fn an_id_whose_creation_was_refused_is_free() {
    let data = tempfile::tempdir().unwrap();
    let runtime = runtime(data.path()).await;
    let id = new_id();
    let wrong = with(id).with_agent("nobody");
    assert!(runtime.create(wrong).await.is_err());
    let refused = runtime.open(id).await.unwrap_err();
    assert!(
        matches!(refused, RuntimeError::ConversationNotFound { .. }),
        "{refused:?}"
    );
    assert_eq!(runtime.create(with(id)).await.unwrap().id(), id);
}

#[tokio::test]
async fn the_id_of_a_deleted_conversation_is_not_taken_again() {
    let data = tempfile::tempdir().unwrap();
    let runtime = runtime(data.path()).await;
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    talk(&conversation, "forget this").await;
    let id = conversation.id();
    drop(conversation);
    runtime.delete_conversation(id).await.unwrap();
    let refused = runtime.create(with(id)).await.unwrap_err();
    assert!(
        matches!(refused, RuntimeError::InTrashAlready { id: named } if named == id),
        "{refused:?}"
    );
    runtime.restore_conversation(id).await.unwrap();
    assert_eq!(
        items(&runtime.create(with(id)).await.unwrap()).await.len(),
        2
    );
}

#[tokio::test]
async fn a_fork_to_a_chosen_id_is_made_once_however_often_it_is_asked_for() {
    let data = tempfile::tempdir().unwrap();
    let runtime = runtime(data.path()).await;
    let source = runtime.create(NewConversation::default()).await.unwrap();
    talk(&source, "the beginning").await;
    let to = new_id();
    let fork = || ForkConversation::of(source.id()).to(Some(to));
    let asked = join_all((0..8).map(|_| runtime.fork(fork()))).await;
    for forked in asked {
        assert_eq!(forked.unwrap().id(), to);
    }
    let forked = runtime.open(to).await.unwrap();
    let copied = items(&forked).await;
    assert_eq!(copied, items(&source).await);
    talk(&forked, "and on").await;
    let more = items(&forked).await.len();
    assert_eq!(
        items(&runtime.fork(fork()).await.unwrap()).await.len(),
        more
    );
}
