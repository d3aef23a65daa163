//! One message of each kind, and the rules that hold for the whole table.

use std::collections::BTreeSet;

use openvaala_protocol::rpc::{
    Call, ERRORS, ErrorCode, Incoming, METHODS, NOTIFICATIONS, Notice, Notification, Request,
    RequestId,
};
use pretty_assertions::assert_eq;
use serde_json::value::{RawValue, to_raw_value};

/// One request of every method: its parameters with every field set.
const REQUESTS: &[(&str, &str)] = &[
    (
        "initialize",
        r#"{"protocol_version":"0.1","client":{"name":"cli","version":"1"}}"#,
    ),
    ("server/status", "{}"),
    ("server/shutdown", r#"{"wait_seconds":30}"#),
    ("server/reload", "{}"),
    (
        "token/create",
        r#"{"name":"phone","rights":["watch","send"]}"#,
    ),
    ("token/list", "{}"),
    ("token/revoke", r#"{"name":"phone"}"#),
    ("token/rotate", "{}"),
    (
        "token/bind",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","rights":["watch"],"expires_in_seconds":60}"#,
    ),
    ("server/logs", r#"{"after":7,"limit":10,"wait_ms":1000}"#),
    ("server/reindex", "{}"),
    (
        "server/check",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","repair":true}"#,
    ),
    (
        "conversation/delete",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    (
        "conversation/restore",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    ("trash/list", "{}"),
    (
        "trash/empty",
        r#"{"conversation_ids":["0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"],"older_than_seconds":3600}"#,
    ),
    (
        "conversation/create",
        r#"{"executors":[{"executor":"local","root":"/w"}],"model":{"provider":"p","model":"m","effort":"high"},"agent":"reviewer","approval_mode":"ask","conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    (
        "conversation/list",
        r#"{"cursor":"c","limit":10,"status":"running","root":"/w","search":"plane","updated_since":"2026-12-02T04:22:41.123Z","archived":true}"#,
    ),
    (
        "conversation/get",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    (
        "conversation/subscribe",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","cursor":"c"}"#,
    ),
    (
        "conversation/unsubscribe",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    (
        "session/send",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","item_id":"0192d3f5-8c1e-7a5b-9c2d-000000000002","content":[{"type":"text","text":"look"},{"type":"image","media_type":"image/png","data":{"base64":"aGk="}},{"type":"image","media_type":"image/png","data":{"blob":{"id":"0192d3f5-8c1e-7a5b-9c2d-000000000003","first":1,"last":2,"bytes":70000}}}],"mode":"steer","output_schema":{"type":"object","z":1,"a":12345678901234567890123},"approval_mode":"auto_edit"}"#,
    ),
    (
        "session/interrupt",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null}"#,
    ),
    (
        "session/tree",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    (
        "session/items",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"order":"ascending","cursor":7,"limit":5}"#,
    ),
    (
        "session/blob",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"blob":{"id":"0192d3f5-8c1e-7a5b-9c2d-000000000003","first":1,"last":2,"bytes":70000},"offset":65536}"#,
    ),
    ("provider/list", "{}"),
    ("provider/test", r#"{"name":"p","model":"m"}"#),
    (
        "session/pending/list",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null}"#,
    ),
    (
        "session/pending/update",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"item_id":"0192d3f5-8c1e-7a5b-9c2d-000000000002","content":[{"type":"text","text":"hello"}],"steer":true}"#,
    ),
    (
        "session/pending/withdraw",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"item_ids":["0192d3f5-8c1e-7a5b-9c2d-000000000002"]}"#,
    ),
    (
        "session/pending/reorder",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"item_ids":["0192d3f5-8c1e-7a5b-9c2d-000000000003","0192d3f5-8c1e-7a5b-9c2d-000000000002"]}"#,
    ),
    (
        "session/resume",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null}"#,
    ),
    (
        "session/update",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"model":{"provider":"p","model":"m"},"effort":"high","agent":"reviewer"}"#,
    ),
    (
        "conversation/update",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","title":"a plan","archived":true,"executors":[{"executor":"local","root":"/w"}]}"#,
    ),
    (
        "conversation/fork",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"item_id":"0192d3f5-8c1e-7a5b-9c2d-000000000002","new_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8e"}"#,
    ),
    (
        "session/compact",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"guidance":"the numbers","preview":true}"#,
    ),
    (
        "session/uncompact",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null}"#,
    ),
    (
        "approval/list",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    (
        "approval/answer",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"approval_id":"0192d3f5-8c1e-7a5b-9c2d-000000000002","answer":"approve","scope":"session","hash":"00ff","message":"go"}"#,
    ),
    (
        "conversation/open",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    (
        "conversation/close",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","interrupt":true,"wait_ms":500}"#,
    ),
    (
        "turn/get",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","turn_id":"0192d3f5-8c1e-7a5b-9c2d-000000000004"}"#,
    ),
    (
        "turn/list",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null,"order":"ascending","cursor":"0192d3f5-8c1e-7a5b-9c2d-000000000004","limit":5}"#,
    ),
    (
        "terminal/list",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":null}"#,
    ),
    (
        "terminal/read",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","terminal_id":3,"offset":7,"head":100,"tail":50}"#,
    ),
    (
        "terminal/write",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","terminal_id":3,"text":"yes\n","end":true,"at":4}"#,
    ),
    (
        "terminal/kill",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","terminal_id":3,"signal":"kill"}"#,
    ),
    ("agent/list", r#"{}"#),
    ("model/list", r#"{"provider":"p"}"#),
    (
        "provider/edit",
        r#"{"name":"work","type":"openai_chat","base_url":"https://models.example.com/v1","api_key":null,"api_key_env":"WORK_KEY","default_model":"m"}"#,
    ),
    (
        "model/default/set",
        r#"{"model":{"provider":"p","model":"m","effort":"high"}}"#,
    ),
    ("config/get", "{}"),
    ("config/validate", r#"{"text":"step_limit: 5\n"}"#),
    (
        "config/set",
        r#"{"text":"step_limit: 5\n","revision":"0123456789abcdef"}"#,
    ),
    ("executor/list", r#"{}"#),
    ("executor/test", r#"{"executor":"local","root":"/w"}"#),
    (
        "executor/browse",
        r#"{"executor":"local","path":"/w","limit":5}"#,
    ),
    (
        "executor/complete",
        r#"{"executor":"local","path":"/w/a","files":true,"limit":5}"#,
    ),
    (
        "usage/get",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    (
        "provider/add",
        r#"{"name":"p","type":"openai_chat","base_url":"http://x/v1","api_key":"k","api_key_env":null,"default_model":"m","make_default":true}"#,
    ),
    ("provider/remove", r#"{"name":"p"}"#),
];

/// One message of every notification, and one of every shape of those that have several.
const NOTICES: &[(&str, &str)] = &[
    (
        "conversation/entry",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","entry":{"conversation":{"seq":1,"conversation":{"id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","title":"look around","status":"running","root_session":"0192d3f5-8c1e-7a5b-9c2d-000000000001","executors":[{"executor":"local","root":"/w"}],"created_at":"2026-12-02T04:22:41.123Z","updated_at":"2026-12-02T04:22:41.123Z"}}},"cursor":"c"}"#,
    ),
    (
        "conversation/entry",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","entry":{"session":{"seq":2,"session":{"id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","parent":null,"path":"main","model":{"provider":"p","model":"m"},"status":"degraded","active_turn":"0192d3f5-8c1e-7a5b-9c2d-000000000004","pending":[{"item_id":"0192d3f5-8c1e-7a5b-9c2d-000000000002","preview":"look","image_count":1,"is_steer":true}],"held":true,"usage":{"input_tokens":1,"cached_input_tokens":null,"output_tokens":2,"reasoning_tokens":null},"created_at":"2026-12-02T04:22:41.123Z","updated_at":"2026-12-02T04:22:41.123Z"}}},"cursor":"c"}"#,
    ),
    (
        "conversation/entry",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","entry":{"turn":{"seq":3,"turn":{"id":"0192d3f5-8c1e-7a5b-9c2d-000000000004","session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","status":"failed","failure":{"kind":"step_limit","message":"too many steps"},"inputs":["0192d3f5-8c1e-7a5b-9c2d-000000000002"],"model":{"provider":"p","model":"m"},"executors":[],"steps":200,"usage":{"input_tokens":null,"cached_input_tokens":null,"output_tokens":null,"reasoning_tokens":null},"started_at":"2026-12-02T04:22:41.123Z","ended_at":"2026-12-02T04:22:42.123Z","last_seq":9}}},"cursor":"c"}"#,
    ),
    (
        "conversation/entry",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","entry":{"item":{"seq":4,"session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","item":{"id":"0192d3f5-8c1e-7a5b-9c2d-000000000005","kind":"tool_call","turn":null,"pos":2,"started_at":"2026-12-02T04:22:41.123Z","ended_at":"2026-12-02T04:22:41.123Z","body":{"call_id":"c1","tool":"bash","arguments":"{"}}}},"cursor":"c"}"#,
    ),
    (
        "conversation/entry",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","entry":{"damaged":{"seq":5,"session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","message":"line 5: wrong checksum"}},"cursor":"c"}"#,
    ),
    (
        "conversation/live",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","live":{"started":{"session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","turn_id":"0192d3f5-8c1e-7a5b-9c2d-000000000004","item_id":"0192d3f5-8c1e-7a5b-9c2d-000000000005","kind":"tool_call","pos":2,"started_at":"2026-12-02T04:22:41.123Z","label":"bash","offset":0,"text":""}}}"#,
    ),
    (
        "conversation/live",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","live":{"delta":{"session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","item_id":"0192d3f5-8c1e-7a5b-9c2d-000000000005","offset":3,"text":"more"}}}"#,
    ),
    (
        "conversation/live",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","live":{"dropped":{"session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","item_id":"0192d3f5-8c1e-7a5b-9c2d-000000000005"}}}"#,
    ),
    (
        "conversation/live",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","live":{"degraded":{"session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000001","message":"no space left"}}}"#,
    ),
    (
        "conversation/deleted",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"}"#,
    ),
    (
        "conversation/gap",
        r#"{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","reason":"too slow"}"#,
    ),
    (
        "server/progress",
        r#"{"method":"server/reindex","done":1,"total":2}"#,
    ),
    ("server/stopping", r#"{"reason":"asked to"}"#),
];

fn raw(text: &str) -> Box<RawValue> {
    serde_json::from_str(text).unwrap()
}

/// The parameters as the parsed call writes them.
fn written(call: &Call) -> Box<RawValue> {
    let written = match call {
        Call::Initialize(params) => to_raw_value(params),
        Call::ServerStatus(params) => to_raw_value(params),
        Call::ServerShutdown(params) => to_raw_value(params),
        Call::ServerReload(params) => to_raw_value(params),
        Call::ServerReindex(params) => to_raw_value(params),
        Call::ServerCheck(params) => to_raw_value(params),
        Call::ConversationDelete(params) => to_raw_value(params),
        Call::ConversationRestore(params) => to_raw_value(params),
        Call::TrashList(params) => to_raw_value(params),
        Call::TrashEmpty(params) => to_raw_value(params),
        Call::ConversationCreate(params) => to_raw_value(params),
        Call::ConversationList(params) => to_raw_value(params),
        Call::ConversationGet(params) => to_raw_value(params),
        Call::ConversationSubscribe(params) => to_raw_value(params),
        Call::ConversationUnsubscribe(params) => to_raw_value(params),
        Call::SessionSend(params) => to_raw_value(params),
        Call::SessionInterrupt(params) => to_raw_value(params),
        Call::SessionTree(params) => to_raw_value(params),
        Call::SessionItems(params) => to_raw_value(params),
        Call::SessionBlob(params) => to_raw_value(params),
        Call::ProviderList(params) => to_raw_value(params),
        Call::ProviderTest(params) => to_raw_value(params),
        Call::SessionPendingList(params) => to_raw_value(params),
        Call::SessionPendingUpdate(params) => to_raw_value(params),
        Call::SessionPendingWithdraw(params) => to_raw_value(params),
        Call::SessionPendingReorder(params) => to_raw_value(params),
        Call::SessionResume(params) => to_raw_value(params),
        Call::SessionUpdate(params) => to_raw_value(params),
        Call::ConversationUpdate(params) => to_raw_value(params),
        Call::ConversationFork(params) => to_raw_value(params),
        Call::SessionCompact(params) => to_raw_value(params),
        Call::SessionUncompact(params) => to_raw_value(params),
        Call::ApprovalList(params) => to_raw_value(params),
        Call::ApprovalAnswer(params) => to_raw_value(params),
        Call::ProviderAdd(params) => to_raw_value(params),
        Call::ProviderRemove(params) => to_raw_value(params),
        Call::ProviderEdit(params) => to_raw_value(params),
        Call::ServerLogs(params) => to_raw_value(params),
        Call::ModelDefaultSet(params) => to_raw_value(params),
        Call::ConfigGet(params) => to_raw_value(params),
        Call::ConfigValidate(params) => to_raw_value(params),
        Call::ConfigSet(params) => to_raw_value(params),
        Call::AgentList(params) => to_raw_value(params),
        Call::ModelList(params) => to_raw_value(params),
        Call::ExecutorList(params) => to_raw_value(params),
        Call::ExecutorTest(params) => to_raw_value(params),
        Call::ExecutorBrowse(params) => to_raw_value(params),
        Call::ExecutorComplete(params) => to_raw_value(params),
        Call::UsageGet(params) => to_raw_value(params),
        Call::ConversationOpen(params) => to_raw_value(params),
        Call::ConversationClose(params) => to_raw_value(params),
        Call::TurnGet(params) => to_raw_value(params),
        Call::TurnList(params) => to_raw_value(params),
        Call::TerminalList(params) => to_raw_value(params),
        Call::TerminalRead(params) => to_raw_value(params),
        Call::TerminalWrite(params) => to_raw_value(params),
        Call::TerminalKill(params) => to_raw_value(params),
        Call::TokenCreate(params) => to_raw_value(params),
        Call::TokenList(params) => to_raw_value(params),
        Call::TokenRevoke(params) => to_raw_value(params),
        Call::TokenRotate(params) => to_raw_value(params),
        Call::TokenBind(params) => to_raw_value(params),
        other => panic!("this test does not know {other:?}"),
    };
    written.unwrap()
}

#[test]
fn every_method_has_a_request_here_that_comes_back_as_it_was() {
    let shown: BTreeSet<&str> = REQUESTS.iter().map(|(method, _)| *method).collect();
    assert_eq!(shown, METHODS.iter().map(|row| row.name).collect());
    for (method, params) in REQUESTS {
        let call = Call::parse(method, Some(&raw(params))).unwrap();
        assert_eq!(written(&call).get(), *params, "{method}");
    }
}

#[test]
fn every_notification_has_a_message_here_that_comes_back_as_it_was() {
    let shown: BTreeSet<&str> = NOTICES.iter().map(|(name, _)| *name).collect();
    assert_eq!(shown, NOTIFICATIONS.iter().map(|row| row.name).collect());
    for (name, params) in NOTICES {
        let notice = Notice::parse(name, Some(&raw(params))).unwrap().unwrap();
        assert_eq!(
            (notice.name(), notice.params().unwrap().get()),
            (*name, *params)
        );
    }
}

#[test]
fn one_request_of_each_method_on_the_wire() {
    let lines: Vec<String> = REQUESTS
        .iter()
        .zip(1..)
        .map(|((method, params), id)| {
            let id = RequestId::Number(id);
            let params = Some(written(&Call::parse(method, Some(&raw(params))).unwrap()));
            Request {
                id,
                method: (*method).to_owned(),
                params,
            }
            .to_text()
            .unwrap()
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn one_message_of_each_notification_on_the_wire() {
    let lines: Vec<String> = NOTICES
        .iter()
        .map(|(name, params)| Notice::parse(name, Some(&raw(params))).unwrap().unwrap())
        .map(|notice| {
            let params = Some(notice.params().unwrap());
            Notification {
                method: notice.name().to_owned(),
                params,
            }
            .to_text()
            .unwrap()
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
    for (line, (name, _)) in lines.iter().zip(NOTICES) {
        assert!(
            matches!(Incoming::parse(line), Ok(Incoming::Notification(notice)) if notice.method == *name)
        );
    }
}

#[test]
fn a_field_that_a_method_does_not_know_is_refused_by_name() {
    for (method, params) in REQUESTS {
        let comma = if *params == "{}" { "" } else { "," };
        let with_more = params.replacen('{', &format!("{{\"mispelt\":1{comma}"), 1);
        let parsed = Call::parse(method, Some(&raw(&with_more)));
        if *method == "initialize" {
            assert!(
                parsed.is_ok(),
                "a client of another version must get as far as the version"
            );
            continue;
        }
        let error = parsed.unwrap_err();
        assert_eq!(error.kind(), Some(ErrorCode::InvalidParams));
        assert!(error.message.contains(method), "{}", error.message);
        assert!(
            error.message.contains("unknown field `mispelt`"),
            "{}",
            error.message
        );
    }
}

#[test]
fn s_41_a_wrong_id_is_refused_in_every_method_that_takes_one() {
    for (method, params) in REQUESTS {
        for id in params
            .split('"')
            .filter(|text| text.starts_with("0192d3f5"))
        {
            let params = params.replace(id, "../../../etc/passwd");
            let error = Call::parse(method, Some(&raw(&params))).unwrap_err();
            assert_eq!(error.kind(), Some(ErrorCode::InvalidParams), "{method}");
            assert!(
                error.message.contains("../../../etc/passwd"),
                "{}",
                error.message
            );
        }
    }
}

#[test]
fn s_141_params_of_another_type_are_refused_without_a_panic() {
    for (method, _) in REQUESTS {
        for params in [
            "null",
            "5",
            "\"text\"",
            "[1,2]",
            "true",
            r#"{"conversation_id":7}"#,
        ] {
            let error = Call::parse(method, Some(&raw(params))).unwrap_err();
            assert_eq!(
                error.kind(),
                Some(ErrorCode::InvalidParams),
                "{method} {params}"
            );
        }
    }
}

#[test]
fn params_that_are_left_out_are_an_empty_object() {
    for method in [
        "server/status",
        "provider/list",
        "conversation/list",
        "conversation/create",
    ] {
        let left_out = Call::parse(method, None).unwrap();
        let empty = Call::parse(method, Some(&raw("{}"))).unwrap();
        assert_eq!(written(&left_out).get(), written(&empty).get());
    }
    let error = Call::parse("session/send", None).unwrap_err();
    assert_eq!(
        error.message,
        "params of session/send: missing field `conversation_id` at line 1 column 2"
    );
}

#[test]
fn a_method_that_does_not_exist_is_named_and_cut_short() {
    let error = Call::parse("session/sned", None).unwrap_err();
    assert_eq!(
        (error.kind(), &*error.message),
        (
            Some(ErrorCode::MethodNotFound),
            "there is no method \"session/sned\": see docs/protocol.md for all of them"
        )
    );
    assert!(
        Call::parse(&"x".repeat(1_000_000), None)
            .unwrap_err()
            .message
            .len()
            < 200
    );
    assert!(Notice::parse("server/later", None).unwrap().is_none());
}

#[test]
fn names_are_unique_and_of_the_form_resource_part_and_verb() {
    let names: Vec<&str> = METHODS
        .iter()
        .map(|row| row.name)
        .chain(NOTIFICATIONS.iter().map(|row| row.name))
        .collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len());
    for name in names.into_iter().filter(|name| *name != "initialize") {
        let parts: Vec<&str> = name.split('/').collect();
        assert!(matches!(parts.len(), 2..=3), "{name}");
        for part in parts {
            assert!(
                !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase()),
                "{name}"
            );
        }
    }
}

#[test]
fn every_error_has_its_own_number_and_name() {
    let numbers: BTreeSet<i64> = ERRORS.iter().map(|row| row.code.number()).collect();
    let names: BTreeSet<&str> = ERRORS.iter().map(|row| row.name).collect();
    assert_eq!((numbers.len(), names.len()), (ERRORS.len(), ERRORS.len()));
}
