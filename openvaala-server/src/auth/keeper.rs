//! The one owner of the tokens: makes, revokes and replaces them, one request after the other.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openvaala_core::environment::{Clock, SystemClock};
use openvaala_protocol::handshake::{Credential, NoRandomness, Token};
use openvaala_protocol::rpc::params::token::{
    BindParams, BindResult, CreateParams, CreateResult, TokenText,
};
use openvaala_protocol::rpc::{ErrorCode, Right, Rights, RpcError};
use openvaala_protocol::time::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use super::bound::Bound;
use super::file;
use super::keys::{Keys, Named};
use crate::methods::error::with_causes;
use crate::process::discovery::DiscoveryFile;

/// How many tokens with names there may be.
const MAX_TOKENS: usize = 1_000;
/// The longest name.
const MAX_NAME: usize = 64;
/// The longest time that a bound token is good for.
const MAX_BOUND: Duration = Duration::from_secs(7 * 24 * 3_600);

type Reply<T> = oneshot::Sender<Result<T, RpcError>>;

/// What is asked of the keeper.
#[derive(Debug)]
pub(crate) enum TokenRequest {
    Create {
        params: CreateParams,
        reply: Reply<CreateResult>,
    },
    Revoke {
        name: String,
        reply: Reply<()>,
    },
    Rotate {
        reply: Reply<()>,
    },
    Bind {
        params: BindParams,
        reply: Reply<BindResult>,
    },
}

/// The owner of the tokens.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) keys: watch::Sender<Arc<Keys>>,
    pub(crate) data_dir: PathBuf,
    pub(crate) discovery: DiscoveryFile,
}

impl Keeper {
    /// Takes requests until nobody can ask any more.
    pub(crate) async fn run(self, mut requests: mpsc::Receiver<TokenRequest>) {
        while let Some(request) = requests.recv().await {
            // Whoever asked may have gone.
            match request {
                TokenRequest::Create { params, reply } => {
                    let _ = reply.send(self.create(params).await);
                }
                TokenRequest::Revoke { name, reply } => {
                    let _ = reply.send(self.revoke(&name).await);
                }
                TokenRequest::Rotate { reply } => {
                    let _ = reply.send(self.rotate().await);
                }
                TokenRequest::Bind { params, reply } => {
                    let _ = reply.send(self.bind(&params));
                }
            }
        }
    }

    async fn create(&self, params: CreateParams) -> Result<CreateResult, RpcError> {
        let CreateParams { name, rights } = params;
        check_name(&name)?;
        check_rights(&rights)?;
        let mut named = self.keys.borrow().named.clone();
        if named.contains_key(&name) {
            let message =
                format!("there is a token {name:?} already: revoke it first, or take another name");
            return Err(RpcError::new(ErrorCode::TokenExists, message));
        }
        if named.len() >= MAX_TOKENS {
            let message = format!("there are {MAX_TOKENS} tokens already: revoke some");
            return Err(RpcError::new(ErrorCode::Runtime, message));
        }
        let token = Token::generate().map_err(no_randomness)?;
        let entry = Named {
            verifier: token.verifier(),
            rights,
            created_at: SystemClock.now(),
        };
        named.insert(name.clone(), entry);
        self.save(named).await?;
        tracing::info!(name, "a token was made");
        let text = Credential::named(name, token).to_text();
        Ok(CreateResult {
            token: TokenText::new(text),
        })
    }

    async fn revoke(&self, name: &str) -> Result<(), RpcError> {
        let mut named = self.keys.borrow().named.clone();
        if named.remove(name).is_none() {
            let shown: String = name.chars().take(MAX_NAME).collect();
            let message = format!("there is no token {shown:?}: `openvaala token list` shows them");
            return Err(RpcError::new(ErrorCode::TokenNotFound, message));
        }
        self.save(named).await?;
        tracing::info!(name, "a token was revoked");
        Ok(())
    }

    /// Nothing counts before it is on disk: what was revoked would be good again after a crash.
    async fn save(&self, named: BTreeMap<String, Named>) -> Result<(), RpcError> {
        let (dir, written) = (self.data_dir.clone(), named.clone());
        blocking(move || file::save(&dir, &written)).await?;
        self.keys.send_modify(|keys| {
            *keys = Arc::new(Keys {
                named,
                ..(**keys).clone()
            });
        });
        Ok(())
    }

    async fn rotate(&self) -> Result<(), RpcError> {
        let keys = self.keys.borrow().rotated().map_err(no_randomness)?;
        let (discovery, token) = (self.discovery.clone(), keys.local().clone());
        blocking(move || discovery.rewrite(&token)).await?;
        self.keys.send_replace(Arc::new(keys));
        tracing::info!("the server has a new token of its own");
        Ok(())
    }

    fn bind(&self, params: &BindParams) -> Result<BindResult, RpcError> {
        check_rights(&params.rights)?;
        if params.rights.has(Right::Admin) {
            let message = "rights: a token for one session cannot allow `admin`";
            return Err(RpcError::new(ErrorCode::InvalidParams, message));
        }
        let length = u64::from(params.expires_in_seconds);
        if !(1..=MAX_BOUND.as_secs()).contains(&length) {
            let message = format!(
                "expires_in_seconds: {length} is out of range: expected 1 to {}",
                MAX_BOUND.as_secs()
            );
            return Err(RpcError::new(ErrorCode::InvalidParams, message));
        }
        // In whole seconds, rounded up: never shorter than asked.
        let seconds =
            SystemClock.now().as_millis() / 1_000 + 1 + i64::from(params.expires_in_seconds);
        let bound = Bound {
            conversation_id: params.conversation_id,
            session_id: params.session_id,
            rights: params.rights.clone(),
            expires_at: Timestamp::from_millis(seconds * 1_000),
        };
        let id = bound.to_string();
        let token = self.keys.borrow().binding.derive(&id);
        Ok(BindResult {
            token: TokenText::new(Credential::named(id, token).to_text()),
            expires_at: bound.expires_at,
        })
    }
}

fn check_name(name: &str) -> Result<(), RpcError> {
    // No dot: it sets the names of bound tokens apart.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    let message = format!("name: expected 1 to {MAX_NAME} of a-z A-Z 0-9 _ -");
    Err(RpcError::new(ErrorCode::InvalidParams, message))
}

fn check_rights(rights: &Rights) -> Result<(), RpcError> {
    if rights.is_empty() {
        let message = "rights: a token without any right is good for nothing: name some of watch, send, approve, admin";
        return Err(RpcError::new(ErrorCode::InvalidParams, message));
    }
    Ok(())
}

async fn blocking<E: std::error::Error + Send + 'static>(
    work: impl FnOnce() -> Result<(), E> + Send + 'static,
) -> Result<(), RpcError> {
    let done = tokio::task::spawn_blocking(work).await;
    let message = match done {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => with_causes(&error),
        Err(error) => with_causes(&io::Error::other(error)),
    };
    let message = format!("nothing was changed, since a file cannot be written: {message}");
    Err(RpcError::new(ErrorCode::Runtime, message))
}

fn no_randomness(error: NoRandomness) -> RpcError {
    RpcError::new(ErrorCode::Runtime, error.to_string())
}
