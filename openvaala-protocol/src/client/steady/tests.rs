use std::sync::Arc;
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::watch::EVENTS;
use super::{SteadyClient, SteadyOptions, WatchEvent};
use crate::client::tests::server::{Manner, ServerEnd, TestServer};
use crate::client::{Client, ClientError};
use crate::id::ConversationId;
use crate::rpc::method::{ConversationUnsubscribe, SessionUncompact};
use crate::rpc::params::compaction::UncompactParams;
use crate::rpc::params::conversation::{UnsubscribeParams, UnsubscribeResult};

const CONVERSATION: &str = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";
const SESSION: &str = "0192d3f5-8c1e-7a5b-9c2d-000000000001";
const TIME: &str = "2026-01-02T03:04:05.006Z";

fn conversation() -> ConversationId {
    CONVERSATION.parse().unwrap()
}

/// A client whose first connection is open, and the server's end of it.
async fn connected(options: SteadyOptions) -> (TestServer, SteadyClient, ServerEnd) {
    let mut server = TestServer::start(Manner::Right).await;
    let locate = server.options();
    let (client, socket) = tokio::join!(SteadyClient::connect(locate, options), next(&mut server));
    (server, client.unwrap(), socket)
}

/// The next connection, initialized.
async fn next(server: &mut TestServer) -> ServerEnd {
    let mut socket = server.socket().await;
    socket.initialize().await;
    socket
}

fn unsubscribe() -> UnsubscribeParams {
    UnsubscribeParams {
        conversation_id: conversation(),
    }
}

/// An answer to a subscription: a snapshot of one session whose log has entries up to a number.
fn snapshot(last: u64) -> Value {
    json!({
        "snapshot": {
            "conversation": {
                "id": CONVERSATION, "title": null, "status": "idle", "root_session": SESSION,
                "executors": [], "created_at": TIME, "updated_at": TIME, "damaged": null,
            },
            "sessions": [{
                "session": {
                    "id": SESSION, "conversation_id": CONVERSATION, "parent": null, "path": "main",
                    "agent": null, "model": { "provider": "demo", "model": "demo" }, "status": "idle",
                    "active_turn": null, "pending": [], "held": false, "usage": {},
                    "created_at": TIME, "updated_at": TIME,
                },
                "turn": null,
                "items": (1..=last).map(line).collect::<Vec<_>>(),
                "before": null,
            }],
        },
        "entries": [], "partials": [], "cursor": format!("at {last}"),
    })
}

fn line(seq: u64) -> Value {
    json!({ "damaged": { "seq": seq, "session_id": SESSION, "message": "x" } })
}

fn missed(lines: impl IntoIterator<Item = u64>, cursor: &str) -> Value {
    let entries: Vec<Value> = lines.into_iter().map(line).collect();
    json!({ "snapshot": null, "entries": entries, "partials": [], "cursor": cursor })
}

fn entry(seq: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "conversation/entry", "params": {
        "conversation_id": CONVERSATION, "entry": line(seq), "cursor": format!("at {seq}") } })
}

fn shown(event: Option<WatchEvent>) -> String {
    match event {
        Some(WatchEvent::Entry(entry)) => {
            format!("{entry:?}").split(',').next().unwrap().to_owned()
        }
        Some(WatchEvent::Lost { .. }) => "Lost".to_owned(),
        Some(event) => format!("{event:?}"),
        None => "nothing more".to_owned(),
    }
}

#[tokio::test]
async fn a_watch_goes_on_where_it_was_over_a_lost_connection() {
    let (mut server, client, mut socket) = connected(SteadyOptions::default()).await;
    let mut watch = client.watch(conversation()).unwrap();
    let request = socket.request().await;
    assert_eq!(
        request["params"],
        json!({ "conversation_id": CONVERSATION, "cursor": null })
    );
    socket.result(&request, snapshot(2)).await;
    socket.say(entry(3)).await;
    let mut seen = vec![shown(watch.next().await), shown(watch.next().await)];
    drop(socket);

    let mut socket = next(&mut server).await;
    let request = socket.request().await;
    assert_eq!(
        request["params"],
        json!({ "conversation_id": CONVERSATION, "cursor": "at 3" })
    );
    socket.result(&request, missed([4, 5], "at 5")).await;
    // Told twice is taken once.
    socket.say(entry(5)).await;
    socket.say(entry(6)).await;
    for _ in 0..6 {
        seen.push(shown(watch.next().await));
    }
    let told = [
        "Snapshot",
        "Damaged { seq: 3",
        "Lost",
        "Damaged { seq: 4",
        "Damaged { seq: 5",
        "Back",
    ];
    assert_eq!(seen[..6], told);
    let view = watch.view().unwrap();
    let session = SESSION.parse().unwrap();
    assert_eq!(
        serde_json::to_value(view.entries(session).collect::<Vec<_>>()).unwrap(),
        json!((1..=6).map(line).collect::<Vec<_>>())
    );
    assert_eq!(view.cursor().0, "at 6");
}

#[tokio::test]
async fn after_a_gap_the_watch_subscribes_again_on_the_same_connection() {
    let (_server, client, mut socket) = connected(SteadyOptions::default()).await;
    let mut watch = client.watch(conversation()).unwrap();
    let request = socket.request().await;
    socket.result(&request, snapshot(1)).await;
    socket
        .say(
            json!({ "jsonrpc": "2.0", "method": "conversation/gap", "params": {
            "conversation_id": CONVERSATION, "reason": "too slow" } }),
        )
        .await;
    let request = socket.request().await;
    assert_eq!(request["params"]["cursor"], "at 1");
    socket.result(&request, missed([2], "at 2")).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(shown(watch.next().await));
    }
    assert_eq!(seen, ["Snapshot", "Damaged { seq: 2", "Back"]);
}

