pub(crate) mod server;

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use self::server::{Manner, ServerEnd, TestServer, initialize_result};
use super::notices::notice_queue;
use super::{Client, ClientError, ConnectOptions, Notices, shut_down};
use crate::PROTOCOL_VERSION;
use crate::handshake::Token;
use crate::rpc::method::{ConversationUnsubscribe, ProviderTest, ServerStatus};
use crate::rpc::params::conversation::{UnsubscribeParams, UnsubscribeResult};
use crate::rpc::params::provider::TestParams;
use crate::rpc::params::server::{ProgressParams, StatusParams, StoppingParams};
use crate::rpc::{ErrorCode, Notice, RpcError};

/// A connected client and the server's end of its socket.
async fn connected() -> (Client, Notices, ServerEnd) {
    let mut server = TestServer::start(Manner::Right).await;
    let (connected, socket) = tokio::join!(Client::connect(server.options()), async {
        let mut socket = server.socket().await;
        socket.initialize().await;
        socket
    });
    let (client, notices) = connected.unwrap();
    (client, notices, socket)
}

/// How connecting to a server of that manner fails.
async fn refusal(manner: Manner) -> ClientError {
    let server = TestServer::start(manner).await;
    Client::connect(server.options()).await.unwrap_err()
}

fn unsubscribe() -> UnsubscribeParams {
    let conversation_id = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d".parse().unwrap();
    UnsubscribeParams { conversation_id }
}

fn stopping(reason: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "server/stopping", "params": { "reason": reason } })
}

#[tokio::test]
async fn a_client_connects_initializes_and_calls() {
    let mut server = TestServer::start(Manner::Right).await;
    let options = server.options();
    let work = async {
        let (client, _notices) = Client::connect(options).await.unwrap();
        assert_eq!(client.initialized().server.name, "test-server");
        client
            .call::<ConversationUnsubscribe>(unsubscribe())
            .await
            .unwrap()
    };
    let serve = async {
        let mut socket = server.socket().await;
        let first = socket.initialize().await;
        let second = socket.request().await;
        socket
            .result(&second, json!({ "was_subscribed": true }))
            .await;
        (socket, first, second)
    };
    let (result, (_socket, first, second)) = tokio::join!(work, serve);
    assert_eq!(
        result,
        UnsubscribeResult {
            was_subscribed: true
        }
    );
    assert_eq!(
        [first, second],
        [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocol_version": PROTOCOL_VERSION, "client": { "name": "test", "version": "1" } } }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "conversation/unsubscribe", "params": {
                "conversation_id": "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d" } }),
        ]
    );
}

#[tokio::test]
async fn a_server_with_another_token_is_the_wrong_server() {
    let server = TestServer::start(Manner::Right).await;
    let options = ConnectOptions {
        credential: Token::generate().unwrap().into(),
        ..server.options()
    };
    let error = Client::connect(options).await.unwrap_err();
    assert!(
        matches!(error, ClientError::WrongServer { .. }),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        format!(
            "the process at {} does not hold the token: its proof is wrong",
            server.address
        )
    );
}

