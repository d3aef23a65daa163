//! What can be different in a conversation that is open, and what that means for its state.

use openvaala_protocol::conversation::WorkLocation;

use super::machine::{ConversationMachine, Effect, WaitId};
use crate::dao::record::State;
use crate::error::RuntimeError;

/// How long a title may be.
const MAX_TITLE: usize = 200;

/// What shall be different in a conversation; what is `None` stays.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ConversationChange {
    /// Its title: one line of at most 200 characters.
    pub title: Option<String>,
    /// Whether lists leave it out.
    pub archived: Option<bool>,
    /// Where its tools run from the next turn on; none means nowhere.
    ///
    /// The folders are opened anew. Commands that still run in the old ones go on.
    pub executors: Option<Vec<WorkLocation>>,
}

impl ConversationChange {
    /// Another title.
    pub fn title(title: impl Into<String>) -> Self {
        Self {
            title: Some(title.into()),
            ..Self::default()
        }
    }

    /// Into the archive, or out of it.
    #[must_use]
    pub fn archived(archived: bool) -> Self {
        Self {
            archived: Some(archived),
            ..Self::default()
        }
    }

    /// Other work locations.
    #[must_use]
    pub fn executors(executors: Vec<WorkLocation>) -> Self {
        Self {
            executors: Some(executors),
            ..Self::default()
        }
    }

    /// The same, written as it is kept.
    pub(super) fn checked(mut self) -> Result<Self, RuntimeError> {
        let invalid = |message: String| Err(RuntimeError::InvalidInput { message });
        let Some(title) = &mut self.title else {
            return Ok(self);
        };
        *title = title.trim().to_owned();
        let length = title.chars().count();
        if title.is_empty() {
            return invalid("the title is empty: give at least one visible character".to_owned());
        }
        if title.chars().any(char::is_control) {
            return invalid("a title is one line, without control characters".to_owned());
        }
        if length > MAX_TITLE {
            return invalid(format!(
                "the title has {length} characters, the limit is {MAX_TITLE}"
            ));
        }
        Ok(self)
    }
}

impl ConversationMachine {
    /// Takes a change that is known to be possible.
    pub(super) fn change(&mut self, wait: WaitId, change: ConversationChange) {
        let mut state = self.state.clone();
        let ConversationChange {
            title,
            archived,
            executors,
        } = change;
        state.title = title.or(state.title);
        state.archived = archived.unwrap_or(state.archived);
        state.executors = executors.unwrap_or(state.executors);
        if state != self.state {
            self.state = state;
            self.journal.state(State::Conversation(self.state.clone()));
        }
        self.journal.then(Effect::Changed { wait });
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_title_is_one_line_of_limited_length() {
        let checked = |title: &str| match ConversationChange::title(title).checked() {
            Ok(change) => Ok(change.title.unwrap()),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(checked("  a plan "), Ok("a plan".to_owned()));
        assert_eq!(checked(&"ö".repeat(200)), Ok("ö".repeat(200)));
        let refused =
            [" \n", "two\nlines", &"x".repeat(201)].map(|title| checked(title).unwrap_err());
        assert_eq!(
            refused,
            [
                "the title is empty: give at least one visible character",
                "a title is one line, without control characters",
                "the title has 201 characters, the limit is 200",
            ]
        );
    }
}
