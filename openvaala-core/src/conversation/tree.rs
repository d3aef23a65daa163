//! The tree of agents in a conversation, as far as it follows from their sessions.

use std::collections::BTreeMap;

use openvaala_protocol::conversation::Session;
use openvaala_protocol::id::SessionId;

use crate::agents::AgentError;

/// The sessions of a conversation, looked at as a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree<'a>(pub(crate) &'a BTreeMap<SessionId, Session>);

impl<'a> Tree<'a> {
    pub(crate) fn get(self, id: SessionId) -> Option<&'a Session> {
        self.0.get(&id)
    }

    /// Finds the agent that another one means by a path, or by a name below itself.
    pub(crate) fn find(self, from: SessionId, name: &str) -> Result<&'a Session, AgentError> {
        let own = self.get(from).map_or("", |session| &session.path);
        let below = format!("{own}/{name}");
        let mut sessions = self.0.values();
        let found = sessions.find(|session| session.path == name || session.path == below);
        found.ok_or_else(|| AgentError::Unknown {
            name: name.to_owned(),
            known: self.0.values().map(|known| known.path.clone()).collect(),
        })
    }

    /// Finds an agent below another one.
    pub(crate) fn find_below(self, from: SessionId, name: &str) -> Result<&'a Session, AgentError> {
        let found = self.find(from, name)?;
        if self.is_below(found.id, from) {
            return Ok(found);
        }
        let path = found.path.clone();
        Err(AgentError::NotBelow { path })
    }

    pub(crate) fn is_below(self, id: SessionId, above: SessionId) -> bool {
        self.above(id).any(|session| session.id == above)
    }

    /// Those that have led to a session, the nearest first.
    pub(crate) fn above(self, id: SessionId) -> impl Iterator<Item = &'a Session> {
        let parent = move |session: &&Session| self.get(session.parent?);
        std::iter::successors(self.get(id), parent).skip(1)
    }

    /// All sessions below one, each before those below itself, in the order of their start.
    pub(crate) fn below(self, id: SessionId) -> Vec<&'a Session> {
        let mut children: Vec<&Session> = self
            .0
            .values()
            .filter(|session| session.parent == Some(id))
            .collect();
        children.sort_by_key(|session| (session.created_at, session.id));
        let with_theirs = |child: &'a Session| std::iter::once(child).chain(self.below(child.id));
        children.into_iter().flat_map(with_theirs).collect()
    }
}

/// On which level an agent is: 0 is the main one.
pub(crate) fn level(path: &str) -> usize {
    path.matches('/').count()
}

/// Whether an agent can be called that.
pub(crate) fn is_name(name: &str) -> bool {
    let is_fit =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=40).contains(&name.len()) && name.bytes().all(is_fit)
}
