//! Puts a server together and starts it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openvaala_core::environment::{Clock, SystemClock};
use openvaala_core::storage::Error as StorageError;
use openvaala_core::{Runtime, RuntimeError};
use openvaala_protocol::PROTOCOL_VERSION;
use openvaala_protocol::handshake::Token;
use openvaala_protocol::rpc::params::server::RemoteAddress;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::VERSION;
use crate::assemble::assemble;
use crate::auth::{Keeper, Keys};
use crate::config::{ConfigDir, LocalProbe, RemoteConfig};
use crate::context::{Command, Context, Facts, Phase};
use crate::environment::Environment;
use crate::error::ServerError;
use crate::files::create_private_dir;
use crate::http::{
    Acceptor, DEFAULT_ADDRESS, Doors, Gate, Readiness, Remote, Wanted, bind, open_remote,
};
use crate::logs::Logs;
use crate::process::discovery::{self, DiscoveryFile, Found};
use crate::process::leftovers::Marker;
use crate::process::signals::Signals;
use crate::reload::{Reloader, Source};
use crate::run::{Parts, ServerLoop};

/// How long the end of what an earlier server has left is waited for.
const SWEEP_LIMIT: Duration = Duration::from_secs(2);

/// What a server needs to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The configuration directory; need not exist.
    pub config_dir: PathBuf,
    /// The data directory; made if it is missing.
    pub data_dir: PathBuf,
    /// Where the discovery file goes; made if it is missing.
    pub state_dir: PathBuf,
    /// Whether this is the data directory that clients look for if nobody names one. Default: yes.
    pub is_default_data_dir: bool,
    /// Where conversations work for which nobody names a folder. Default: `/`.
    pub working_dir: PathBuf,
    /// Where to listen, exactly; `None` leaves it to the configuration. Default: `None`.
    pub listen: Option<SocketAddr>,
    /// Where other machines reach it; `None` leaves it to the configuration. Default: `None`.
    pub remote: Option<RemoteConfig>,
    /// The variables that keys and children's environment are taken from. Default: none.
    pub environment: Environment,
    /// Where to look for model servers while nothing else is configured. Default: nowhere.
    pub probe: LocalProbe,
    /// Whether a client started it, so that it ends by itself when it has nothing to do. Default: no.
    pub started_by_client: bool,
    /// What keeps the end of its log for clients; whoever sets up `tracing` writes to it. Default: `None`, nothing.
    pub logs: Option<Logs>,
    /// Whether SIGTERM and SIGINT end it and SIGHUP reloads its configuration. Default: no, since signals belong to the
    /// whole process.
    pub handle_signals: bool,
}

impl ServerOptions {
    /// Options with those directories, all else at its default.
    pub fn new(
        config_dir: impl Into<PathBuf>,
        data_dir: impl Into<PathBuf>,
        state_dir: impl Into<PathBuf>,
    ) -> Self {
        Self {
            config_dir: config_dir.into(),
            data_dir: data_dir.into(),
            state_dir: state_dir.into(),
            is_default_data_dir: true,
            working_dir: PathBuf::from("/"),
            listen: None,
            remote: None,
            environment: Environment::default(),
            probe: LocalProbe::nowhere(),
            started_by_client: false,
            logs: None,
            handle_signals: false,
        }
    }

    /// Takes keys, the environment of children and the places of local model servers from those variables.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        self.probe = LocalProbe::from_environment(&environment);
        self.environment = environment;
        self
    }
}

