//! `openvaala approvals`, `approve` and `deny`.

use std::process::ExitCode;

use openvaala_core::environment::{Clock, SystemClock};
use openvaala_protocol::approval::{ApprovalAnswer, ApprovalRule, ApprovalScope};
use openvaala_protocol::client::Client;
use openvaala_protocol::item::Approval;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::approval::{AnswerParams, ListParams, OpenApproval};
use serde_json::Value;

use crate::args::{ApprovalsArgs, ApproveArgs, DenyArgs};
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{ago, note, one_line, out};
use crate::start::connect;

/// How much of a call is shown.
const SHOWN: usize = 2_000;
/// How many lines of it.
const LINES: usize = 40;
/// The shortest end of an id that is looked for.
const MIN_ID: usize = 4;

pub(super) async fn list(dirs: &Dirs, args: ApprovalsArgs) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let open = open(&client).await?;
    client.close().await;
    if open.is_empty() && !args.json {
        note("no tool call waits for an approval");
    }
    for it in open {
        let text = if args.json {
            format!("{}\n", serde_json::to_string(&it).map_err(CliError::from)?)
        } else {
            let (id, conversation) = (it.approval_id, it.conversation_id);
            let since = ago(it.asked_at, SystemClock.now());
            format!(
                "{id}  asked {since} in conversation {conversation}\n{}\n",
                question(&it.approval)
            )
        };
        if !out(&text)? {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn approve(dirs: &Dirs, args: ApproveArgs) -> Result<ExitCode, CliError> {
    let scope = match (args.session, args.always) {
        (_, true) => ApprovalScope::Always,
        (true, false) => ApprovalScope::Session,
        (false, false) => ApprovalScope::Once,
    };
    answer(dirs, &args.id, ApprovalAnswer::Approve, scope, None).await
}

pub(super) async fn deny(dirs: &Dirs, args: DenyArgs) -> Result<ExitCode, CliError> {
    let (deny, scope) = (ApprovalAnswer::Deny, ApprovalScope::Once);
    answer(dirs, &args.id, deny, scope, args.message).await
}

async fn answer(
    dirs: &Dirs,
    id: &str,
    answer: ApprovalAnswer,
    scope: ApprovalScope,
    message: Option<String>,
) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let open = the_only_one(id, open(&client).await?)?;
    let params = AnswerParams {
        conversation_id: open.conversation_id,
        session_id: Some(open.session_id),
        approval_id: open.approval_id,
        answer,
        scope,
        hash: open.approval.hash,
        message,
    };
    let answered = client.call::<method::ApprovalAnswer>(params).await?;
    client.close().await;
    match answer {
        ApprovalAnswer::Deny => note("denied"),
        ApprovalAnswer::Approve => note("approved"),
    }
    if let Some(rule) = answered
        .approval
        .rule
        .filter(|_| scope != ApprovalScope::Once)
    {
        note(&format!("from now on: {}", rule_text(&rule)));
    }
    Ok(ExitCode::SUCCESS)
}

async fn open(client: &Client) -> Result<Vec<OpenApproval>, CliError> {
    let listed = client
        .call::<method::ApprovalList>(ListParams::default())
        .await?;
    Ok(listed.approvals)
}

/// Ids that were made at the same time begin alike, so the end is looked at as well.
fn the_only_one(id: &str, open: Vec<OpenApproval>) -> Result<OpenApproval, CliError> {
    let text = id.to_ascii_lowercase();
    let is_it = |it: &OpenApproval| {
        let id = it.approval_id.to_string();
        text.len() >= MIN_ID && (id.starts_with(&text) || id.ends_with(&text))
    };
    let mut matches: Vec<OpenApproval> = open.into_iter().filter(is_it).collect();
    match (matches.pop(), matches.len()) {
        (Some(only), 0) => Ok(only),
        (Some(_), more) => Err(CliError::user(format!(
            "{} open approvals have an id like {id:?}",
            more + 1
        ))
        .hint("write more of it; `openvaala approvals` lists them")),
        (None, _) => Err(
            CliError::user(format!("no open approval has the id {id:?}")).hint(
                "`openvaala approvals` lists those that wait; another client may have answered",
            ),
        ),
    }
}

/// What is asked, for people.
pub(super) fn question(approval: &Approval) -> String {
    let arguments: Value = serde_json::from_str(&approval.arguments).unwrap_or_default();
    let shown = ["command", "patch", "path"]
        .iter()
        .find_map(|name| arguments[*name].as_str())
        .unwrap_or(&approval.arguments);
    let place = match (&approval.executor, &approval.folder) {
        (Some(executor), Some(folder)) => format!(" on {executor} in {folder}"),
        (Some(executor), None) => format!(" on {executor}"),
        _ => String::new(),
    };
    let lines = shown
        .lines()
        .take(LINES)
        .map(|line| format!("    {}", one_line(line, SHOWN)));
    let lines: Vec<String> = lines.collect();
    let more = if shown.lines().count() > LINES {
        "\n    …"
    } else {
        ""
    };
    let mut text = format!(
        "{}{}:\n{}{more}\n  asked because {}",
        one_line(&approval.tool, 80),
        one_line(&place, 400),
        lines.join("\n"),
        one_line(&approval.reason, 400),
    );
    if let Some(rule) = &approval.rule {
        text.push_str(&format!("\n  \"always\" would be: {}", rule_text(rule)));
    }
    text
}

fn rule_text(rule: &ApprovalRule) -> String {
    let text = serde_json::to_string(rule).unwrap_or_default();
    one_line(&text, 400)
}
