//! The challenge and proof that client and server exchange before a WebSocket opens.
//!
//! Both hold the same [`Token`] and show it to each other without ever sending it:
//!
//! 1. The client sends `GET` [`CHALLENGE_PATH`] with a nonce of its own in the header [`NONCE_HEADER`].
//! 2. The server answers with a [`Challenge`]: its own nonce, and its [`server_proof`] over both. A client
//!    that does not find the proof it expects talks to the wrong process and goes away.
//! 3. On the same connection the client asks for the upgrade, with its [`client_proof`] in the header
//!    `Authorization` (see [`Proof::to_authorization`]). The server takes each pair of nonces once.
//!
//! That is how it goes with the token of the discovery file, which both sides have. Of a token with a name the server has only
//! a [`Verifier`], which is no token: see [`Credential`].
//!
//! ```
//! use openvaala_protocol::handshake::{Nonce, Proof, Token, client_proof};
//!
//! let (token, client, server) = (Token::generate()?, Nonce::generate()?, Nonce::generate()?);
//! let header = client_proof(&token, &client, &server).to_authorization();
//! assert_eq!(Proof::from_authorization(&header), Some(client_proof(&token, &client, &server)));
//! # Ok::<(), openvaala_protocol::handshake::NoRandomness>(())
//! ```

mod credential;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Sha256;
use subtle::ConstantTimeEq;

pub use self::credential::{Credential, InvalidCredential, Key, TOKEN_HEADER, Verifier};

/// The path that a client asks for the server's challenge.
pub const CHALLENGE_PATH: &str = "/api/v1/openvaala/challenge";

/// The header in which a client sends its nonce as 64 hex digits; case does not matter.
pub const NONCE_HEADER: &str = "x-openvaala-nonce";

/// The scheme of the header `Authorization` that carries the client's proof.
pub const AUTHORIZATION_SCHEME: &str = "OpenVaala";

/// What the server's proof begins with before it is hashed.
const SERVER_LABEL: &[u8] = b"openvaala server v1";

/// What the client's proof begins with; another one, so that no side can send the other's proof back.
const CLIENT_LABEL: &[u8] = b"openvaala client v1";

/// What the id of a derived token begins with before it is hashed.
const BOUND_LABEL: &[u8] = b"openvaala bound token v1";

/// The secret that a server and its clients share: 32 random bytes, written as 64 hex digits.
///
/// Its `Debug` form does not show it, and it has no `Display` form, so that it gets into no log by mistake.
#[derive(Clone)]
pub struct Token([u8; 32]);

/// A number used once: 32 random bytes, written as 64 lower-case hex digits.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Nonce([u8; 32]);

/// A keyed hash that only a holder of the token can make: 32 bytes, written as 64 lower-case hex digits.
///
/// Comparing two of them takes the same time wherever they differ.
#[derive(Clone, Copy)]
pub struct Proof([u8; 32]);

/// 32 bytes of a verifier.
#[derive(Clone, Copy)]
struct Digits([u8; 32]);

/// The server's answer to a client's nonce.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Challenge {
    /// The server's own nonce.
    pub nonce: Nonce,
    /// The [`server_proof`] over both nonces.
    pub proof: Proof,
}

/// The operating system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes: {reason}")]
#[non_exhaustive]
pub struct NoRandomness {
    /// What it said.
    pub reason: String,
}

/// A text that is not 64 hex digits; it is not repeated, since it may be a secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what} must be 64 hex digits")]
#[non_exhaustive]
pub struct InvalidHex {
    /// What the text stands for, such as `a token`.
    pub what: &'static str,
}

/// The hash by which a server proves to a client that it holds the token.
///
/// HMAC-SHA256 with the token's 32 bytes as the key, over the text `openvaala server v1` and the 32 bytes
/// each of the client's and the server's nonce.
#[must_use]
pub fn server_proof(token: &Token, client: &Nonce, server: &Nonce) -> Proof {
    proof(SERVER_LABEL, token, client, server)
}

/// The hash by which a client proves to a server that it holds the token.
///
/// As [`server_proof`], with the text `openvaala client v1`.
#[must_use]
pub fn client_proof(token: &Token, client: &Nonce, server: &Nonce) -> Proof {
    proof(CLIENT_LABEL, token, client, server)
}

fn proof(label: &[u8], token: &Token, client: &Nonce, server: &Nonce) -> Proof {
    Proof(keyed(&token.0, &[label, &client.0, &server.0]))
}

