//! Brings conversations into being: new ones, and ones that lie in the log.

use std::collections::HashSet;

use openvaala_protocol::id::{ConversationId, SessionId};

use super::NewConversation;
use crate::conversation::{ConversationDeps, ConversationStart, open_workspaces};
use crate::dao::metadata_key;
use crate::dao::mutation::Writer;
use crate::dao::query;
use crate::dao::query::States;
use crate::dao::record::{ConversationState, SessionState, State};
use crate::dao::tail::{self, LatestStates};
use crate::error::RuntimeError;
use crate::journal::Batch;
use crate::session::{Inputs, SessionSetup, SessionStart, open_session};

/// Makes a new conversation of that id; where there is staging it lies in memory only.
pub(super) async fn create(
    deps: &ConversationDeps,
    id: ConversationId,
    new: NewConversation,
) -> Result<ConversationStart, RuntimeError> {
    let definitions = deps.definitions.borrow().clone();
    let of_agent = definitions.model_of(new.agent.as_deref())?;
    let model = new.model.unwrap_or(of_agent);
    definitions.provider(&model.provider)?;
    let workspaces = open_workspaces(&new.executors, &definitions.executors).await?;
    let executors = new
        .executors
        .iter()
        .zip(&workspaces)
        .map(
            |(location, workspace)| openvaala_protocol::conversation::WorkLocation {
                executor: location.executor.clone(),
                root: workspace.root().to_owned(),
            },
        )
        .collect();
    let now = deps.clock.now();
    let session = SessionId::from_uuid(deps.ids.next());
    let state = ConversationState {
        id,
        title: None,
        root_session: session,
        executors,
        created_at: now,
        updated_at: now,
        damaged: None,
        archived: false,
        forked_from: None,
        children: Vec::new(),
    };
    let inputs = Inputs::whole(HashSet::new());
    let root = SessionState {
        id: session,
        conversation_id: id,
        parent: None,
        agent: new.agent,
        model,
        approval_mode: new.approval_mode,
        approval_rules: Vec::new(),
        active_turn: None,
        queue: Vec::new(),
        held: false,
        last_pos: 0,
        newest_input: inputs.newest(),
        withdrawn: Vec::new(),
        usage: Default::default(),
        created_at: now,
        updated_at: now,
        context_tokens: None,
        child: None,
    };
    deps.staging.stage(id)?;
    let writer = Writer::new(deps, id, None);
    let states = vec![
        State::Conversation(state.clone()),
        State::Session(root.clone()),
    ];
    let written = writer
        .write(
            session,
            Batch {
                items: Vec::new(),
                states,
            },
            false,
        )
        .await?;
    let metadata = written
        .metadata
        .map(|written| (written.last, written.fingerprint));
    let states = States {
        conversation: Some(state.clone()),
        sessions: [(session, root.clone())].into(),
        last: metadata.as_ref().map_or(0, |(seq, _)| *seq),
        ..States::default()
    };
    let setup = SessionSetup {
        state: root,
        items: Vec::new(),
        has_context: true,
        inputs,
        limits: definitions.limits(),
    };
    Ok(ConversationStart {
        state,
        state_seq: states.last,
        states,
        metadata,
        sessions: vec![SessionStart {
            setup,
            turns: Vec::new(),
        }],
        last_items: Vec::new(),
        workspaces: Some(workspaces),
    })
}

/// Reads a conversation from the ends of its log.
pub(super) async fn open(
    deps: &ConversationDeps,
    id: ConversationId,
) -> Result<ConversationStart, RuntimeError> {
    let (state, latest) = existing(deps, id).await?;
    let fingerprint = deps.log.fingerprint(&metadata_key(id)?).await?;
    let limits = deps.definitions.borrow().limits();
    let mut sessions = Vec::with_capacity(latest.states.sessions.len());
    let mut last_items = Vec::new();
    for (session, state) in &latest.states.sessions {
        let is_over = state.child.as_ref().is_some_and(|child| child.closed);
        if is_over && state.active_turn.is_none() {
            continue;
        }
        let opened = open_session(&deps.log, id, &latest, *session, limits).await?;
        let Some((start, last)) = opened else {
            continue;
        };
        if last > 0 {
            last_items.push((*session, last));
        }
        sessions.push(start);
    }
    let metadata = fingerprint.map(|fingerprint| (latest.states.last, fingerprint));
    Ok(ConversationStart {
        state,
        state_seq: latest.conversation_seq,
        states: latest.states,
        metadata,
        sessions,
        last_items,
        workspaces: None,
    })
}

/// The latest states of a conversation that has to exist; what of it cannot be read is made up for as far as that goes.
async fn existing(
    deps: &ConversationDeps,
    id: ConversationId,
) -> Result<(ConversationState, LatestStates), RuntimeError> {
    if let Some(mut latest) = tail::states(&deps.log, id).await? {
        if latest.states.deleted {
            return Err(RuntimeError::ConversationNotFound { id });
        }
        latest.states.check_own(id)?;
        let damaged = latest.states.damage();
        if let Some(state) = &mut latest.states.conversation
            && latest.states.sessions.contains_key(&state.root_session)
        {
            state.damaged = damaged;
            return Ok((state.clone(), latest));
        }
    }
    let model = deps.definitions.borrow().default_model.clone();
    let (state, states) = query::existing(&deps.log, id, model).await?;
    Ok((state, LatestStates::of_all(states)))
}
