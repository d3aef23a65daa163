//! The resume cursor: the log's own numbers, packed into a text that only this module reads.
//!
//! `1.<metadata seq>` and, for each session with items, `.<session id>=<seq>`.

use std::collections::BTreeMap;
use std::fmt::Write;

use openvaala_protocol::event::ResumeCursor;
use openvaala_protocol::id::SessionId;

/// Up to where somebody has seen a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Position {
    pub(crate) metadata: u64,
    pub(crate) sessions: BTreeMap<SessionId, u64>,
}

impl Position {
    pub(crate) fn session(&self, id: SessionId) -> u64 {
        self.sessions.get(&id).copied().unwrap_or(0)
    }

    pub(crate) fn encode(&self) -> ResumeCursor {
        let mut text = format!("1.{}", self.metadata);
        for (session, seq) in &self.sessions {
            // Writing to a string does not fail.
            let _ = write!(text, ".{session}={seq}");
        }
        ResumeCursor(text)
    }

    /// Reads a cursor that [`encode`](Self::encode) made.
    pub(crate) fn decode(cursor: &ResumeCursor) -> Option<Self> {
        let mut parts = cursor.0.split('.');
        if parts.next() != Some("1") {
            return None;
        }
        let metadata = parts.next()?.parse().ok()?;
        let sessions = parts
            .map(|part| {
                let (session, seq) = part.split_once('=')?;
                Some((session.parse().ok()?, seq.parse().ok()?))
            })
            .collect::<Option<_>>()?;
        Some(Self { metadata, sessions })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        let sessions = [(SessionId::from_uuid(Uuid::from_u128(7)), 12)].into();
        let position = Position {
            metadata: 3,
            sessions,
        };
        assert_eq!(Position::decode(&position.encode()), Some(position));
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in ["", "1", "2.3", "1.x", "1.3.y=1", "1.3.", "1.-1"] {
            assert_eq!(
                Position::decode(&ResumeCursor(text.to_owned())),
                None,
                "{text:?}"
            );
        }
    }
}