/// HMAC-SHA256 over the parts, one after the other.
fn keyed(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new(&{
        // The key of HMAC is a whole block: a shorter one is filled up with zeros.
        let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
        block[..32].copy_from_slice(key);
        block
    });
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

impl Token {
    /// Makes a new token from the random numbers of the operating system.
    ///
    /// # Errors
    /// Fails if the system has none to give.
    pub fn generate() -> Result<Self, NoRandomness> {
        random().map(Self)
    }

    /// The token that a holder of this one makes for an id, the same each time: nothing has to be kept to know it again.
    ///
    /// HMAC-SHA256 with this token's bytes as the key over `openvaala bound token v1` and the id.
    #[must_use]
    pub fn derive(&self, id: &str) -> Self {
        Self(keyed(&self.0, &[BOUND_LABEL, id.as_bytes()]))
    }

    /// Writes the token as 64 lower-case hex digits, for the file that its holders share.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl FromStr for Token {
    type Err = InvalidHex;

    fn from_str(text: &str) -> Result<Self, InvalidHex> {
        bytes(text).map(Self).ok_or(InvalidHex { what: "a token" })
    }
}

impl Nonce {
    /// Makes a new nonce from the random numbers of the operating system.
    ///
    /// # Errors
    /// Fails if the system has none to give.
    pub fn generate() -> Result<Self, NoRandomness> {
        random().map(Self)
    }
}

impl Proof {
    /// The value of the header `Authorization` that carries this proof.
    #[must_use]
    pub fn to_authorization(&self) -> String {
        format!("{AUTHORIZATION_SCHEME} {self}")
    }

    /// Reads the value of a header `Authorization`; `None` if it carries no proof.
    #[must_use]
    pub fn from_authorization(value: &str) -> Option<Self> {
        let (scheme, proof) = value.split_once(' ')?;
        if scheme.eq_ignore_ascii_case(AUTHORIZATION_SCHEME) {
            proof.trim().parse().ok()
        } else {
            None
        }
    }
}

impl PartialEq for Proof {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Proof {}

macro_rules! hex_text {
    ($name:ident, $what:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = InvalidHex;

            fn from_str(text: &str) -> Result<Self, InvalidHex> {
                bytes(text).map(Self).ok_or(InvalidHex { what: $what })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

hex_text!(Nonce, "a nonce");
hex_text!(Proof, "a proof");
hex_text!(Digits, "a key");

fn random() -> Result<[u8; 32], NoRandomness> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| NoRandomness {
        reason: error.to_string(),
    })?;
    Ok(bytes)
}

fn hex(bytes: &[u8; 32]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn bytes(text: &str) -> Option<[u8; 32]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let pairs: &[[u8; 2]; 32] = pairs.try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let digit = |value: u8| char::from(value).to_digit(16);
        *byte = u8::try_from((digit(*high)? << 4) | digit(*low)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn token() -> Token {
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
            .parse()
            .unwrap()
    }

    fn nonces() -> (Nonce, Nonce) {
        (Nonce([0xaa; 32]), Nonce([0xbb; 32]))
    }

    #[test]
    fn proofs_are_the_hmac_that_the_document_describes() {
        // Computed with Python: hmac.new(bytes(range(32)), label + b"\xaa" * 32 + b"\xbb" * 32, "sha256").
        let (client, server) = nonces();
        assert_eq!(
            [
                server_proof(&token(), &client, &server),
                client_proof(&token(), &client, &server)
            ]
            .map(|proof| proof.to_string()),
            [
                "6adcce5d8908777a00632f15836c1b21d774655e9fb9e02883ad712aac5c371c",
                "a4eb38d9899405ef94106a35f73c9c1403ca9437ac47b3ea5b6e2e134a806cb6"
            ]
        );
    }

    #[test]
    fn a_proof_changes_with_the_token_and_with_each_nonce() {
        let (client, server) = nonces();
        let right = client_proof(&token(), &client, &server);
        assert_ne!(right, client_proof(&Token([9; 32]), &client, &server));
        assert_ne!(right, client_proof(&token(), &server, &server));
        assert_ne!(right, client_proof(&token(), &client, &client));
        assert_ne!(right, client_proof(&token(), &server, &client));
        assert_ne!(right, server_proof(&token(), &client, &server));
    }

    #[test]
    fn a_token_shows_in_no_debug_text_and_in_no_error() {
        assert_eq!(format!("{:?}", token()), "Token(..)");
        let error = "not a secret".parse::<Token>().unwrap_err();
        assert_eq!(error.to_string(), "a token must be 64 hex digits");
    }

    #[test]
    fn s_16_ten_thousand_tokens_differ_in_every_eighth_of_them() {
        let tokens: Vec<[u8; 32]> = (0..10_000).map(|_| Token::generate().unwrap().0).collect();
        for eighth in 0..8 {
            let parts: HashSet<&[u8]> = tokens
                .iter()
                .map(|token| &token[eighth * 4..eighth * 4 + 4])
                .collect();
            // Of 10,000 random 32-bit numbers 0.01 meet on average; a time or a pid in them meets always.
            assert!(
                parts.len() > 9_990,
                "{} different ones in eighth {eighth}",
                parts.len()
            );
        }
    }

    #[test]
    fn only_the_own_scheme_with_a_whole_proof_is_an_authorization() {
        let proof = Proof([0x5c; 32]);
        let hex = proof.to_string();
        assert_eq!(proof.to_authorization(), format!("OpenVaala {hex}"));
        assert_eq!(
            Proof::from_authorization(&format!("openvaala {hex}")),
            Some(proof)
        );
        for wrong in [
            format!("Bearer {hex}"),
            hex.clone(),
            format!("OpenVaala {hex}00"),
            String::new(),
        ] {
            assert_eq!(Proof::from_authorization(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_challenge_is_two_hex_fields() {
        let challenge = Challenge {
            nonce: Nonce([1; 32]),
            proof: Proof([2; 32]),
        };
        let text = serde_json::to_string(&challenge).unwrap();
        assert_eq!(
            text,
            format!(
                r#"{{"nonce":"{}","proof":"{}"}}"#,
                "01".repeat(32),
                "02".repeat(32)
            )
        );
        assert_eq!(serde_json::from_str::<Challenge>(&text).unwrap(), challenge);
    }

    proptest! {
        #[test]
        fn hex_text_comes_back_as_the_same_bytes(bytes: [u8; 32]) {
            let nonce = Nonce(bytes);
            prop_assert_eq!(nonce.to_string().parse::<Nonce>(), Ok(nonce));
            prop_assert_eq!(Token(bytes).to_hex().parse::<Token>().map(|t| t.0), Ok(bytes));
        }

        #[test]
        fn any_other_text_is_refused_without_a_panic(text in ".{0,80}") {
            let is_hex = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
            prop_assert_eq!(text.parse::<Nonce>().is_ok(), is_hex);
        }
    }
}
