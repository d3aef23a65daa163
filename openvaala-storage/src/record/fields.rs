//! What a listing looks at in the JSON of a record.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The top-level fields of a record; none if it is no object.
pub(crate) struct Fields<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Fields<'a> {
    pub(crate) fn of(data: &'a RawValue) -> Self {
        Self(serde_json::from_str(data.get()).unwrap_or_default())
    }

    /// The values of a field: the string that it is, or the strings of the array that it is, each once.
    pub(crate) fn values(&self, field: &str) -> Vec<String> {
        let Some(value) = self.0.get(field) else {
            return Vec::new();
        };
        if let Ok(text) = serde_json::from_str(value.get()) {
            return vec![text];
        }
        let elements: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        let strings = elements
            .iter()
            .filter_map(|element| serde_json::from_str(element.get()).ok());
        let mut values: Vec<String> = strings.collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The string that a field is, folded.
    pub(crate) fn text(&self, field: &str) -> Option<String> {
        let value = self.0.get(field)?;
        let text: String = serde_json::from_str(value.get()).ok()?;
        Some(fold(&text))
    }

    pub(crate) fn contains(&self, field: &str, text: &str) -> bool {
        self.text(field).is_some_and(|it| it.contains(&fold(text)))
    }
}

/// A text as it is compared when case does not matter.
pub(crate) fn fold(text: &str) -> String {
    text.to_lowercase()
}
