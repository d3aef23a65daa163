//! The commands, one file each.

mod approvals;
mod change;
mod check;
mod compact;
mod completions;
mod config;
mod delete;
mod describe;
mod exec;
mod find;
mod folder;
mod follow;
mod interrupt;
mod list;
mod markdown;
mod meter;
mod pending;
mod prompt;
mod provider;
mod reindex;
mod schema;
mod send;
mod serve;
mod show;
mod token;
mod trash;

use std::process::ExitCode;

use crate::args::{Cli, Command, ConfigCommand, ProviderCommand, ServeCommand};
use crate::dirs::Dirs;
use crate::error::CliError;

pub(crate) async fn run(cli: Cli) -> Result<ExitCode, CliError> {
    let dirs = Dirs::find(&cli.dirs, &cli.server)?;
    if let Some(command) = of_this_machine(&cli.command) {
        dirs.only_here(command)?;
    }
    match cli.command {
        Command::Exec(args) => exec::run(&dirs, args).await,
        Command::Serve(args) => match args.command {
            None => serve::run(dirs, &args).await,
            Some(ServeCommand::Stop { timeout }) => serve::stop(&dirs, timeout).await,
            Some(ServeCommand::Logs { lines, follow }) => serve::logs(&dirs, lines, follow).await,
            Some(ServeCommand::Status { json }) => serve::status(&dirs, json).await,
        },
        Command::List(args) => list::run(&dirs, args).await,
        Command::Show(args) => show::run(&dirs, args).await,
        Command::Reindex => reindex::run(&dirs).await,
        Command::Delete(args) => delete::run(&dirs, args).await,
        Command::Restore(args) => delete::restore(&dirs, args).await,
        Command::Trash(command) => trash::run(&dirs, command).await,
        Command::Check(args) => check::run(&dirs, args).await,
        Command::Provider(command) => provider::run(&dirs, command).await,
        Command::Token(command) => token::run(&dirs, command).await,
        Command::Config(command) => config::run(&dirs, command).await,
        Command::Send(args) => send::run(&dirs, args).await,
        Command::Interrupt(args) => interrupt::run(&dirs, args).await,
        Command::Completions(args) => completions::run(args.shell),
        Command::Rename(args) => change::rename(&dirs, args).await,
        Command::Archive(args) => change::archive(&dirs, &args.ids, true).await,
        Command::Unarchive(args) => change::archive(&dirs, &args.ids, false).await,
        Command::Fork(args) => change::fork(&dirs, args).await,
        Command::Set(args) => change::set(&dirs, args).await,
        Command::Compact(args) => compact::run(&dirs, args).await,
        Command::Approvals(args) => approvals::list(&dirs, args).await,
        Command::Approve(args) => approvals::approve(&dirs, args).await,
        Command::Deny(args) => approvals::deny(&dirs, args).await,
        Command::Pending(command) => pending::run(&dirs, command).await,
    }
}

/// The name of a command that needs the files of the server's own machine.
const fn of_this_machine(command: &Command) -> Option<&'static str> {
    match command {
        Command::Serve(args) => match args.command {
            None => Some("openvaala serve"),
            Some(ServeCommand::Stop { .. }) => Some("openvaala serve stop"),
            Some(ServeCommand::Status { .. } | ServeCommand::Logs { .. }) => None,
        },
        Command::Provider(ProviderCommand::Add(_)) => Some("openvaala provider add"),
        Command::Config(ConfigCommand::Check) => Some("openvaala config check"),
        Command::Check(_) => Some("openvaala check"),
        _ => None,
    }
}

/// The variables of this process; those that are no text are left out.
pub(crate) fn environment() -> openvaala_server::Environment {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
