//! What the server shows to other machines so that nobody else can read or change what is said.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::TlsFiles;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is no {what} in the form PEM: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The key is not that of the certificate, or of a kind that cannot be used.
    #[error("the certificate {} cannot be used with the key {}", certificate.display(), key.display())]
    Pair {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// Reads a certificate and its key. Blocks for as long as the disk does.
pub(crate) fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let TlsFiles { certificate, key } = files;
    let text = read(certificate)?;
    let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let chain = match chain {
        Ok(chain) if !chain.is_empty() => chain,
        Ok(_) => return Err(malformed(certificate, "certificate", "there is none in it")),
        Err(error) => return Err(malformed(certificate, "certificate", error)),
    };
    let text = read(key)?;
    let private = PrivateKeyDer::from_pem_slice(&text);
    let private = private.map_err(|error| malformed(key, "private key", error))?;
    let pair = |source| TlsError::Pair {
        certificate: certificate.clone(),
        key: key.clone(),
        source,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

fn malformed(path: &Path, what: &'static str, why: impl ToString) -> TlsError {
    TlsError::Malformed {
        path: path.to_owned(),
        what,
        why: why.to_string(),
    }
}
