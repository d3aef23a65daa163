//! What each kind of token allows, and when it is no longer good.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use openvaala_protocol::client::{Client, ClientError, ConnectOptions, Notices};
use openvaala_protocol::handshake::{Credential, Token, Verifier};
use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_protocol::rpc::params::conversation::CreateParams as NewConversation;
use openvaala_protocol::rpc::params::server::{Peer, StatusParams};
use openvaala_protocol::rpc::params::session::{ItemsParams, SendParams};
use openvaala_protocol::rpc::params::token::{
    BindParams, CreateParams, ListParams, RevokeParams, RotateParams,
};
use openvaala_protocol::rpc::{ErrorCode, METHODS, Right, Rights, method};
use openvaala_server::discovery;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::support::{LONG, Running, challenge, request, upgrade};

/// How long a connection may live on when its token is no longer good.
const CLOSED: Duration = Duration::from_secs(5);

fn options(server: &Running, credential: impl Into<Credential>) -> ConnectOptions {
    let peer = Peer {
        name: "test".to_owned(),
        version: "1".to_owned(),
    };
    ConnectOptions::new(server.address, credential, peer)
}

async fn connect(server: &Running, credential: &Credential) -> (Client, Notices) {
    Client::connect(options(server, credential.clone()))
        .await
        .unwrap()
}

