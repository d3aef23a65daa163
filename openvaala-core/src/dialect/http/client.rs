//! An HTTP client that leaves the process as it was: no global TLS provider, no environment variables for proxies.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy};
use rustls::ClientConfig;
use rustls::crypto::ring;

use super::verifier::SystemVerifier;
use crate::model::{ModelError, ModelErrorKind};

/// What the HTTP client of the providers needs to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// How long a connection may take to come about. Default: 20 seconds.
    pub connect_timeout: Duration,
    /// The address of a proxy for all requests, such as `http://proxy.example:3128`. Default: none.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, in the form of the variable `NO_PROXY`. Default: none.
    pub no_proxy: Option<String>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(20),
            proxy: None,
            no_proxy: None,
        }
    }
}

/// A client with the default options.
///
/// # Errors
/// See [`client`].
pub fn default_client() -> Result<Client, ModelError> {
    client(ClientOptions::default())
}

/// An HTTP client for providers: rustls with ring, the certificates of the system, no redirects.
///
/// It neither needs nor installs a default crypto provider of the process. Certificates come from where the
/// system keeps them (on Linux also from `SSL_CERT_FILE` and `SSL_CERT_DIR`) and are read at the first connection to
/// an `https://` address, once for all who share the client; on a system without any, only `http://` addresses can
/// be reached. A redirect is not followed, because it would take the conversation to a place that nobody has named.
///
/// # Errors
/// [`ModelErrorKind::BadRequest`] if the address of the proxy is no URL; [`ModelErrorKind::Connection`] if TLS
/// cannot be set up.
pub fn client(options: ClientOptions) -> Result<Client, ModelError> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls_config()?)
        .connect_timeout(options.connect_timeout)
        .redirect(Policy::none())
        .no_proxy();
    if let Some(address) = options.proxy {
        let proxy = Proxy::all(&address).map_err(|error| {
            let message = "the address of the proxy is no URL; expected something like \
                           http://proxy.example:3128";
            ModelError::new(ModelErrorKind::BadRequest, message).with_source(error.without_url())
        })?;
        let exceptions = options.no_proxy.as_deref().and_then(NoProxy::from_string);
        builder = builder.proxy(proxy.no_proxy(exceptions));
    }
    builder
        .build()
        .map_err(|error| tls_failure(error.without_url()))
}

fn tls_config() -> Result<ClientConfig, ModelError> {
    let crypto = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&crypto))
        .with_safe_default_protocol_versions()
        .map_err(tls_failure)?;
    let verifier = SystemVerifier::new(crypto);
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn tls_failure(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ModelError {
    ModelError::new(ModelErrorKind::Connection, "TLS could not be set up").with_source(error)
}

#[cfg(test)]
mod tests {
    use rustls::crypto::CryptoProvider;

    use super::{ClientOptions, client, default_client};

    #[test]
    fn a_client_leaves_the_crypto_provider_of_the_process_alone() {
        default_client().unwrap();
        assert!(CryptoProvider::get_default().is_none());
    }

    #[test]
    fn a_proxy_that_is_no_url_is_named() {
        let options = ClientOptions {
            proxy: Some("http://[".to_owned()),
            ..Default::default()
        };
        let error = client(options).unwrap_err();
        assert!(error.message.contains("address of the proxy"), "{error}");
    }
}
