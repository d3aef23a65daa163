//! The arguments of a command: values, and options that begin with two hyphens.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use crate::Failure;

/// Options without a value.
const FLAGS: [&str; 2] = ["index", "keep"];

/// What is left of the arguments; each is taken once.
#[derive(Debug)]
pub(crate) struct Arguments {
    values: std::vec::IntoIter<String>,
    options: BTreeMap<String, String>,
}

impl Arguments {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut values = Vec::new();
        let mut options = BTreeMap::new();
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                values.push(word);
                continue;
            };
            let value = if FLAGS.contains(&name) {
                String::new()
            } else {
                words
                    .next()
                    .ok_or_else(|| format!("--{name} needs a value"))?
            };
            if options.insert(name.to_owned(), value).is_some() {
                return Err(format!("--{name} is given twice").into());
            }
        }
        Ok(Self {
            values: values.into_iter(),
            options,
        })
    }

    /// The next value.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.values.next()
    }

    /// The next value, which has to be there.
    pub(crate) fn required(&mut self, what: &str) -> Result<String, Failure> {
        let value = self.next();
        value.ok_or_else(|| format!("{what} is missing; see openvaala-bench help").into())
    }

    pub(crate) fn option<T>(&mut self, name: &str) -> Result<Option<T>, Failure>
    where
        T: FromStr<Err: Display>,
    {
        let Some(text) = self.options.remove(name) else {
            return Ok(None);
        };
        let read = text.parse();
        read.map(Some)
            .map_err(|error| format!("--{name} {text}: {error}").into())
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        self.options.remove(name).is_some()
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let name = self.options.keys().next().map(|name| format!("--{name}"));
        match name.or_else(|| self.values.next()) {
            Some(left) => Err(format!("{left} is not known here; see openvaala-bench help").into()),
            None => Ok(()),
        }
    }
}
