//! The reference runtime server of OpenVaala: one process that owns conversations, and any number of clients.
//!
//! It assembles a [`Runtime`](openvaala_core::Runtime) from a [configuration directory](config), opens it to clients
//! over WebSocket JSON-RPC on this machine only, and lets them [find it](discovery).
//!
//! ```no_run
//! use openvaala_server::{Environment, Server, ServerOptions};
//!
//! # async fn run() -> Result<(), openvaala_server::ServerError> {
//! let mut options = ServerOptions::new("/etc/openvaala", "/var/lib/openvaala", "/run/openvaala")
//!     .with_environment(Environment::from_iter([("PATH", "/usr/bin:/bin")]));
//! options.handle_signals = true;
//! let server = Server::start(options).await?;
//! println!("listening at {}", server.address());
//! server.run_until_stopped().await;
//! # Ok(())
//! # }
//! ```
//!
//! Paths and the environment are values that the caller gives; nothing here reads those of the process.

mod assemble;
mod auth;
pub mod config;
mod connection;
mod context;
mod environment;
mod error;
mod files;
mod http;
mod logs;
mod methods;
mod process;
mod reload;
mod run;
mod server;

pub use self::environment::{Environment, ProviderKeys};
pub use self::error::ServerError;
pub use self::http::TlsError;
pub use self::logs::{LogWriter, Logs};
pub use self::process::discovery;
pub use self::server::{Server, ServerHandle, ServerOptions};

/// The version of this crate.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
