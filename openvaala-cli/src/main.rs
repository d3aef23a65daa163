//! The `openvaala` command: run agents, keep every conversation.

mod args;
mod commands;
mod dirs;
mod error;
mod output;
mod remote;
mod start;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(commands::run(cli));
            runtime.shutdown_background();
            outcome
        }
        Err(error) => {
            Err(error::CliError::internal("the async runtime does not start").because(error))
        }
    };
    match outcome {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}