/// A server that listens and can be found; it serves while [`run_until_stopped`](Self::run_until_stopped) runs.
///
/// Dropped without that it ends without order, and its discovery file stays.
pub struct Server {
    address: SocketAddr,
    remote_address: Option<SocketAddr>,
    token: Token,
    commands: mpsc::Sender<Command>,
    server: ServerLoop,
    reloader: AbortOnDropHandle<()>,
    /// Owns the tokens.
    keeper: AbortOnDropHandle<()>,
    /// Ends what a server before this one has left running.
    sweep: AbortOnDropHandle<()>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Ends a server from elsewhere in the process; clones end the same one.
#[derive(Clone, Debug)]
pub struct ServerHandle(mpsc::Sender<Command>);

impl ServerHandle {
    /// Tells the server to stop, in order; does not wait for its end. Does nothing if it has ended.
    pub async fn stop(&self, reason: impl Into<String>) {
        let _ = self
            .0
            .send(Command::Stop {
                reason: reason.into(),
                wait: Duration::ZERO,
            })
            .await;
    }
}

impl Server {
    /// Loads the configuration, opens the data directory, listens, and tells clients where.
    ///
    /// The index is brought up to date in the background, and turns that an earlier server left running are written down as
    /// interrupted soon after, at the latest when somebody opens their conversation.
    ///
    /// # Errors
    /// [`ServerError::Config`] with every broken file, [`ServerError::DataDirInUse`] if there is a server already,
    /// and others as their names say.
    pub async fn start(options: ServerOptions) -> Result<Self, ServerError> {
        // Before anything that could be left half done.
        let signals = if options.handle_signals {
            Signals::listen().map_err(|source| ServerError::Signals { source })?
        } else {
            Signals::ignore()
        };
        let source = Source {
            dir: ConfigDir::new(&options.config_dir),
            environment: options.environment.clone(),
            probe: options.probe.clone(),
        };
        let config = source.load().await?;
        let data_dir = prepare_data_dir(&options.data_dir)?;
        let marker = Marker::new(&data_dir);
        let (assembled, definitions) = assemble(config, &options.environment, &marker)?;
        let path = discovery::prepare(&options.state_dir, &data_dir, options.is_default_data_dir)?;
        let listener = bind(match (options.listen, assembled.config.listen) {
            (Some(address), _) | (None, Some(address)) => Wanted::Exactly(address),
            (None, None) => Wanted::Preferably(DEFAULT_ADDRESS),
        })
        .await?;
        let address = local_address(&listener)?;
        let keys = Keys::load(&data_dir)?;
        let mut degraded = Vec::new();
        let remote = match (options.remote, &assembled.config.remote) {
            (Some(wanted), _) if !keys.has_named() => {
                let address = wanted.listen;
                return Err(ServerError::NoToken { address });
            }
            // A token is made by the server: it has to start without one.
            (None, Some(wanted)) if !keys.has_named() => {
                degraded.push(format!(
                    "not listening at {}, since no token lets other machines in: run `openvaala token create NAME` \
                     and start the server again",
                    wanted.listen
                ));
                None
            }
            (Some(wanted), _) => Some(open_remote(wanted).await?),
            (None, Some(wanted)) => Some(open_remote(wanted.clone()).await?),
            (None, None) => None,
        };
        for warning in &degraded {
            tracing::warn!("{warning}");
        }
        for warning in &assembled.config.warnings {
            tracing::warn!("{warning}");
        }
        let builder = Runtime::builder()
            .data_dir(&data_dir)
            .announce(address.to_string());
        let runtime = builder.definitions(definitions).build().await;
        let runtime = runtime.map_err(|error| runtime_error(error, &data_dir))?;
        let facts = Facts {
            pid: std::process::id(),
            address,
            remote: remote.as_ref().map(|remote| RemoteAddress {
                address: remote.address.to_string(),
                encrypted: remote.tls.is_some(),
            }),
            data_dir,
            working_dir: options.working_dir,
            started_at: SystemClock.now(),
            degraded,
        };
        let token = keys.local().clone();
        let discovery = DiscoveryFile::write(found(&facts, token.clone(), path))?;
        tracing::info!(%address, data_dir = %facts.data_dir.display(), "the server listens");
        if let Some(remote) = &remote {
            let (address, encrypted) = (remote.address, remote.tls.is_some());
            tracing::info!(%address, encrypted, "the server listens for other machines");
        }
        let origins = assembled.config.origins.clone();

        let (assembled_sender, assembled) = watch::channel(Arc::new(assembled));
        let (phase_sender, phase) = watch::channel(Phase::Serving);
        let (commands, inbox) = mpsc::channel(256);
        let (reloads, reload_requests) = mpsc::channel(8);
        // Only whoever holds the data directory may end what belongs to it.
        let sweep = AbortOnDropHandle::new(tokio::spawn(marker.clone().end_leftovers()));
        let (remote, certificate) = match remote {
            Some(Remote {
                address,
                listener,
                hosts,
                tls,
            }) => {
                let newest = tls.as_ref().map(|(_, sender)| sender.subscribe());
                (Some((address, listener, hosts, newest)), tls)
            }
            None => (None, None),
        };
        let options_source = source.clone();
        let reloader = Reloader {
            source,
            marker,
            runtime: runtime.clone(),
            assembled: assembled_sender,
            address,
            certificate,
        };
        let (keys_sender, keys) = watch::channel(Arc::new(keys));
        let (tokens, token_requests) = mpsc::channel(8);
        let keeper = Keeper {
            keys: keys_sender,
            data_dir: facts.data_dir.clone(),
            discovery: discovery.clone(),
        };
        let keeper = AbortOnDropHandle::new(tokio::spawn(keeper.run(token_requests)));
        let reloader = AbortOnDropHandle::new(tokio::spawn(reloader.run(reload_requests)));
        let facts = Arc::new(facts);
        let readiness = Readiness::new(runtime.clone(), phase.clone());
        let context = Context {
            runtime,
            assembled,
            facts,
            phase,
            commands: commands.clone(),
            reloads,
            source: Arc::new(options_source),
            logs: options.logs,
            keys: keys.clone(),
            tokens,
            client: None,
        };
        let gate = Gate::local(address, &origins, keys, readiness, commands.clone());
        let remote_address = remote.as_ref().map(|(address, ..)| *address);
        let remote = remote.map(|(address, listener, hosts, tls)| {
            let gate = gate.remote(address, &hosts, &origins, tls);
            (Acceptor::new(listener), gate)
        });
        let server = ServerLoop::new(Parts {
            doors: Doors::new((Acceptor::new(listener), gate), remote),
            context,
            commands: inbox,
            phase: phase_sender,
            signals,
            discovery,
            ends_idle: options.started_by_client,
        });
        Ok(Self {
            address,
            remote_address,
            token,
            commands,
            server,
            reloader,
            keeper,
            sweep,
        })
    }