async fn create(client: &Client, name: &str, rights: &[Right]) -> Credential {
    let params = CreateParams {
        name: name.to_owned(),
        rights: rights.iter().copied().collect(),
    };
    let created = client.call::<method::TokenCreate>(params).await.unwrap();
    created.token.reveal().parse().unwrap()
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ErrorCode {
    match result.unwrap_err() {
        ClientError::Rpc(error) => error.kind().unwrap(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn s_12_a_connection_may_do_what_its_token_allows_whatever_it_says_of_itself() {
    let server = Running::start().await;
    let (local, _notices) = server.client().await;
    for rights in [&[Right::Watch][..], &[Right::Send], &[Right::Approve]] {
        let name = rights[0].as_str();
        let credential = create(&local, name, rights).await;
        let mut raw = server.raw_as(&credential).await;
        let claims = json!({
            "protocol_version": openvaala_protocol::PROTOCOL_VERSION,
            "client": { "name": "openvaala-cli", "version": "1", "role": "admin", "rights": ["admin"] },
            "rights": ["watch", "send", "approve", "admin"], "scope": "*", "token": "local",
        });
        assert!(raw.call("initialize", claims).await["result"].is_object());
        for row in METHODS.iter().filter(|row| row.name != "initialize") {
            let allowed = row.rights.iter().all(|right| rights.contains(right));
            let answer = raw.call(row.name, json!({})).await;
            let forbidden = answer["error"]["code"] == ErrorCode::Forbidden.number();
            assert_eq!(forbidden, !allowed, "{name} {}: {answer}", row.name);
        }
    }
    // None of it had an effect.
    let (again, _notices) = server.client().await;
    let tokens = again.call::<method::TokenList>(ListParams {}).await;
    assert_eq!(tokens.unwrap().tokens.len(), 3);
    server.stop().await;
}

#[tokio::test]
async fn s_12_parameters_that_answer_questions_in_advance_need_the_right_to_answer() {
    let server = Running::start().await;
    let (local, _notices) = server.client().await;
    let credential = create(&local, "sender", &[Right::Watch, Right::Send]).await;
    let (sender, _notices) = connect(&server, &credential).await;
    let mode = json!({ "approval_mode": "full" });
    let params: NewConversation = serde_json::from_value(mode).unwrap();
    let result = sender.call::<method::ConversationCreate>(params).await;
    assert_eq!(code(result), ErrorCode::Forbidden);
    let params = serde_json::from_value(json!({})).unwrap();
    let created = sender.call::<method::ConversationCreate>(params).await;
    let id = created.unwrap().conversation.id;
    let send = json!({
        "conversation_id": id, "item_id": "0192d3f5-8c1e-7a5b-9c2d-000000000002",
        "content": [{ "type": "text", "text": "x" }], "approval_mode": "full",
    });
    let params: SendParams = serde_json::from_value(send).unwrap();
    let result = sender.call::<method::SessionSend>(params).await;
    assert_eq!(code(result), ErrorCode::Forbidden);

    let credential = create(&local, "approver", &[Right::Approve]).await;
    let (approver, _notices) = connect(&server, &credential).await;
    let answer = json!({
        "conversation_id": id, "approval_id": "0192d3f5-8c1e-7a5b-9c2d-000000000002",
        "answer": "approve", "scope": "always",
    });
    let params = serde_json::from_value(answer).unwrap();
    let result = approver.call::<method::ApprovalAnswer>(params).await;
    assert_eq!(code(result), ErrorCode::Forbidden);
    server.stop().await;
}

#[tokio::test]
async fn s_13_a_revoked_token_is_refused_at_once_and_its_connections_end() {
    let server = Running::start().await;
    let (local, _notices) = server.client().await;
    let credential = create(&local, "phone", &[Right::Watch]).await;
    let (phone, _notices) = connect(&server, &credential).await;
    phone
        .call::<method::ServerStatus>(StatusParams {})
        .await
        .unwrap();

    let name = "phone".to_owned();
    let revoke = RevokeParams { name };
    local
        .call::<method::TokenRevoke>(revoke.clone())
        .await
        .unwrap();
    let refused = Client::connect(options(&server, credential.clone())).await;
    assert!(
        matches!(refused, Err(ClientError::WrongToken { .. })),
        "{refused:?}"
    );
    // What it still asks before its connection has ended is not answered either.
    let late = phone.call::<method::ServerStatus>(StatusParams {}).await;
    assert!(late.is_err(), "{late:?}");
    let reason = timeout(CLOSED, phone.closed()).await.unwrap();
    assert!(reason.contains("no longer good"), "{reason}");
    // Others stay, and a new token of that name does not make the old one good again.
    let again = create(&local, "phone", &[Right::Watch]).await;
    connect(&server, &again).await;
    let refused = Client::connect(options(&server, credential)).await;
    assert!(
        matches!(refused, Err(ClientError::WrongServer { .. })),
        "{refused:?}"
    );
    local
        .call::<method::TokenRevoke>(revoke.clone())
        .await
        .unwrap();
    let unknown = local.call::<method::TokenRevoke>(revoke).await;
    assert_eq!(code(unknown), ErrorCode::TokenNotFound);
    server.stop().await;
}

#[tokio::test]
async fn s_13_the_server_gets_a_new_token_of_its_own_while_it_runs() {
    let server = Running::start().await;
    let (local, _notices) = server.client().await;
    let phone = create(&local, "phone", &[Right::Watch]).await;
    let (state, data) = (server.place.dir("state"), server.place.dir("data"));
    let before = discovery::find(&state, &data).unwrap().unwrap();
    let rotated = local.call::<method::TokenRotate>(RotateParams {}).await;
    rotated.unwrap();
    timeout(CLOSED, local.closed()).await.unwrap();
    let after = discovery::find(&state, &data).unwrap().unwrap();
    assert_ne!(before.token.to_hex(), after.token.to_hex());
    assert_eq!(before.address, after.address);
    let refused = Client::connect(options(&server, before.token)).await;
    assert!(
        matches!(refused, Err(ClientError::WrongServer { .. })),
        "{refused:?}"
    );
    connect(&server, &after.token.into()).await;
    connect(&server, &phone).await;
    let path = after.path;
    server.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn s_13_the_file_of_tokens_is_private_and_good_for_no_connection() {
    let server = Running::start().await;
    let (local, _notices) = server.client().await;
    let credential = create(&local, "phone", &[Right::Watch, Right::Admin]).await;
    let path = server.place.dir("data").join("tokens.yaml");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&credential.token().to_hex()), "{text}");
    // Each secret of the file, used as a token, with the name and without.
    let digits: Vec<&str> = text
        .split(|c: char| !c.is_ascii_hexdigit())
        .filter(|word| word.len() == 64)
        .collect();
    assert_eq!(digits.len(), 2, "{text}");
    for digits in digits {
        let stolen: Token = digits.parse().unwrap();
        for thief in [Credential::named("phone", stolen.clone()), stolen.into()] {
            assert!(Client::connect(options(&server, thief)).await.is_err());
        }
    }
    let place = server.stop().await;
    // It outlives the server.
    let server = Running::start_in(place).await;
    let (phone, _notices) = connect(&server, &credential).await;
    let listed = phone
        .call::<method::TokenList>(ListParams {})
        .await
        .unwrap();
    let rights = Rights::from_iter([Right::Watch, Right::Admin]);
    assert_eq!(listed.tokens[0].rights, rights);
    let verifier = credential.token().verifier();
    let same = serde_json::to_string(&verifier).unwrap();
    assert!(serde_json::from_str::<Verifier>(&same).unwrap() == verifier);
    server.stop().await;
}

#[tokio::test]
async fn a_file_of_tokens_that_others_can_read_is_not_trusted() {
    let server = Running::start().await;
    let (local, _notices) = server.client().await;
    create(&local, "phone", &[Right::Watch]).await;
    let place = server.stop().await;
    let path = place.dir("data").join("tokens.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let options = place.options();
    let error = Running::start_with(place, options).await.err().unwrap();
    assert!(error.to_string().contains("tokens.yaml"), "{error}");
}

#[tokio::test]
async fn names_and_rights_of_tokens_are_checked() {
    let server = Running::start().await;
    let (local, _notices) = server.client().await;
    create(&local, "phone", &[Right::Watch]).await;
    let watch = Rights::from_iter([Right::Watch]);
    let table = [
        ("phone", watch.clone(), ErrorCode::TokenExists),
        ("", watch.clone(), ErrorCode::InvalidParams),
        ("a.b", watch.clone(), ErrorCode::InvalidParams),
        ("a:b", watch.clone(), ErrorCode::InvalidParams),
        ("../x", watch, ErrorCode::InvalidParams),
        ("tablet", Rights::default(), ErrorCode::InvalidParams),
    ];
    for (name, rights, expected) in table {
        let name = name.to_owned();
        let params = CreateParams { name, rights };
        let result = local.call::<method::TokenCreate>(params.clone()).await;
        assert_eq!(code(result), expected, "{params:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn s_85_a_token_of_a_session_is_good_for_nothing_else() {
    let server = Running::start().await;
    let (local, _notices) = server.client().await;
    let conversation_id: ConversationId = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d".parse().unwrap();
    let session_id: SessionId = "0192d3f5-8c1e-7a5b-9c2d-000000000001".parse().unwrap();
    let bind = BindParams {
        conversation_id,
        session_id,
        rights: Rights::from_iter([Right::Watch, Right::Send]),
        expires_in_seconds: 3_600,
    };
    let bound = local.call::<method::TokenBind>(bind.clone()).await.unwrap();
    let credential: Credential = bound.token.reveal().parse().unwrap();
    let (client, _notices) = connect(&server, &credential).await;
    let items = |conversation: ConversationId, session: Option<SessionId>| {
        let params = json!({ "conversation_id": conversation, "session_id": session });
        serde_json::from_value::<ItemsParams>(params).unwrap()
    };
    let other: ConversationId = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8e".parse().unwrap();
    let sibling: SessionId = "0192d3f5-8c1e-7a5b-9c2d-000000000009".parse().unwrap();
    let table = [
        // It may ask for this one; there is no such conversation.
        (
            conversation_id,
            Some(session_id),
            ErrorCode::ConversationNotFound,
        ),
        (conversation_id, Some(sibling), ErrorCode::Forbidden),
        (conversation_id, None, ErrorCode::Forbidden),
        (other, Some(session_id), ErrorCode::Forbidden),
    ];
    for (conversation, session, expected) in table {
        let params = items(conversation, session);
        let result = client.call::<method::SessionItems>(params).await;
        assert_eq!(code(result), expected);
    }
    let mut raw = server.raw_as(&credential).await;
    raw.call("initialize", crate::support::initialize("0.1"))
        .await;
    for method in [
        "server/status",
        "conversation/list",
        "conversation/fork",
        "session/tree",
        "session/items",
        "approval/answer",
        "token/create",
        "token/bind",
    ] {
        let params = match method {
            "server/status" | "conversation/list" => json!({}),
            "conversation/fork" => {
                json!({ "conversation_id": conversation_id, "session_id": session_id, "item_id": sibling })
            }
            _ => json!({ "conversation_id": conversation_id }),
        };
        let answer = raw.call(method, params).await;
        assert_eq!(
            answer["error"]["code"],
            ErrorCode::Forbidden.number(),
            "{method}"
        );
    }
    // Nobody can write another name over the same hash.
    let name = credential.id().unwrap();
    for changed in [
        name.replace("watch-send", "watch-approve-send"),
        name.replace("000000000001", "000000000009"),
        format!(
            "{}{}",
            &name[..name.len() - 1],
            if name.ends_with('9') { "8" } else { "9" }
        ),
    ] {
        let forged = Credential::named(changed, credential.token().clone());
        let refused = Client::connect(options(&server, forged)).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    let admin = BindParams {
        rights: Rights::all(),
        ..bind
    };
    let result = local.call::<method::TokenBind>(admin).await;
    assert_eq!(code(result), ErrorCode::InvalidParams);
    server.stop().await;
}

#[tokio::test]
async fn a_token_of_a_session_ends_with_its_time() {
    let server = Running::start().await;
    let (local, _notices) = server.client().await;
    let bind = BindParams {
        conversation_id: "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d".parse().unwrap(),
        session_id: "0192d3f5-8c1e-7a5b-9c2d-000000000001".parse().unwrap(),
        rights: Rights::from_iter([Right::Watch]),
        expires_in_seconds: 1,
    };
    let bound = local.call::<method::TokenBind>(bind).await.unwrap();
    let credential: Credential = bound.token.reveal().parse().unwrap();
    let (client, _notices) = connect(&server, &credential).await;
    timeout(CLOSED, client.closed()).await.unwrap();
    let refused = Client::connect(options(&server, credential)).await;
    assert!(
        matches!(refused, Err(ClientError::WrongToken { .. })),
        "{refused:?}"
    );
    server.stop().await;
}

#[tokio::test]
async fn s_23_wrong_tokens_are_answered_ever_later_and_the_right_one_at_once() {
    let server = Running::start().await;
    let address = server.address;
    let wrong = |token: Token| async move {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        challenge(&mut tcp, address, &token).await;
        let guess = format!("Authorization: OpenVaala {}\r\n", "0".repeat(64));
        request(&mut tcp, &upgrade(address, &guess)).await.0
    };
    let start = Instant::now();
    for _ in 0..9 {
        assert_eq!(wrong(server.token.clone()).await, 401);
    }
    // 50, 100, 200 and 400 ms.
    assert!(start.elapsed() >= Duration::from_millis(750));
    let waiting: Vec<_> = (0..20)
        .map(|_| tokio::spawn(wrong(server.token.clone())))
        .collect();
    let (client, _notices) = timeout(LONG, server.client()).await.unwrap();
    let status = client.call::<method::ServerStatus>(StatusParams {});
    status.await.unwrap();
    assert!(waiting.iter().any(|task| !task.is_finished()));
    for task in waiting {
        assert_eq!(task.await.unwrap(), 401);
    }
    server.stop().await;
}
