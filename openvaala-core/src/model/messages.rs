//! The list of messages of a request, shared between the requests of a session.

use std::iter::Map;
use std::ops::Index;
use std::slice;
use std::sync::Arc;

use super::request::Message;

/// The messages of a request, oldest first.
///
/// A later request of the same session holds the very same messages and a few more, so a message is kept once
/// however many requests it is part of, and a copy of the list copies no message.
///
/// ```
/// use openvaala_core::model::{Message, Messages};
/// use openvaala_core::protocol::content::Content;
///
/// let mut messages = Messages::from(vec![Message::User(vec![Content::text("hello")])]);
/// messages.push(Message::User(vec![Content::text("anybody there?")]));
/// assert_eq!(messages.len(), 2);
/// assert!(matches!(messages.last(), Some(Message::User(_))));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Messages(Vec<Arc<Message>>);

impl Messages {
    /// No messages.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The message at that place, counted from 0.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Message> {
        self.0.get(index).map(Arc::as_ref)
    }

    /// The newest message.
    #[must_use]
    pub fn last(&self) -> Option<&Message> {
        self.0.last().map(Arc::as_ref)
    }

    /// All messages, oldest first.
    #[must_use]
    pub fn iter(&self) -> <&Self as IntoIterator>::IntoIter {
        self.into_iter()
    }

    /// Adds a message at the end.
    pub fn push(&mut self, message: Message) {
        self.0.push(Arc::new(message));
    }

    /// Keeps only the first messages, as many as that.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Puts a message before the one at that place, or at the end if there is none.
    pub(crate) fn insert(&mut self, index: usize, message: Message) {
        self.0.insert(index.min(self.0.len()), Arc::new(message));
    }

    /// A message that is to be changed; requests that have it already keep it as it was.
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Message> {
        self.0.get_mut(index).map(Arc::make_mut)
    }
}

impl From<Vec<Message>> for Messages {
    fn from(messages: Vec<Message>) -> Self {
        messages.into_iter().collect()
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Self(messages.into_iter().map(Arc::new).collect())
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = Map<slice::Iter<'a, Arc<Message>>, fn(&'a Arc<Message>) -> &'a Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(Arc::as_ref)
    }
}

/// # Panics
/// If there is no message at that place; [`get`](Messages::get) does not.
impl Index<usize> for Messages {
    type Output = Message;

    fn index(&self, index: usize) -> &Message {
        &self.0[index]
    }
}
