//! The certificates of the system, read when they are needed: it takes longer than all else at a start.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

type Load = fn(Arc<CryptoProvider>) -> Result<Verifier, Error>;

/// Trusts what the system trusts; reads the certificates at the first one that it has to verify.
///
/// While there are none it refuses every certificate and looks again the next time.
#[derive(Debug)]
pub(super) struct SystemVerifier {
    crypto: Arc<CryptoProvider>,
    load: Load,
    loaded: OnceLock<Verifier>,
}

impl SystemVerifier {
    pub(super) fn new(crypto: Arc<CryptoProvider>) -> Self {
        Self::loading(crypto, Verifier::new)
    }

    fn loading(crypto: Arc<CryptoProvider>, load: Load) -> Self {
        Self {
            crypto,
            load,
            loaded: OnceLock::new(),
        }
    }

    fn verifier(&self) -> Result<&Verifier, Error> {
        if let Some(verifier) = self.loaded.get() {
            return Ok(verifier);
        }
        // Two first connections may both read; the second result is dropped.
        let verifier = (self.load)(Arc::clone(&self.crypto)).inspect_err(|error| {
            tracing::warn!(%error, "no certificates of the system: https addresses cannot be reached");
        })?;
        Ok(self.loaded.get_or_init(|| verifier))
    }
}

impl ServerCertVerifier for SystemVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.crypto.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.crypto.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    /// Asked for at every greeting, also before any certificate is read.
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.crypto
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustls::crypto::ring;
    use rustls_platform_verifier::Verifier;

    use super::*;

    fn verify(verifier: &SystemVerifier) -> Error {
        let name = ServerName::try_from("example.com").unwrap();
        let certificate = CertificateDer::from(vec![1, 2, 3]);
        verifier
            .verify_server_cert(&certificate, &[], &name, &[], UnixTime::now())
            .unwrap_err()
    }

    #[test]
    fn the_certificates_are_not_read_before_one_has_to_be_verified() {
        let verifier = SystemVerifier::loading(Arc::new(ring::default_provider()), |_| {
            panic!("read too early")
        });
        let eager = Verifier::new(Arc::new(ring::default_provider()));
        if let Ok(eager) = eager {
            assert_eq!(
                verifier.supported_verify_schemes(),
                eager.supported_verify_schemes()
            );
        }
        assert!(!verifier.supported_verify_schemes().is_empty());
    }

    #[test]
    fn the_certificates_are_read_once() {
        static LOADED: AtomicUsize = AtomicUsize::new(0);
        let crypto = Arc::new(ring::default_provider());
        let verifier = SystemVerifier::loading(crypto, |crypto| {
            LOADED.fetch_add(1, Ordering::Relaxed);
            Verifier::new(crypto)
        });
        if Verifier::new(Arc::new(ring::default_provider())).is_err() {
            // This machine has no certificates.
            return;
        }
        verify(&verifier);
        verify(&verifier);
        assert_eq!(LOADED.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_system_without_certificates_is_named_and_looked_at_again() {
        static LOADED: AtomicUsize = AtomicUsize::new(0);
        let crypto = Arc::new(ring::default_provider());
        let verifier = SystemVerifier::loading(crypto, |_| {
            LOADED.fetch_add(1, Ordering::Relaxed);
            Err(Error::General("No CA certificates were loaded".to_owned()))
        });
        let expected = Error::General("No CA certificates were loaded".to_owned());
        assert_eq!(verify(&verifier), expected);
        assert_eq!(verify(&verifier), expected);
        assert_eq!(LOADED.load(Ordering::Relaxed), 2);
    }
}
