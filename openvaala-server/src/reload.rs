//! Loads the configuration: at the start, and anew while the server runs.

use std::net::SocketAddr;
use std::sync::Arc;

use openvaala_core::Runtime;
use openvaala_protocol::approval::ApprovalRule;
use openvaala_protocol::rpc::params::server::ReloadResult;
use openvaala_protocol::rpc::{ErrorCode, RpcError};
use rustls::ServerConfig;
use tokio::sync::{mpsc, watch};

use crate::assemble::{Assembled, assemble};
use crate::config::{
    AddProviderError, Before, Config, ConfigDir, ConfigError, EditError, LocalProbe, TlsFiles,
};
use crate::context::{ConfigChange, Reload};
use crate::environment::Environment;
use crate::error::ServerError;
use crate::http::tls;
use crate::methods::error::with_causes;
use crate::process::leftovers::Marker;

/// Where a configuration comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) dir: ConfigDir,
    pub(crate) environment: Environment,
    pub(crate) probe: LocalProbe,
}

impl Source {
    /// Loads everything, or nothing.
    pub(crate) async fn load(&self) -> Result<Config, ConfigError> {
        let (dir, environment) = (self.dir.clone(), self.environment.clone());
        let loaded = tokio::task::spawn_blocking(move || dir.load(&environment)).await;
        let config = match loaded {
            Ok(config) => config?,
            Err(error) => return Err(ConfigError::fault(error)),
        };
        config.with_detected(&self.environment, &self.probe).await
    }
}

/// The one owner of the configuration in force.
pub(crate) struct Reloader {
    pub(crate) source: Source,
    /// Marks the processes of this server.
    pub(crate) marker: Marker,
    pub(crate) runtime: Runtime,
    pub(crate) assembled: watch::Sender<Arc<Assembled>>,
    /// Where the server listens.
    pub(crate) address: SocketAddr,
    /// The certificate that other machines are shown.
    pub(crate) certificate: Option<(TlsFiles, watch::Sender<Arc<ServerConfig>>)>,
}

impl Reloader {
    /// Takes requests to load anew, one after the other, until nobody can ask any more.
    pub(crate) async fn run(self, mut requests: mpsc::Receiver<Reload>) {
        while let Some(Reload { change, reply }) = requests.recv().await {
            let before = match self.change(change).await {
                Ok(before) => before,
                Err(error) => {
                    // Whoever asked may have gone.
                    let _ = reply.send(Err(error));
                    continue;
                }
            };
            let result = self.reload().await.map_err(|error| {
                let message = format!(
                    "the configuration before stays in force: {}",
                    with_causes(&error)
                );
                RpcError::new(ErrorCode::Runtime, message)
            });
            if let (Err(_), Some(before)) = (&result, before) {
                self.undo(before).await;
            }
            match &result {
                Ok(_) => tracing::info!("the configuration was loaded anew"),
                Err(error) => tracing::warn!("{}", error.message),
            }
            // Whoever asked may have gone.
            let _ = reply.send(result);
        }
    }

    /// Writes a change to the configuration; gives what was there before where that is to come back if it does not work.
    async fn change(&self, change: Option<ConfigChange>) -> Result<Option<Before>, RpcError> {
        let (dir, environment) = (self.source.dir.clone(), self.source.environment.clone());
        let changed = match change {
            None => return Ok(None),
            Some(ConfigChange::Rule(rule)) => return self.add_rule(rule).await.map(|()| None),
            Some(ConfigChange::AddProvider(provider)) => {
                tokio::task::spawn_blocking(move || dir.put_provider(&provider, &environment)).await
            }
            Some(ConfigChange::RemoveProvider(name)) => {
                tokio::task::spawn_blocking(move || dir.remove_provider(&name, &environment)).await
            }
            Some(ConfigChange::Edit(edit)) => {
                let edited = tokio::task::spawn_blocking(move || dir.edit(edit, &environment));
                return match edited.await {
                    Ok(edited) => edited.map(Some).map_err(|error| edit_error(&error)),
                    Err(error) => Err(RpcError::new(ErrorCode::Runtime, error.to_string())),
                };
            }
        };
        match changed {
            Ok(Ok(before)) => Ok(Some(before)),
            Ok(Err(error)) => {
                let code = match error {
                    AddProviderError::BrokenBefore { .. } | AddProviderError::Write { .. } => {
                        ErrorCode::Runtime
                    }
                    _ => ErrorCode::InvalidParams,
                };
                Err(RpcError::new(code, with_causes(&error)))
            }
            Err(error) => Err(RpcError::new(ErrorCode::Runtime, error.to_string())),
        }
    }

    async fn undo(&self, before: Before) {
        let undone = tokio::task::spawn_blocking(move || before.restore()).await;
        if !matches!(undone, Ok(Ok(()))) {
            tracing::error!(?undone, "a change of the configuration could not be undone");
        }
    }

    /// Writes a rule to the configuration.
    async fn add_rule(&self, rule: ApprovalRule) -> Result<(), RpcError> {
        let (dir, environment) = (self.source.dir.clone(), self.source.environment.clone());
        let added =
            tokio::task::spawn_blocking(move || dir.add_approval_rule(&rule, &environment)).await;
        let message = match added {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => with_causes(&error),
            Err(error) => error.to_string(),
        };
        Err(RpcError::new(ErrorCode::Runtime, message))
    }

    async fn reload(&self) -> Result<ReloadResult, ServerError> {
        let config = self.source.load().await?;
        let (assembled, definitions) = assemble(config, &self.source.environment, &self.marker)?;
        // A certificate has an end, and a new one often the same name.
        let certificate = match &self.certificate {
            Some((files, newest)) => {
                let files = files.clone();
                let read = tokio::task::spawn_blocking(move || tls::load(&files)).await;
                let read = read.map_err(ConfigError::fault)??;
                Some((newest, read))
            }
            None => None,
        };
        let mut after_restart = match assembled.config.listen {
            Some(listen) if listen != self.address => {
                vec![format!(
                    "listen: {listen} (the server listens at {})",
                    self.address
                )]
            }
            _ => Vec::new(),
        };
        let before = Arc::clone(&self.assembled.borrow());
        if assembled.config.remote != before.config.remote {
            after_restart.push("remote: other machines reach the server as before".to_owned());
        }
        if assembled.config.origins != before.config.origins {
            after_restart.push("origins: the pages before may connect".to_owned());
        }
        let default_model = assembled.default_model.clone();
        if let Some((newest, certificate)) = certificate {
            newest.send_replace(certificate);
        }
        self.runtime.replace_definitions(definitions);
        self.assembled.send_replace(Arc::new(assembled));
        Ok(ReloadResult {
            default_model,
            after_restart,
        })
    }
}

fn edit_error(error: &EditError) -> RpcError {
    let code = match error {
        EditError::Changed { .. } => ErrorCode::ConfigChanged,
        error if error.is_of_caller() => ErrorCode::InvalidParams,
        _ => ErrorCode::Runtime,
    };
    RpcError::new(code, with_causes(error))
}
