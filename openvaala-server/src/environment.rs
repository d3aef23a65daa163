//! The environment variables that a server was started with, and what of them its children see.

use std::collections::BTreeMap;
use std::fmt;

/// Words that mark the name of a variable as that of a secret, alone or at the end of a longer word.
const SECRET_WORDS: &[&str] = &[
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "PRIVATEKEY",
];

/// Words that do so only alone: `MONKEY` is no key.
const SECRET_WHOLE_WORDS: &[&str] = &["KEY", "PWD"];

/// Names that look like those of secrets and are none.
const HARMLESS: &[&str] = &["PWD", "OLDPWD"];

/// Environment variables by name, as values: nothing here reads those of the process.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The value of a variable; one that is empty counts as not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.trim().is_empty())
    }

    /// What processes that an agent starts may see, sorted by name.
    ///
    /// Left out are variables of OpenVaala itself, those whose name says that they hold a secret, those named in
    /// `keys.names`, and those whose value is one of `keys.values`; `allow` names exceptions.
    #[must_use]
    pub fn for_children(&self, keys: &ProviderKeys, allow: &[String]) -> Vec<(String, String)> {
        let wanted = |name: &str, value: &str| {
            allow.iter().any(|allowed| allowed == name)
                || !(is_secret_name(name)
                    || keys.names.iter().any(|key| key == name)
                    || keys.values.iter().any(|key| key == value))
        };
        self.0
            .iter()
            .filter(|(name, value)| wanted(name, value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl fmt::Debug for Environment {
    /// Names only: values may be keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The keys of model providers, so that they can be kept from children.
#[derive(Clone, Default)]
pub struct ProviderKeys {
    /// Variables that hold one.
    pub names: Vec<String>,
    /// The keys themselves.
    pub values: Vec<String>,
}

impl fmt::Debug for ProviderKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderKeys")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if HARMLESS.contains(&name.as_str()) {
        return false;
    }
    name.starts_with("OPENVAALA_")
        || name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(is_secret_word)
}

fn is_secret_word(word: &str) -> bool {
    let one = word.strip_suffix('S').unwrap_or(word);
    [word, one].iter().any(|word| {
        SECRET_WHOLE_WORDS.contains(word)
            || SECRET_WORDS.iter().any(|secret| word.ends_with(secret))
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::{Environment, ProviderKeys};

    #[test]
    fn s_80_children_see_no_secrets_and_all_else() {
        let dropped = [
            "OPENAI_API_KEY",
            "github_token",
            "NPMTOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "DB_PASSWD",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "OPENVAALA_DATA_DIR",
            "MY_KEYS",
            "FOO-TOKENS",
            "ACME_LOGIN",
            "COPY",
        ];
        let kept = [
            "HOME",
            "KEYBOARD_LAYOUT",
            "LANG",
            "MONKEY",
            "OLDPWD",
            "PATH",
            "PWD",
            "SSH_AUTH_SOCK",
            "TERM",
            "TOKENIZERS_PARALLELISM",
        ];
        let value = |name: &str| if name == "COPY" { "sk-canary" } else { "value" }.to_owned();
        let environment: Environment = dropped
            .iter()
            .chain(&kept)
            .map(|name| (*name, value(name)))
            .collect();
        let keys = ProviderKeys {
            names: vec!["ACME_LOGIN".to_owned()],
            values: vec!["sk-canary".to_owned()],
        };
        let names = |allow: &[String]| -> Vec<String> {
            environment
                .for_children(&keys, allow)
                .into_iter()
                .map(|(name, _)| name)
                .collect()
        };
        assert_eq!(names(&[]), kept);
        assert!(names(&["github_token".to_owned()]).contains(&"github_token".to_owned()));
    }

    #[test]
    fn s_18_debug_output_has_names_only() {
        let environment: Environment = [("A_KEY", "canary")].into_iter().collect();
        assert_eq!(format!("{environment:?}"), "{\"A_KEY\"}");
    }
}
