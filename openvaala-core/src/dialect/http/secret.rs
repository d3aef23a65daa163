//! Keys that never show.

use std::fmt;

use sha2::{Digest, Sha256};

/// What stands in a text where a secret stood.
const MARK: &str = "[secret]";
/// Shorter values are no secrets: taking them out would only garble the text.
const SHORTEST: usize = 6;

/// A key or another value that must not show in logs, errors or debug output.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret; white space around it, such as the line break at the end of a key file, is dropped.
    pub fn new(secret: impl AsRef<str>) -> Self {
        Self(secret.as_ref().trim().to_owned())
    }

    /// The secret itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The first 16 hexadecimal digits of its SHA-256: tells accounts apart without telling the key.
    pub(crate) fn fingerprint(&self) -> String {
        let digest = Sha256::digest(self.0.as_bytes());
        digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Takes secrets out of texts that come from outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor(Vec<Secret>);

impl Redactor {
    /// A redactor for those secrets.
    pub(crate) fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let long = secrets
            .into_iter()
            .filter(|secret| secret.0.len() >= SHORTEST);
        let mut secrets: Vec<Secret> = long.collect();
        // The longest first, in case one holds another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.0.len()));
        Self(secrets)
    }

    /// The text without any of the secrets.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| {
            text.replace(&secret.0, MARK)
        })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::{Redactor, Secret};

    #[test]
    fn s_19_debug_output_does_not_show_the_key() {
        assert_eq!(format!("{:?}", Secret::new("sk-canary")), "Secret(…)");
    }

    #[test]
    fn a_line_break_after_the_key_is_dropped() {
        assert_eq!(Secret::new("sk-canary\n").expose(), "sk-canary");
    }

    #[test]
    fn a_fingerprint_is_the_beginning_of_the_sha_256() {
        assert_eq!(Secret::new("abc").fingerprint(), "ba7816bf8f01cfea");
    }

    #[test]
    fn s_19_every_occurrence_of_every_secret_is_taken_out() {
        let redactor = Redactor::new(["sk-canary", "sk-canary-long", "1"].map(Secret::new));
        let text = "Bearer sk-canary-long, then sk-canary and sk-canary 1";
        assert_eq!(
            redactor.clean(text),
            "Bearer [secret], then [secret] and [secret] 1"
        );
    }
}
