//! JSON objects whose values are kept as text, so that editing one field changes no other.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON object: its fields in order, duplicates too, their values as they were written.
#[derive(Debug)]
pub(super) struct RawObject<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> RawObject<'a> {
    /// Takes a JSON text apart.
    pub(super) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The value of the first field with this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_ref())
    }

    /// Takes all fields with this name out.
    pub(super) fn remove(&mut self, name: &str) -> Vec<Cow<'a, str>> {
        let (removed, kept) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(key, _)| key == name);
        self.0 = kept;
        let removed: Vec<(Cow<'a, str>, Cow<'a, str>)> = removed;
        removed.into_iter().map(|(_, value)| value).collect()
    }

    /// Puts a field in its place, or at the end when there was none.
    pub(super) fn set(&mut self, name: &'a str, value: String) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = Cow::Owned(value),
            None => self.0.push((Cow::Borrowed(name), Cow::Owned(value))),
        }
    }

    /// The same, borrowing nothing.
    pub(super) fn into_owned(self) -> RawObject<'static> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        RawObject(
            self.0
                .into_iter()
                .map(|(key, value)| (owned(key), owned(value)))
                .collect(),
        )
    }

    /// The object as JSON text.
    pub(super) fn to_text(&self) -> String {
        let fields: Vec<String> = self
            .0
            .iter()
            .map(|(key, value)| format!("{}:{value}", serde_json::Value::from(key.as_ref())))
            .collect();
        format!("{{{}}}", fields.join(","))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields).map(RawObject)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(Cow<'de, str>, Cow<'de, str>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let value: &'de RawValue = map.next_value()?;
            fields.push((Cow::Owned(name), Cow::Borrowed(value.get())));
        }
        Ok(fields)
    }
}