    /// Where it listens for clients of this machine.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens for those of others, if it does.
    #[must_use]
    pub const fn remote_address(&self) -> Option<SocketAddr> {
        self.remote_address
    }

    /// The secret that clients must hold.
    #[must_use]
    pub const fn token(&self) -> &Token {
        &self.token
    }

    /// A handle to end it with.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle(self.commands.clone())
    }

    /// Serves until a client, a signal, a handle, or having nothing to do ends it.
    ///
    /// Then running turns are written down as interrupted, clients see it, and the data directory is given back: within
    /// ten seconds, or one after a second signal.
    pub async fn run_until_stopped(self) {
        let Self {
            server,
            reloader,
            keeper,
            sweep,
            ..
        } = self;
        server.run().await;
        // What ignores a request to end is killed a moment later, and nobody would do it after this server.
        let _ = timeout(SWEEP_LIMIT, sweep).await;
        reloader.abort();
        // It holds the runtime, and with it the lock of the data directory.
        let _ = reloader.await;
        drop(keeper);
        tracing::info!("the server has ended");
    }
}

fn prepare_data_dir(path: &Path) -> Result<PathBuf, ServerError> {
    create_private_dir(path)
        .and_then(|()| fs::canonicalize(path))
        .map_err(|source| ServerError::Directory {
            path: path.to_owned(),
            source,
        })
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, ServerError> {
    let address = DEFAULT_ADDRESS;
    listener
        .local_addr()
        .map_err(|source| ServerError::Listen { address, source })
}

fn runtime_error(error: RuntimeError, data_dir: &Path) -> ServerError {
    match error {
        RuntimeError::Storage(StorageError::Locked { holder, .. }) => ServerError::DataDirInUse {
            data_dir: data_dir.to_owned(),
            pid: holder.as_ref().map(|holder| holder.pid),
            address: holder.and_then(|holder| holder.address),
        },
        error => ServerError::Runtime(error),
    }
}

fn found(facts: &Facts, token: Token, path: PathBuf) -> Found {
    Found {
        pid: facts.pid,
        address: facts.address,
        token,
        data_dir: facts.data_dir.clone(),
        version: VERSION.to_owned(),
        protocol_version: PROTOCOL_VERSION.to_owned(),
        started_at: facts.started_at,
        path,
    }
}
