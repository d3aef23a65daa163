//! `openvaala exec`: one prompt, streamed to its end.

use std::process::ExitCode;

use openvaala_protocol::approval::ApprovalMode;
use openvaala_protocol::client::Client;
use openvaala_protocol::conversation::{Conversation, ModelRef, WorkLocation};
use openvaala_protocol::id::{ConversationId, ExecutorId};
use openvaala_protocol::rpc::method::ConversationCreate;
use openvaala_protocol::rpc::params::conversation::CreateParams;
use openvaala_protocol::rpc::params::session::SendMode;
use uuid::Uuid;

use super::folder::folder_of;
use super::follow::{Follower, Mode, Start, watch};
use super::{find, prompt, schema};
use crate::args::ExecArgs;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::note;
use crate::remote::RemoteServer;
use crate::start::connect;

/// Variables that a server takes a model from when it starts.
const KEYS: [&str; 6] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "OPENROUTER_API_KEY",
    "DEEPSEEK_API_KEY",
    "GROQ_API_KEY",
    "XAI_API_KEY",
];

/// Which conversation is worked in.
#[derive(Debug)]
enum Target {
    /// A new one.
    New(CreateParams),
    /// The one with that id, or whose id begins so.
    Resume(String),
    /// The one that was last used in that folder.
    Last(String),
}

pub(super) async fn run(dirs: &Dirs, args: ExecArgs) -> Result<ExitCode, CliError> {
    let target = target(&args, dirs.remote.as_ref())?;
    let output_schema = args.output_schema.as_deref().map(schema::read);
    let output_schema = output_schema.transpose()?;
    let mode = match (args.json, &output_schema) {
        (true, _) => Mode::Json,
        (false, Some(_)) => Mode::Answer,
        (false, None) => Mode::Text,
    };
    let content = prompt::read(args.prompt).await?;
    let (client, notices) = connect(dirs).await?;
    if let (false, Target::New(CreateParams { model: None, .. })) = (args.json, &target) {
        tell_notice(&client);
    }
    let conversation = conversation(&client, target).await?;
    let id = conversation.id;
    let cursor = watch(&client, id).await?;
    let start = Start {
        conversation,
        cursor,
        content,
        send_mode: SendMode::Queue,
        output_schema,
        approval_mode: args.approval.map(ApprovalMode::from),
        mode,
    };
    let outcome = Follower::new(dirs.clone(), start)
        .run(client, notices)
        .await;
    if !args.json {
        note(&format!("openvaala show {id}"));
    }
    outcome
}

/// What the arguments say; a conversation that is there already keeps its folder, its model and its agent.
fn target(args: &ExecArgs, remote: Option<&RemoteServer>) -> Result<Target, CliError> {
    let flag = match (&args.resume, args.last) {
        (Some(_), _) => "--resume",
        (None, true) => "--last",
        (None, false) => return new_conversation(args, remote).map(Target::New),
    };
    let given = [
        ("--cwd", "folder", args.cwd.is_some()),
        ("--model", "model", args.model.is_some()),
        ("--agent", "agent", args.agent.is_some()),
    ];
    if let Some((other, what, _)) = given.iter().find(|(_, _, given)| *given) {
        let message = format!("{other} cannot be used with {flag}");
        return Err(CliError::usage(message)
            .because_text(format!("a conversation that goes on keeps its {what}"))
            .hint(format!(
                "leave out {other}, or leave out {flag} to start anew"
            )));
    }
    match &args.resume {
        Some(id) => Ok(Target::Resume(id.clone())),
        None => match folder_of(remote, None)? {
            Some(folder) => Ok(Target::Last(folder)),
            None => Err(CliError::usage(
                "--last means the folder here, which is none of the server's",
            )
            .hint("give --resume ID; `openvaala list` shows the ids")),
        },
    }
}

fn new_conversation(
    args: &ExecArgs,
    remote: Option<&RemoteServer>,
) -> Result<CreateParams, CliError> {
    let root = folder_of(remote, args.cwd.as_deref())?;
    let executors = root.map(|root| WorkLocation {
        executor: ExecutorId::local(),
        root,
    });
    Ok(CreateParams {
        executors: executors.into_iter().collect(),
        model: args.model.as_deref().map(model).transpose()?,
        agent: args.agent.clone(),
        approval_mode: args.approval.map(ApprovalMode::from),
        conversation_id: Some(ConversationId::from_uuid(Uuid::now_v7())),
    })
}

async fn conversation(client: &Client, target: Target) -> Result<Conversation, CliError> {
    match target {
        Target::New(params) => {
            let created = client.call::<ConversationCreate>(params).await?;
            Ok(created.conversation)
        }
        Target::Resume(id) => find::conversation(client, &id).await,
        Target::Last(folder) => find::last_in(client, folder).await,
    }
}

pub(super) fn model(text: &str) -> Result<ModelRef, CliError> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(ModelRef {
            provider: provider.to_owned(),
            model: model.to_owned(),
            effort: None,
        }),
        _ => Err(CliError::usage(format!("{text:?} names no model"))
            .hint("write PROVIDER/MODEL; `openvaala provider list` shows the providers")),
    }
}

/// Says who answers while no model is configured, and what may be amiss.
fn tell_notice(client: &Client) {
    let Some(notice) = &client.initialized().notice else {
        return;
    };
    note(&format!("note: {notice}"));
    let set = |key: &&&str| std::env::var_os(key).is_some_and(|value| !value.is_empty());
    if let Some(key) = KEYS.iter().find(set) {
        note(&format!(
            "hint: {key} is set here, but the running server was started without it: \
             run `openvaala serve stop` and try again"
        ));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use insta::assert_snapshot;
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn a_model_is_a_provider_and_all_that_follows_the_first_slash() {
        let named = model("openrouter/vendor/some-model").unwrap();
        assert_eq!(
            (named.provider.as_str(), named.model.as_str()),
            ("openrouter", "vendor/some-model")
        );
        for text in ["", "gpt", "/gpt", "openai/"] {
            let said = model(text).unwrap_err().text();
            let begin = format!("error: {text:?} names no model\nhint: write PROVIDER/MODEL");
            assert!(said.starts_with(&begin), "{said}");
        }
    }

    fn exec(line: &str) -> ExecArgs {
        let words = format!("openvaala exec x {line}");
        match Cli::try_parse_from(words.split_whitespace())
            .unwrap()
            .command
        {
            Command::Exec(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_conversation_that_goes_on_keeps_what_it_began_with() {
        assert_snapshot!(target(&exec("--resume 0192 --model a/b"), None).unwrap_err().text(), @r"
        error: --model cannot be used with --resume
          because: a conversation that goes on keeps its model
        hint: leave out --model, or leave out --resume to start anew
        ");
        for line in [
            "--last --cwd .",
            "--last --agent a",
            "--resume 0192 --cwd .",
        ] {
            let said = target(&exec(line), None).unwrap_err().text();
            assert!(said.contains("cannot be used with"), "{line}: {said}");
        }
        assert!(
            matches!(target(&exec("--resume 0192"), None), Ok(Target::Resume(id)) if id == "0192")
        );
        assert!(matches!(target(&exec("--last"), None), Ok(Target::Last(_))));
        assert!(matches!(
            target(&exec("--agent a"), None),
            Ok(Target::New(_))
        ));
    }
}
