//! Tokens that are good for one session only, for a time: their name says it all, so that nothing has to be kept.
//!
//! The name is `bound.CONVERSATION.SESSION.RIGHTS.EXPIRY`; the token is a keyed hash of it, so that no part of it can be changed.

use std::fmt;
use std::str::FromStr;

use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_protocol::rpc::{Right, Rights};
use openvaala_protocol::time::Timestamp;

const PREFIX: &str = "bound";

/// What such a token is good for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Bound {
    pub(super) conversation_id: ConversationId,
    pub(super) session_id: SessionId,
    pub(super) rights: Rights,
    /// In whole seconds.
    pub(super) expires_at: Timestamp,
}

/// A text that is no name of such a token.
#[derive(Debug)]
pub(crate) struct NotBound;

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.expires_at.as_millis() / 1_000;
        let rights = self.rights.join("-");
        let (conversation, session) = (self.conversation_id, self.session_id);
        write!(f, "{PREFIX}.{conversation}.{session}.{rights}.{seconds}")
    }
}

impl FromStr for Bound {
    type Err = NotBound;

    fn from_str(text: &str) -> Result<Self, NotBound> {
        let parts: Vec<&str> = text.split('.').collect();
        let [PREFIX, conversation, session, rights, seconds] = parts[..] else {
            return Err(NotBound);
        };
        let rights: Result<Rights, _> = rights.split('-').map(str::parse::<Right>).collect();
        let seconds: u32 = seconds.parse().map_err(|_| NotBound)?;
        Ok(Self {
            conversation_id: conversation.parse().map_err(|_| NotBound)?,
            session_id: session.parse().map_err(|_| NotBound)?,
            rights: rights.map_err(|_| NotBound)?,
            expires_at: Timestamp::from_millis(i64::from(seconds) * 1_000),
        })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_name_says_what_the_token_is_good_for() {
        let text = "bound.0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d.0192d3f5-8c1e-7a5b-9c2d-000000000001.watch-send.1790000000";
        let bound: Bound = text.parse().unwrap();
        assert_eq!(bound.to_string(), text);
        assert_eq!(bound.rights, Rights::from_iter([Right::Watch, Right::Send]));
        for wrong in [
            "",
            "phone",
            &text.replace("watch", "root"),
            &text.replace("bound", "named"),
            &format!("{text}.1"),
            &format!("{text}0"),
        ] {
            assert!(wrong.parse::<Bound>().is_err(), "{wrong}");
        }
    }
}
