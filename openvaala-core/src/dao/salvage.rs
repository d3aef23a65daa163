//! What can still be known of a conversation whose own states cannot be read.

use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_protocol::time::Timestamp;
use openvaala_storage::Listing;
use uuid::Uuid;

use super::query::States;
use super::record::{ConversationState, SessionState, TurnState};

/// The time of what nobody knows the time of.
const UNKNOWN: Timestamp = Timestamp::EPOCH;

/// Gives a conversation without a readable state of its own one that says what is left: its id, its times, its root
/// session by the streams of its directory, the place where its turns worked.
///
/// The same log gives the same state. Where not even a session is left, its root has the id of the conversation.
pub(crate) fn conversation(states: &mut States, id: ConversationId, listing: &Listing) {
    let (first, last) = states.times.unwrap_or((UNKNOWN, UNKNOWN));
    let created_at = created_at(id.as_uuid()).unwrap_or(first);
    let last_turn = states
        .turns
        .values()
        .max_by_key(|turn| (turn.started_at, turn.id));
    let executors = last_turn.map_or_else(Vec::new, |turn| turn.executors.clone());
    states.conversation = Some(ConversationState {
        id,
        title: None,
        root_session: root(states, id, listing),
        executors,
        created_at,
        updated_at: last.max(created_at),
        damaged: None,
        archived: false,
        forked_from: None,
        children: Vec::new(),
    });
    states
        .damaged
        .push("no state of the conversation itself can be read".to_owned());
}

/// Gives the root session a state if it has none that can be read; it asks that model unless a turn tells its own.
pub(crate) fn root_session(states: &mut States, conversation: &ConversationState, model: ModelRef) {
    let id = conversation.root_session;
    if states.sessions.contains_key(&id) {
        return;
    }
    let turns = states.turns.values();
    let last: Option<&TurnState> = turns
        .filter(|turn| turn.session_id == id)
        .max_by_key(|turn| (turn.started_at, turn.id));
    let session = SessionState {
        id,
        conversation_id: conversation.id,
        parent: None,
        agent: None,
        model: last.map_or(model, |turn| turn.model.clone()),
        approval_mode: None,
        approval_rules: Vec::new(),
        active_turn: None,
        queue: Vec::new(),
        held: false,
        last_pos: 0,
        // Ids of inputs that are not later may have been taken.
        newest_input: Some(conversation.updated_at),
        withdrawn: Vec::new(),
        context_tokens: None,
        child: None,
        usage: Default::default(),
        created_at: conversation.created_at,
        updated_at: conversation.updated_at,
    };
    states.sessions.insert(id, session);
}

/// The sessions that have a log.
pub(crate) fn sessions(listing: &Listing) -> impl Iterator<Item = SessionId> {
    let streams = listing.streams.iter();
    streams.filter_map(|stream| stream.as_str().parse().ok())
}

/// The session that its user talked to: the oldest one that no other session has started.
fn root(states: &States, id: ConversationId, listing: &Listing) -> SessionId {
    let parentless = states.sessions.values();
    let parentless = parentless.filter(|session| session.parent.is_none());
    let by_state = parentless.min_by_key(|session| (session.created_at, session.id));
    if let Some(session) = by_state {
        return session.id;
    }
    sessions(listing)
        .filter(|session| !states.sessions.contains_key(session))
        .min()
        .unwrap_or_else(|| SessionId::from_uuid(*id.as_uuid()))
}

/// When a time-ordered id was made; `None` for one of another kind.
fn created_at(id: &Uuid) -> Option<Timestamp> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    let millis = i64::try_from(seconds).ok()?.checked_mul(1_000)?;
    Some(Timestamp::from_millis(
        millis.checked_add(i64::from(nanos / 1_000_000))?,
    ))
}
