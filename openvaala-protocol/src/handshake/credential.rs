//! Tokens with a name, of which the server keeps only what it needs to know them again.
//!
//! The scheme is that of SCRAM (RFC 5802) without salt and rounds, which random keys do not need: the client shows that it has
//! the token by a text that the server can check with the [`Verifier`], but nobody can make from it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Digits, Nonce, Proof, Token, client_proof, keyed, server_proof};

/// The header in which a client names its token when it asks for the challenge; left out for the one of the discovery file.
pub const TOKEN_HEADER: &str = "x-openvaala-token";

/// The longest name of a token.
const MAX_ID: usize = 200;

const CLIENT_KEY: &[u8] = b"openvaala client key v1";
const SERVER_KEY: &[u8] = b"openvaala server key v1";

/// A token and its name, as a client holds it: `NAME:` and 64 hex digits, or the digits alone for that of the discovery file.
///
/// Its `Debug` form shows the name only.
///
/// ```
/// use openvaala_protocol::handshake::Credential;
///
/// let text = format!("phone:{}", "0a".repeat(32));
/// let credential: Credential = text.parse()?;
/// assert_eq!(credential.id(), Some("phone"));
/// assert_eq!(credential.to_text(), text);
/// # Ok::<(), openvaala_protocol::handshake::InvalidCredential>(())
/// ```
#[derive(Clone)]
pub struct Credential {
    id: Option<String>,
    token: Token,
}

/// What a server keeps of a named token: enough to check a proof, not enough to make one.
///
/// Comparing two of them takes the same time wherever they differ.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Verifier {
    /// SHA-256 of the client's key.
    stored_key: Digits,
    /// What the server proves itself with.
    server_key: Digits,
}

/// What a server checks proofs with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Key {
    /// The token of the discovery file.
    Shared(Token),
    /// What is kept of a token with a name.
    Verifier(Verifier),
}

/// A text that is no token; it is not repeated, since it may be a secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a token must be 64 hex digits, perhaps after its name and a colon")]
#[non_exhaustive]
pub struct InvalidCredential;

impl Credential {
    /// A token with a name.
    pub fn named(id: impl Into<String>, token: Token) -> Self {
        let id = Some(id.into());
        Self { id, token }
    }

    /// Its name; `None` for the token of the discovery file.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The token itself.
    #[must_use]
    pub const fn token(&self) -> &Token {
        &self.token
    }

    /// Writes it as it is read, for the file that its holder keeps.
    #[must_use]
    pub fn to_text(&self) -> String {
        let digits = self.token.to_hex();
        self.id
            .as_ref()
            .map_or_else(|| digits.clone(), |id| format!("{id}:{digits}"))
    }

    /// The proof that the right server sends.
    #[must_use]
    pub fn server_proof(&self, client: &Nonce, server: &Nonce) -> Proof {
        match self.id {
            None => server_proof(&self.token, client, server),
            Some(_) => self.token.verifier().server_proof(client, server),
        }
    }

    /// The proof to send to it.
    ///
    /// With a name it is the client's key, XORed with [`client_proof`] under the stored key, so that only who knows the
    /// verifier can take the two apart.
    #[must_use]
    pub fn client_proof(&self, client: &Nonce, server: &Nonce) -> Proof {
        if self.id.is_none() {
            return client_proof(&self.token, client, server);
        }
        let key = self.token.client_key();
        let mask = client_proof(&Token(Sha256::digest(key).into()), client, server);
        Proof(xor(&key, &mask.0))
    }
}

impl From<Token> for Credential {
    fn from(token: Token) -> Self {
        Self { id: None, token }
    }
}

impl FromStr for Credential {
    type Err = InvalidCredential;

    fn from_str(text: &str) -> Result<Self, InvalidCredential> {
        let (id, token) = match text.trim().split_once(':') {
            None => (None, text.trim()),
            Some((id, token)) => (Some(id), token),
        };
        let is_id = |id: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            (1..=MAX_ID).contains(&id.len()) && id.bytes().all(allowed)
        };
        if !id.is_none_or(is_id) {
            return Err(InvalidCredential);
        }
        Ok(Self {
            id: id.map(str::to_owned),
            token: token.parse().map_err(|_| InvalidCredential)?,
        })
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Token {
    /// What a server keeps of this token if it has a name.
    #[must_use]
    pub fn verifier(&self) -> Verifier {
        Verifier {
            stored_key: Digits(Sha256::digest(self.client_key()).into()),
            server_key: Digits(keyed(&self.0, &[SERVER_KEY])),
        }
    }

    fn client_key(&self) -> [u8; 32] {
        keyed(&self.0, &[CLIENT_KEY])
    }
}

impl Verifier {
    fn server_proof(&self, client: &Nonce, server: &Nonce) -> Proof {
        server_proof(&Token(self.server_key.0), client, server)
    }