#[tokio::test]
async fn a_server_that_leaves_something_out_is_asked_for_all_of_it() {
    let (mut server, client, mut socket) = connected(SteadyOptions::default()).await;
    let mut watch = client.watch(conversation()).unwrap();
    let request = socket.request().await;
    socket.result(&request, snapshot(1)).await;
    socket.say(entry(3)).await;
    assert_eq!(shown(watch.next().await), "Snapshot");
    let (told, socket) = tokio::join!(watch.next(), async {
        // The client closes this connection and opens another.
        drop(socket);
        let mut socket = next(&mut server).await;
        let request = socket.request().await;
        assert_eq!(request["params"]["cursor"], Value::Null);
        socket.result(&request, snapshot(3)).await;
        socket
    });
    assert_eq!(shown(told), "Lost");
    assert_eq!(shown(watch.next().await), "Snapshot");
    drop(socket);
}

#[tokio::test]
async fn a_call_whose_answer_is_lost_is_made_again_only_if_that_does_no_harm() {
    let (mut server, client, mut socket) = connected(SteadyOptions::default()).await;
    let again = client.call::<ConversationUnsubscribe>(unsubscribe());
    let serve = async {
        socket.request().await;
        drop(socket);
        let mut socket = next(&mut server).await;
        let request = socket.request().await;
        socket
            .result(&request, json!({ "was_subscribed": true }))
            .await;
        socket
    };
    let (result, mut socket) = tokio::join!(again, serve);
    assert_eq!(
        result.unwrap(),
        UnsubscribeResult {
            was_subscribed: true
        }
    );

    let once = client.call::<SessionUncompact>(UncompactParams {
        conversation_id: conversation(),
        session_id: None,
    });
    let (result, ()) = tokio::join!(once, async {
        socket.request().await;
        drop(socket);
    });
    assert!(
        matches!(result, Err(ClientError::Disconnected { sent: true, .. })),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_call_waits_for_the_connection_and_fails_when_there_will_be_none() {
    let options = SteadyOptions::default().with_patience(Duration::from_millis(1));
    let (server, client, socket) = connected(options).await;
    drop((server, socket));
    let error = client
        .call::<ConversationUnsubscribe>(unsubscribe())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ClientError::Disconnected { sent: false, reason }
            if reason.contains("did not come back within 1ms")),
        "{error}"
    );
    assert!(client.watch(conversation()).is_err());
}

#[tokio::test]
async fn a_watch_that_nobody_takes_from_is_told_what_it_missed_later() {
    let (_server, client, mut socket) = connected(SteadyOptions::default()).await;
    let mut watch = client.watch(conversation()).unwrap().keeping(2);
    let request = socket.request().await;
    socket.result(&request, snapshot(0)).await;
    let most = EVENTS as u64;
    for seq in 1..=most + 5 {
        socket.say(entry(seq)).await;
    }
    let request = socket.request().await;
    assert_eq!(request["method"], "conversation/unsubscribe");
    socket
        .result(&request, json!({ "was_subscribed": true }))
        .await;
    let mut events = 0;
    let (last, _socket) = tokio::join!(
        async {
            loop {
                let told = shown(watch.next().await);
                events += 1;
                if told == "Back" {
                    return watch.view().unwrap().cursor().0.clone();
                }
            }
        },
        async {
            let request = socket.request().await;
            // The snapshot took a place.
            assert_eq!(request["params"]["cursor"], format!("at {}", most - 1));
            socket
                .result(&request, missed(most..=most + 5, "the end"))
                .await;
            socket
        }
    );
    assert_eq!((events, last.as_str()), (most + 7, "the end"));
}

#[tokio::test]
async fn a_watch_that_is_dropped_is_unsubscribed_and_a_close_ends_all() {
    let (server, client, mut socket) = connected(SteadyOptions::default()).await;
    let watch = client.watch(conversation()).unwrap();
    let request = socket.request().await;
    socket.result(&request, snapshot(0)).await;
    drop(watch);
    let request = socket.request().await;
    assert_eq!(request["method"], "conversation/unsubscribe");
    socket
        .result(&request, json!({ "was_subscribed": true }))
        .await;

    let mut watch = client.watch(conversation()).unwrap();
    let request = socket.request().await;
    let gone = json!({ "code": -32010, "message": "there is no such conversation" });
    socket.error(&request, gone).await;
    let told = watch.next().await;
    assert!(
        matches!(
            told,
            Some(WatchEvent::Ended {
                error: ClientError::Rpc(_)
            })
        ),
        "{told:?}"
    );
    assert!(watch.next().await.is_none());

    let other = client.clone();
    let ((), _) = tokio::join!(client.close(), async {
        // The close frame is answered by whoever reads on.
        while futures::StreamExt::next(&mut socket.socket)
            .await
            .is_some_and(|m| m.is_ok())
        {}
    });
    assert!(!other.is_connected());
    drop(server);
}

#[tokio::test]
async fn an_open_connection_can_be_made_steady() {
    let mut server = TestServer::start(Manner::Right).await;
    let (open, _socket) = tokio::join!(Client::connect(server.options()), async {
        let mut socket = server.socket().await;
        socket.initialize().await;
        socket
    });
    let client = SteadyClient::with(
        Arc::new(server.options()),
        SteadyOptions::default(),
        open.unwrap(),
    );
    assert!(client.is_connected());
}