#[tokio::test]
async fn a_process_that_is_no_openvaala_is_the_wrong_server() {
    let error = refusal(Manner::RefuseChallenge(404)).await;
    assert!(
        matches!(error, ClientError::WrongServer { .. }),
        "{error:?}"
    );

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = TestServer::start(Manner::Right).await.options();
    options.address = listener.local_addr().unwrap().to_string();
    let (error, ()) = tokio::join!(Client::connect(options), async {
        let (mut tcp, _) = listener.accept().await.unwrap();
        tcp.write_all(b"220 mail.example.org ESMTP\r\n")
            .await
            .unwrap();
        // Until the client goes away.
        let _ = tcp.read_to_end(&mut Vec::new()).await;
    });
    let error = error.unwrap_err();
    assert!(
        matches!(error, ClientError::WrongServer { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_upgrade_answered_with_401_is_a_wrong_token() {
    let error = refusal(Manner::RefuseUpgrade(401)).await;
    assert!(
        matches!(&error, ClientError::WrongToken { reason, .. } if reason == "go away"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_full_server_rejects_with_its_status_and_reason() {
    for manner in [Manner::RefuseChallenge(503), Manner::RefuseUpgrade(503)] {
        let error = refusal(manner).await;
        assert!(
            matches!(&error, ClientError::Rejected { status: 503, reason, .. } if reason == "go away"),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn an_address_without_a_listener_refuses() {
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let mut options = TestServer::start(Manner::Right).await.options();
    options.address = free.to_string();
    let error = Client::connect(options).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn a_silent_listener_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = TestServer::start(Manner::Right).await.options();
    options.address = listener.local_addr().unwrap().to_string();
    let error = Client::connect(options.with_timeout(Duration::from_millis(20)))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error:?}");
}

#[tokio::test]
async fn another_version_is_a_mismatch_that_says_what_to_do() {
    let mut server = TestServer::start(Manner::Right).await;
    let (connected, _socket) = tokio::join!(Client::connect(server.options()), async {
        let mut socket = server.socket().await;
        let request = socket.request().await;
        socket.error(&request, mismatch()).await;
        socket
    });
    let error = connected.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the server speaks protocol version \"7.0\", this client {PROTOCOL_VERSION:?}: \
             run `openvaala serve stop` and retry"
        )
    );
}

#[tokio::test]
async fn a_server_of_another_version_can_be_shut_down() {
    let mut server = TestServer::start(Manner::Right).await;
    let (result, method) = tokio::join!(shut_down(server.options(), Duration::ZERO), async {
        let mut socket = server.socket().await;
        let request = socket.request().await;
        socket.error(&request, mismatch()).await;
        let request = socket.request().await;
        socket.result(&request, json!({ "pid": 42 })).await;
        while let Some(Ok(_)) = socket.socket.next().await {}
        request["method"].clone()
    });
    assert_eq!(
        (result.unwrap().pid, method),
        (42, json!("server/shutdown"))
    );
}

/// What a server of version 7.0 answers to our `initialize`.
fn mismatch() -> Value {
    let mut error = serde_json::to_value(RpcError::version_mismatch(PROTOCOL_VERSION)).unwrap();
    error["data"]["protocol_version"] = json!("7.0");
    error
}

#[tokio::test]
async fn an_error_of_the_server_keeps_its_code_and_message() {
    let (client, _notices, mut socket) = connected().await;
    let (result, ()) = tokio::join!(client.call::<ServerStatus>(StatusParams {}), async {
        let request = socket.request().await;
        socket
            .error(
                &request,
                json!({ "code": -32005, "message": "too much to do" }),
            )
            .await;
    });
    let Err(ClientError::Rpc(error)) = result else {
        panic!("{result:?}")
    };
    assert_eq!(
        (error.kind(), &*error.message),
        (Some(ErrorCode::Overloaded), "too much to do")
    );
}

#[tokio::test]
async fn answers_in_any_order_reach_their_callers() {
    let (client, _notices, mut socket) = connected().await;
    let test = |name: &str| {
        client.call::<ProviderTest>(TestParams {
            name: name.to_owned(),
            model: None,
        })
    };
    let (first, second, ()) = tokio::join!(test("a"), test("b"), async {
        let requests = [socket.request().await, socket.request().await];
        for request in requests.iter().rev() {
            let result = json!({ "ok": true, "message": request["params"]["name"], "millis": 1 });
            socket.result(request, result).await;
        }
    });
    assert_eq!(
        (first.unwrap().message, second.unwrap().message),
        ("a".to_owned(), "b".to_owned())
    );
}

#[tokio::test]
async fn a_sent_call_is_told_apart_from_one_that_was_not_sent() {
    let (client, mut notices, mut socket) = connected().await;
    let (result, ()) = tokio::join!(client.call::<ServerStatus>(StatusParams {}), async {
        socket.request().await;
        drop(socket);
    });
    assert!(
        matches!(result, Err(ClientError::Disconnected { sent: true, .. })),
        "{result:?}"
    );
    let result = client.call::<ServerStatus>(StatusParams {}).await;
    assert!(
        matches!(result, Err(ClientError::Disconnected { sent: false, .. })),
        "{result:?}"
    );
    assert!(notices.recv().await.is_none());
}

#[tokio::test]
async fn the_reason_of_a_close_frame_is_told() {
    let (client, _notices, mut socket) = connected().await;
    let frame = CloseFrame {
        code: CloseCode::Size,
        reason: "message too big".into(),
    };
    socket.socket.close(Some(frame)).await.unwrap();
    assert_eq!(
        client.closed().await,
        "the server closed the connection: message too big (1009)"
    );
}

#[tokio::test]
async fn notices_come_in_order_and_unknown_ones_are_skipped() {
    let (client, mut notices, mut socket) = connected().await;
    socket.say(stopping("one")).await;
    socket
        .say(json!({ "jsonrpc": "2.0", "method": "server/newer", "params": {} }))
        .await;
    socket.say(stopping("two")).await;
    let mut reasons = Vec::new();
    for _ in 0..2 {
        let Some(Notice::ServerStopping(StoppingParams { reason })) = notices.recv().await else {
            panic!("no notice")
        };
        reasons.push(reason);
    }
    assert_eq!(reasons, ["one", "two"]);
    drop(client);
}

#[tokio::test]
async fn a_notice_that_does_not_fit_its_kind_ends_the_connection() {
    let (client, _notices, mut socket) = connected().await;
    socket
        .say(json!({ "jsonrpc": "2.0", "method": "server/stopping", "params": { "reason": 5 } }))
        .await;
    let reason = client.closed().await;
    assert!(
        reason.contains("params of server/stopping: invalid type: integer `5`"),
        "{reason}"
    );
}

#[tokio::test]
async fn s_141_wrong_messages_of_a_server_end_the_connection_with_a_reason() {
    for (message, reason) in [
        ("[]", "batches are not taken"),
        ("nonsense", "expected ident"),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#,
            "no JSON",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"client/ask"}"#,
            "client/ask",
        ),
    ] {
        let (client, _notices, mut socket) = connected().await;
        socket.socket.send(Message::text(message)).await.unwrap();
        let ended = client.closed().await;
        assert!(ended.contains(reason), "{message}: {ended}");
    }
}

#[tokio::test]
async fn s_141_an_answer_to_no_call_changes_nothing() {
    let (client, _notices, mut socket) = connected().await;
    for id in [json!(77), json!("1"), json!(1)] {
        socket
            .say(json!({ "jsonrpc": "2.0", "id": id, "result": {} }))
            .await;
    }
    let (result, ()) = tokio::join!(
        client.call::<ConversationUnsubscribe>(unsubscribe()),
        async {
            let request = socket.request().await;
            socket
                .result(&request, json!({ "was_subscribed": false }))
                .await;
        }
    );
    assert_eq!(
        result.unwrap(),
        UnsubscribeResult {
            was_subscribed: false
        }
    );
}

#[tokio::test]
async fn a_queue_is_full_until_enough_has_been_taken() {
    let (queue, mut notices) = notice_queue();
    let progress = |done| {
        let method = "server/reindex".to_owned();
        Notice::ServerProgress(ProgressParams {
            method,
            done,
            total: 9,
        })
    };
    queue.push(progress(1), 3 * 1024 * 1024);
    assert!(!queue.is_full());
    queue.push(progress(2), 3 * 1024 * 1024);
    assert!(queue.is_full());
    notices.recv().await.unwrap();
    queue.has_room().await;
    assert!(!queue.is_full());
    // Larger than all the room there is.
    queue.push(progress(3), usize::MAX / 2);
    assert!(queue.is_full());
    drop(notices);
    queue.has_room().await;
    queue.push(progress(4), usize::MAX / 2);
    assert!(!queue.is_full());
}

#[tokio::test]
async fn a_call_is_answered_though_nobody_takes_the_notices_before_its_answer() {
    let (client, mut notices, mut socket) = connected().await;
    let long = "x".repeat(1024 * 1024);
    for _ in 0..2 {
        let call = client.call::<ConversationUnsubscribe>(unsubscribe());
        let serve = async {
            let request = socket.request().await;
            for _ in 0..9 {
                socket.say(stopping(&long)).await;
            }
            let result = json!({ "was_subscribed": true });
            socket.result(&request, result).await;
        };
        let (answered, ()) = tokio::join!(call, serve);
        assert!(answered.unwrap().was_subscribed);
    }
    for _ in 0..18 {
        notices.recv().await.unwrap();
    }
    assert!(notices.try_recv().is_none());
}

#[tokio::test]
async fn a_queue_that_was_full_loses_and_swaps_no_notice() {
    let (client, mut notices, mut socket) = connected().await;
    let padding = "x".repeat(1024 * 1024);
    let tell = async {
        for number in 0..20 {
            socket.say(stopping(&format!("{number} {padding}"))).await;
        }
    };
    let take = async {
        let mut numbers: Vec<i32> = Vec::new();
        for _ in 0..20 {
            let Some(Notice::ServerStopping(params)) = notices.recv().await else {
                panic!("ended")
            };
            numbers.push(params.reason.split_once(' ').unwrap().0.parse().unwrap());
        }
        numbers
    };
    let ((), numbers) = tokio::join!(tell, take);
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    drop(client);
}

#[tokio::test]
async fn two_sides_that_write_much_at_once_do_not_wait_for_each_other() {
    let (client, mut notices, mut socket) = connected().await;
    let much = "x".repeat(10 * 1024 * 1024);
    let call = client.call::<ProviderTest>(TestParams {
        name: much.clone(),
        model: None,
    });
    let serve = async {
        // Reads nothing before all of this is written.
        socket.say(stopping(&much)).await;
        let request = socket.request().await;
        let bytes = request["params"]["name"].as_str().unwrap().len();
        socket
            .result(
                &request,
                json!({ "ok": true, "message": "", "millis": bytes }),
            )
            .await;
    };
    let (result, (), notice) = tokio::join!(call, serve, notices.recv());
    assert_eq!(
        (result.unwrap().millis, notice.is_some()),
        (10 * 1024 * 1024, true)
    );
}

#[tokio::test]
async fn a_ping_is_answered() {
    let (_client, _notices, mut socket) = connected().await;
    socket
        .socket
        .send(Message::Ping("are you there".into()))
        .await
        .unwrap();
    let pong = socket.socket.next().await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("are you there".into()));
}

#[tokio::test]
async fn a_call_that_takes_too_long_times_out_and_the_next_one_works() {
    let (client, _notices, mut socket) = connected().await;
    let limit = Duration::from_millis(10);
    let result = client
        .call_timeout::<ServerStatus>(StatusParams {}, limit)
        .await;
    assert!(
        matches!(&result, Err(ClientError::TimedOut { what, .. }) if what == "server/status"),
        "{result:?}"
    );
    let late = socket.request().await;
    socket.result(&late, json!({})).await;
    let (result, ()) = tokio::join!(
        client.call::<ConversationUnsubscribe>(unsubscribe()),
        async {
            let request = socket.request().await;
            socket
                .result(&request, json!({ "was_subscribed": true }))
                .await;
        }
    );
    assert_eq!(
        result.unwrap(),
        UnsubscribeResult {
            was_subscribed: true
        }
    );
}

#[tokio::test]
async fn a_call_larger_than_a_server_takes_is_not_sent() {
    let (client, _notices, mut socket) = connected().await;
    let params = TestParams {
        name: "x".repeat(16 * 1024 * 1024),
        model: None,
    };
    let error = client.call::<ProviderTest>(params).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { .. }), "{error:?}");
    client.close().await;
    assert!(matches!(
        socket.socket.next().await,
        Some(Ok(Message::Close(_)))
    ));
}

#[tokio::test]
async fn a_result_of_another_shape_names_its_method() {
    let (client, _notices, mut socket) = connected().await;
    let (result, ()) = tokio::join!(client.call::<ServerStatus>(StatusParams {}), async {
        let request = socket.request().await;
        socket.result(&request, json!({ "version": 1 })).await;
    });
    let message = result.unwrap_err().to_string();
    assert!(
        message.starts_with("the protocol was broken: result of server/status: "),
        "{message}"
    );
}

#[tokio::test]
async fn a_message_over_the_limit_ends_the_connection() {
    let mut server = TestServer::start(Manner::Right).await;
    let options = ConnectOptions {
        max_message_bytes: 1000,
        ..server.options()
    };
    let (connected, mut socket) = tokio::join!(Client::connect(options), async {
        let mut socket = server.socket().await;
        socket.initialize().await;
        socket
    });
    let (client, _notices) = connected.unwrap();
    socket.say(stopping(&"x".repeat(1000))).await;
    let reason = client.closed().await;
    assert!(reason.contains("1000"), "{reason}");
}

#[tokio::test]
async fn closing_ends_all_clones_and_says_good_bye() {
    let (client, _notices, mut socket) = connected().await;
    let other = client.clone();
    let ((), frames) = tokio::join!(client.close(), async {
        let mut frames = Vec::new();
        while let Some(Ok(frame)) = socket.socket.next().await {
            frames.push(frame);
        }
        frames
    });
    assert_eq!(frames, [Message::Close(None)]);
    let result = other.call::<ServerStatus>(StatusParams {}).await;
    assert!(
        matches!(result, Err(ClientError::Disconnected { sent: false, .. })),
        "{result:?}"
    );
    assert_eq!(other.closed().await, "this client closed the connection");
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connection() {
    let (client, notices, mut socket) = connected().await;
    drop((client, notices));
    assert!(matches!(
        socket.socket.next().await,
        Some(Ok(Message::Close(None)))
    ));
}

#[tokio::test]
async fn a_server_that_claims_another_version_in_its_result_is_a_mismatch_too() {
    let mut server = TestServer::start(Manner::Right).await;
    let (connected, _socket) = tokio::join!(Client::connect(server.options()), async {
        let mut socket = server.socket().await;
        let request = socket.request().await;
        let mut result = initialize_result();
        result["protocol_version"] = json!("0.0");
        socket.result(&request, result).await;
        socket
    });
    let error = connected.unwrap_err();
    assert!(
        matches!(&error, ClientError::VersionMismatch { theirs, .. } if theirs == "0.0"),
        "{error:?}"
    );
}