    fn accepts(&self, proof: &Proof, client: &Nonce, server: &Nonce) -> bool {
        let mask = client_proof(&Token(self.stored_key.0), client, server);
        let key: [u8; 32] = Sha256::digest(xor(&proof.0, &mask.0)).into();
        key.ct_eq(&self.stored_key.0).into()
    }
}

impl PartialEq for Verifier {
    fn eq(&self, other: &Self) -> bool {
        (self.stored_key.0.ct_eq(&other.stored_key.0)
            & self.server_key.0.ct_eq(&other.server_key.0))
        .into()
    }
}

impl Eq for Verifier {}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(..)")
    }
}

impl Key {
    /// The proof to send to a client.
    #[must_use]
    pub fn server_proof(&self, client: &Nonce, server: &Nonce) -> Proof {
        match self {
            Self::Shared(token) => server_proof(token, client, server),
            Self::Verifier(verifier) => verifier.server_proof(client, server),
        }
    }

    /// Whether a client's proof was made with the token; takes the same time wherever it is wrong.
    #[must_use]
    pub fn accepts(&self, proof: &Proof, client: &Nonce, server: &Nonce) -> bool {
        match self {
            Self::Shared(token) => *proof == client_proof(token, client, server),
            Self::Verifier(verifier) => verifier.accepts(proof, client, server),
        }
    }

    /// Whether this is the token itself; takes the same time wherever it is wrong.
    #[must_use]
    pub fn is_of(&self, token: &Token) -> bool {
        match self {
            Self::Shared(own) => own.0.ct_eq(&token.0).into(),
            Self::Verifier(verifier) => *verifier == token.verifier(),
        }
    }
}

fn xor(a: &[u8; 32], b: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|at| a[at] ^ b[at])
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    const NONCES: (Nonce, Nonce) = (Nonce([0xaa; 32]), Nonce([0xbb; 32]));

    #[test]
    fn a_named_token_is_proven_and_a_verifier_proves_nothing() {
        let (client, server) = NONCES;
        let token = Token::generate().unwrap();
        let key = Key::Verifier(token.verifier());
        let named = Credential::named("phone", token.clone());
        assert_eq!(
            named.server_proof(&client, &server),
            key.server_proof(&client, &server)
        );
        assert!(key.accepts(&named.client_proof(&client, &server), &client, &server));
        // What a thief of the file has, used in each way that a token is used.
        let Verifier {
            stored_key,
            server_key,
        } = token.verifier();
        for stolen in [Token(stored_key.0), Token(server_key.0)] {
            for thief in [
                Credential::named("phone", stolen.clone()),
                Credential::from(stolen),
            ] {
                assert!(!key.accepts(&thief.client_proof(&client, &server), &client, &server));
            }
        }
        let unnamed = Credential::from(token);
        assert!(!key.accepts(&unnamed.client_proof(&client, &server), &client, &server));
        assert!(!key.accepts(&named.client_proof(&server, &client), &client, &server));
    }

    #[test]
    fn the_proof_of_a_named_token_is_what_the_document_describes() {
        // Computed with Python, as docs/protocol.md says, from bytes(range(32)) and the nonces.
        let (client, server) = NONCES;
        let token: Token = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
            .parse()
            .unwrap();
        let named = Credential::named("phone", token);
        assert_eq!(
            [
                named.server_proof(&client, &server),
                named.client_proof(&client, &server)
            ]
            .map(|proof| proof.to_string()),
            [
                "2c89c240469d43e679d631c9bd18624a71e7688b05d3df64fa2795a473b95217",
                "beacf2d154dd48082cefa43f3f9cd9b05611054861e1fb3ef63ac623436917bc"
            ]
        );
    }

    #[test]
    fn s_18_neither_a_token_nor_what_is_kept_of_it_shows_in_debug_texts() {
        let token = Token::generate().unwrap();
        let digits = token.to_hex();
        let credential = Credential::named("phone", token.clone());
        let texts = format!(
            "{credential:?} {:?} {:?}",
            token.verifier(),
            Key::Shared(token)
        );
        assert!(
            texts.contains("phone") && !texts.contains(&digits),
            "{texts}"
        );
        let error = format!("phone:{}", &digits[1..]).parse::<Credential>();
        let error = error.unwrap_err().to_string();
        assert!(!error.contains(&digits[1..]), "{error}");
    }

    #[test]
    fn a_name_with_anything_else_in_it_is_refused() {
        let digits = "0a".repeat(32);
        for id in ["", "a b", "a:b", "ä", "a/b", &"x".repeat(201)] {
            assert!(
                format!("{id}:{digits}").parse::<Credential>().is_err(),
                "{id:?}"
            );
        }
        assert!(format!("a-B_9.c:{digits}\n").parse::<Credential>().is_ok());
    }

    proptest! {
        #[test]
        fn a_verifier_comes_back_from_a_file_as_it_was(bytes: [u8; 32]) {
            let verifier = Token(bytes).verifier();
            let text = serde_json::to_string(&verifier).unwrap();
            prop_assert!(serde_json::from_str::<Verifier>(&text).unwrap() == verifier);
        }
    }
}
