//! What changes a conversation that there is, or begins from it.

use std::path::PathBuf;

use clap::Args;
use openvaala_protocol::id::ItemId;

/// Gives a conversation another title
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  openvaala rename 0192d3f5 \"the failing test\"")]
pub(crate) struct RenameArgs {
    /// The conversation's id, or the beginning of it
    pub(crate) id: String,
    /// The title: one line of at most 200 characters
    pub(crate) title: String,
}

/// Leaves conversations out of lists; nothing else about them changes
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  openvaala archive 0192d3f5\n  openvaala list --archived")]
pub(crate) struct ArchiveArgs {
    /// The conversations' ids, or the beginnings of them
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

/// Has lists show archived conversations again
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  openvaala unarchive 0192d3f5")]
pub(crate) struct UnarchiveArgs {
    /// The conversations' ids, or the beginnings of them
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

/// Begins a new conversation with what was said and done in another one
///
/// Nothing of the other one changes. The id of the new one goes to standard output.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala fork 0192d3f5\n  openvaala show --json 0192d3f5\n  \
    openvaala fork 0192d3f5 --at 0192d3f5-9a77-7e21-8c3b-6f5e4d3c2b1a"
)]
pub(crate) struct ForkArgs {
    /// The conversation's id, or the beginning of it
    pub(crate) id: String,
    /// The last item that the new one shall have: its whole id [default: all but a turn that runs]
    #[arg(long, value_name = "ITEM")]
    pub(crate) at: Option<ItemId>,
}

/// Gives a conversation another model, effort, agent or folder, from its next turn on
///
/// All of it is checked first: if one thing is not there, nothing changes.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala set 0192d3f5 --model openai/gpt-5.4-mini --effort high\n  \
    openvaala set 0192d3f5 --agent reviewer\n  openvaala set 0192d3f5 --cwd ~/src/other"
)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true)))]
pub(crate) struct SetArgs {
    /// The conversation's id, or the beginning of it
    pub(crate) id: String,
    /// The model to ask, as PROVIDER/MODEL
    #[arg(long, value_name = "PROVIDER/MODEL", group = "what")]
    pub(crate) model: Option<String>,
    /// How hard the model shall think, in the provider's words; "" leaves it to the provider
    #[arg(long, group = "what")]
    pub(crate) effort: Option<String>,
    /// The agent that works in it; "" means the default one
    #[arg(long, value_name = "NAME", group = "what")]
    pub(crate) agent: Option<String>,
    /// The folder of this machine to work in; commands that run in the old one go on
    #[arg(long, value_name = "DIR", group = "what")]
    pub(crate) cwd: Option<PathBuf>,
}
