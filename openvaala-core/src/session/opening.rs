//! Reads what a session begins with from the ends of its log.

use std::collections::HashSet;
use std::sync::Arc;

use openvaala_protocol::id::{ConversationId, ItemId, SessionId};
use openvaala_storage::{Error, LogStorage};

use super::event::SessionSetup;
use super::inputs::{Inputs, taken_by};
use super::run::SessionStart;
use crate::agent::Limits;
use crate::dao::record::{SessionState, TurnState};
use crate::dao::tail::{self, LatestStates, RecentItems};

/// Reads what a session begins with; gives the number of its last item's entry as well.
///
/// `None` if there is no state of it.
pub(crate) async fn open_session(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    latest: &LatestStates,
    session: SessionId,
    limits: Limits,
) -> Result<Option<(SessionStart, u64)>, Error> {
    let Some(state) = latest.states.sessions.get(&session).cloned() else {
        return Ok(None);
    };
    let of_session = |turn: &&TurnState| turn.session_id == session;
    let turns: Vec<TurnState> = latest
        .states
        .turns
        .values()
        .filter(of_session)
        .cloned()
        .collect();
    let damaged = !latest.states.damaged.is_empty();
    let recent = RecentItems::new(&state, &turns, damaged);
    let (items, last) = tail::recent_items(log, id, recent).await?;
    let mut taken = latest.inputs.get(&session).cloned().unwrap_or_default();
    if damaged {
        taken.extend(taken_from_queue(log, id, &state).await?);
    }
    taken.extend(items.iter().flat_map(taken_by));
    // An older state than the last one may not know of the last inputs.
    let newest = state.newest_input.filter(|_| !damaged);
    let setup = SessionSetup {
        state,
        has_context: last == 0,
        items,
        inputs: Inputs::latest(taken, newest),
        limits,
    };
    Ok(Some((SessionStart { setup, turns }, last)))
}

/// Where a state was lost, an older one may still have inputs in its queue that were taken since.
async fn taken_from_queue(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    state: &SessionState,
) -> Result<HashSet<ItemId>, Error> {
    let waiting: HashSet<ItemId> = state.queue.iter().map(|input| input.item_id).collect();
    if waiting.is_empty() {
        return Ok(waiting);
    }
    tail::which_are_items(log, id, state.id, waiting).await
}
