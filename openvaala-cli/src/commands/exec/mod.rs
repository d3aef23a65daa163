//! `openvaala exec`: one prompt, streamed to its end.

mod follow;
mod screen;

use std::path::PathBuf;
use std::process::ExitCode;

use openvaala_protocol::client::Client;
use openvaala_protocol::conversation::{ModelRef, WorkLocation};
use openvaala_protocol::id::ExecutorId;
use openvaala_protocol::rpc::method::{ConversationCreate, ConversationSubscribe};
use openvaala_protocol::rpc::params::conversation::{CreateParams, SubscribeParams};

use self::follow::{Follower, Start};
use self::screen::Screen;
use crate::args::ExecArgs;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::note;
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

pub(super) async fn run(dirs: &Dirs, args: ExecArgs) -> Result<ExitCode, CliError> {
    if args.prompt.trim().is_empty() {
        return Err(
            CliError::usage("the prompt is empty").hint("say what to do: openvaala exec \"…\"")
        );
    }
    let root = folder(args.cwd)?;
    let model = args.model.as_deref().map(model).transpose()?;
    let (client, notices) = connect(dirs).await?;
    if !args.json {
        tell_notice(&client, model.as_ref());
    }
    let executors = vec![WorkLocation {
        executor: ExecutorId::local(),
        root,
    }];
    let created = client
        .call::<ConversationCreate>(CreateParams { executors, model })
        .await?;
    let id = created.conversation.id;
    let subscribe = SubscribeParams {
        conversation_id: id,
        cursor: None,
    };
    let subscribed = client.call::<ConversationSubscribe>(subscribe).await?;
    let start = Start {
        conversation: created.conversation,
        cursor: subscribed.cursor,
        prompt: args.prompt,
    };
    let mut follower = Follower::new(dirs.clone(), start, Screen::new(args.json));
    let outcome = follower.run(client, notices).await;
    if !args.json {
        note(&format!("openvaala show {id}"));
    }
    outcome
}

fn folder(cwd: Option<PathBuf>) -> Result<String, CliError> {
    let folder = match cwd {
        Some(folder) => folder,
        None => std::env::current_dir().map_err(|error| {
            CliError::user("the current folder cannot be worked in").because(error)
        })?,
    };
    let shown = folder.display().to_string();
    let wrong = || CliError::usage(format!("{shown} cannot be worked in"));
    let canonical = std::fs::canonicalize(&folder).map_err(|error| wrong().because(error))?;
    canonical
        .into_os_string()
        .into_string()
        .map_err(|_| wrong().because_text("its name is no valid UTF-8"))
}

fn model(text: &str) -> Result<ModelRef, CliError> {
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
fn tell_notice(client: &Client, model: Option<&ModelRef>) {
    let Some(notice) = &client.initialized().notice else {
        return;
    };
    if model.is_some() {
        return;
    }
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
    use pretty_assertions::assert_eq;

    use super::*;

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

    #[test]
    fn a_folder_is_named_by_its_canonical_path_and_must_be_there() {
        let here = std::env::current_dir().unwrap();
        let below = here.join("src").join("..");
        assert_eq!(folder(Some(below)).unwrap(), folder(Some(here)).unwrap());
        let said = folder(Some("/no/such/folder".into())).unwrap_err().text();
        assert!(
            said.starts_with("error: /no/such/folder cannot be worked in\n"),
            "{said}"
        );
    }
}
