//! Where the tool calls of an agent run.
//!
//! An [`Executor`] is an environment with a file system and a shell: this machine, a host, a
//! sandbox. It opens a [`Workspace`] at a working directory, which gives access to
//! [`Files`](file::Files) and [`Processes`](process::Processes) and offers [`Tool`](tool::Tool)s.
//! A [`Toolbox`](tool::Toolbox) merges the tools of several workspaces for the model.
//!
//! [`Commands`](commands::Commands) are what a session runs: they outlive the call that started
//! them, and end with the session.
//!
//! Nothing here reads the environment or the home directory of this process: variables, paths and
//! ids are values given by the caller.
//!
//! | feature | brings |
//! | --- | --- |
//! | none | the traits, tool routing, [`commands`], and [`output`] made fit for a model |
//! | `local` | the machine that this process runs on: `local::LocalExecutor` (Unix) |
//! | `tools` | the tools `apply_patch`, `bash` and `read_file` for every environment with the module `patch`, and `bash_output` and the like for a session's commands |
//! | `conformance` | the suite that an executor must pass: `executor_conformance!` |
//!
//! # A tool of your own
//!
//! ```
//! use async_trait::async_trait;
//! use openvaala_executor::tool::{ToolContext, ToolError, ToolOutput, TypedTool, typed};
//!
//! #[derive(Debug)]
//! struct CountWords;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Arguments {
//!     /// The text whose words are counted.
//!     text: String,
//! }
//!
//! #[async_trait]
//! impl TypedTool for CountWords {
//!     type Arguments = Arguments;
//!     const NAME: &'static str = "count_words";
//!
//!     fn description(&self) -> String {
//!         "Counts the words of a text.".to_owned()
//!     }
//!
//!     async fn run(&self, _: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
//!         Ok(ToolOutput::text(args.text.split_whitespace().count().to_string()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ToolError> {
//! let tool = typed(CountWords);
//! let output = tool.call(ToolContext::unattended("1"), r#"{"text":"one two three"}"#).await?;
//! assert_eq!(output, ToolOutput::text("3"));
//! # Ok(())
//! # }
//! ```
//!
//! # A command on this machine
//!
//! ```
//! # #[cfg(all(feature = "local", feature = "tools"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use openvaala_executor::Executor;
//! use openvaala_executor::local::{LocalExecutor, LocalOptions};
//! use openvaala_executor::tool::{Offer, ToolContext, ToolOutput, Toolbox};
//!
//! let folder = tempfile::tempdir()?;
//! let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
//! let executor = LocalExecutor::new(LocalOptions::new(vec![path]));
//! let workspace = executor.open(&folder.path().to_string_lossy()).await?;
//!
//! let offer = |tool| Offer::on(workspace.executor().clone(), tool);
//! let toolbox = Toolbox::new(workspace.tools().into_iter().map(offer).collect())?;
//! let call = toolbox.route("bash", r#"{"command":"echo hello; exit 3"}"#)?;
//! let output = call.tool.call(ToolContext::unattended("1"), &call.arguments).await?;
//! assert_eq!(output, ToolOutput::failed("hello\n[exit code 3]").with_exit_code(Some(3)));
//! workspace.close().await;
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "local", feature = "tools")))]
//! # fn main() {}
//! ```
//!
//! # A command that goes on
//!
//! ```
//! # #[cfg(feature = "local")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use openvaala_executor::Executor;
//! use openvaala_executor::commands::{CommandsOptions, StartOptions, commands};
//! use openvaala_executor::local::{LocalExecutor, LocalOptions};
//! use openvaala_executor::output::MemoryOutput;
//! use openvaala_executor::process::Command;
//!
//! let folder = tempfile::tempdir()?;
//! let executor = LocalExecutor::new(LocalOptions::default());
//! let workspace = executor.open(&folder.path().to_string_lossy()).await?;
//!
//! let (commands, session) = commands(CommandsOptions::default());
//! let session = tokio::spawn(session);
//! let options = StartOptions::new(Arc::new(MemoryOutput::new(1 << 20)));
//! let line = Command::new("echo hello; sleep 1000");
//! let server = commands.start(workspace.processes(), line, options).await?.leave().await;
//! server.news().await;
//! assert_eq!(server.take_text().await?.text, "hello\n");
//! commands.close().await;
//! session.await?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "local"))]
//! # fn main() {}
//! ```

pub mod commands;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod error;
pub mod executor;
pub mod file;
#[cfg(feature = "local")]
pub mod local;
pub mod output;
#[cfg(feature = "tools")]
pub mod patch;
#[cfg(feature = "local")]
mod path;
pub mod process;
pub mod tool;
#[cfg(feature = "tools")]
pub mod tools;
pub mod workspace;

pub use self::error::ExecutorError;
pub use self::executor::Executor;
pub use self::workspace::{EnvironmentInfo, Workspace};
