//! Encrypted connections, to servers on other machines.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::ClientError;

/// Whom an encrypted connection trusts; clones share it.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ClientConfig>);

/// Why nobody could be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A text that should hold certificates is none.
    #[error("there is no certificate in the form PEM in it: {why}")]
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// The certificates of the system, or those that were given, cannot be used.
    #[error("the certificates to trust cannot be used")]
    Unusable {
        /// Why.
        source: rustls::Error,
    },
}

impl Tls {
    /// Trusts whom the system trusts, and those besides whose certificates are in `more`, in the form PEM; it may be empty.
    ///
    /// Reads the certificates of the system, which takes some milliseconds.
    ///
    /// # Errors
    /// [`TlsError`]: a text without a certificate, or no certificate that can be used.
    pub fn trusting(more: &[u8]) -> Result<Self, TlsError> {
        let roots = CertificateDer::pem_slice_iter(more).collect::<Result<Vec<_>, _>>();
        let roots = roots.map_err(|error| TlsError::Malformed {
            why: error.to_string(),
        })?;
        if roots.is_empty() && !more.is_empty() {
            let why = "it has none".to_owned();
            return Err(TlsError::Malformed { why });
        }
        let unusable = |source| TlsError::Unusable { source };
        let crypto = Arc::new(ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(roots, Arc::clone(&crypto));
        let config = ClientConfig::builder_with_provider(crypto)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier.map_err(unusable)?))
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Encrypts a connection to a server of that address.
    pub(super) async fn connect(
        &self,
        address: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, ClientError> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| ClientError::NotTrusted {
            address: address.to_owned(),
            reason: format!("{host:?} is no name that a certificate can have: {error}"),
        })?;
        let connector = TlsConnector::from(Arc::clone(&self.0));
        connector
            .connect(name, stream)
            .await
            .map_err(|error| refused(address, error))
    }
}

fn refused(address: &str, error: io::Error) -> ClientError {
    let address = address.to_owned();
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    match tls {
        Some(rustls::Error::InvalidCertificate(why)) => ClientError::NotTrusted {
            address,
            reason: why.to_string(),
        },
        Some(other) => ClientError::WrongServer {
            address,
            reason: format!("no encrypted connection comes about: {other}"),
        },
        None => ClientError::Unreachable {
            address,
            source: error,
        },
    }
}
