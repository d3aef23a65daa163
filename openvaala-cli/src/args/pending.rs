//! What changes the inputs that wait in a conversation.

use clap::{Args, Subcommand};

use super::PromptArgs;

/// Shows and changes what waits in a conversation for the turn that runs to end
#[derive(Debug, Subcommand)]
pub(crate) enum PendingCommand {
    /// Lists what waits, in the order in which it will be taken
    #[command(after_help = "Examples:\n  openvaala pending list 0192d3f5\n  \
        openvaala pending list 0192d3f5 --json")]
    List(PendingArgs),
    Edit(EditArgs),
    Withdraw(WithdrawArgs),
    Move(MoveArgs),
    Steer(SteerArgs),
    /// Lets what is held since a turn was interrupted or has failed go on
    #[command(after_help = "Example:\n  openvaala pending resume 0192d3f5")]
    Resume(PendingArgs),
}

/// Which conversation.
#[derive(Args, Debug)]
pub(crate) struct PendingArgs {
    /// The conversation's id, or the beginning of it
    #[arg(value_name = "CONVERSATION")]
    pub(crate) conversation: String,
    /// As JSON: one input a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Has an input say something else
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala pending edit 0192d3f5 9c2d3e4f \"and leave the tests alone\"\n  \
    openvaala pending edit 0192d3f5 9c2d3e4f - < prompt.md"
)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) of: PendingArgs,
    /// The input's id, the end of it, or its beginning
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
}

/// Takes inputs back, all that are named or none
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala pending withdraw 0192d3f5 9c2d3e4f\n  \
    openvaala pending withdraw 0192d3f5 9c2d3e4f 4e5f6a7b"
)]
pub(crate) struct WithdrawArgs {
    #[command(flatten)]
    pub(crate) of: PendingArgs,
    /// The inputs' ids, the ends of them, or their beginnings
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,
}

/// Puts an input in another place of the queue
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  openvaala pending move 0192d3f5 9c2d3e4f 1")]
pub(crate) struct MoveArgs {
    #[command(flatten)]
    pub(crate) of: PendingArgs,
    /// The input's id, the end of it, or its beginning
    pub(crate) input: String,
    /// Which place it gets: 1 is taken next
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) place: u32,
}

/// Has the running turn read an input before it goes on
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  openvaala pending steer 0192d3f5 9c2d3e4f\n  \
    openvaala pending steer 0192d3f5 9c2d3e4f --undo"
)]
pub(crate) struct SteerArgs {
    #[command(flatten)]
    pub(crate) of: PendingArgs,
    /// The input's id, the end of it, or its beginning
    pub(crate) input: String,
    /// The other way round: it waits for the end of the turn
    #[arg(long)]
    pub(crate) undo: bool,
}
