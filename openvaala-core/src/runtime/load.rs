//! Brings conversations into being: new ones, and ones that lie in the log.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::id::{BlobId, ConversationId, SessionId};
use openvaala_protocol::item::{Item, ToolResult, UserMessage};
use openvaala_storage::Error;

use super::NewConversation;
use crate::conversation::{ConversationDeps, ConversationStart, open_workspaces};
use crate::dao::mutation::Writer;
use crate::dao::query::{self, States};
use crate::dao::record::{ConversationState, SessionState, State};
use crate::dao::{blob, metadata_key};
use crate::error::RuntimeError;
use crate::journal::Batch;
use crate::session::{SessionSetup, SessionStart};

/// The largest image that is brought back into memory for requests.
const MAX_IMAGE: usize = 32 << 20;

/// Makes a new conversation; where there is staging it lies in memory only.
pub(super) async fn create(
    deps: &ConversationDeps,
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
    let id = ConversationId::from_uuid(deps.ids.next());
    let session = SessionId::from_uuid(deps.ids.next());
    let state = ConversationState {
        id,
        title: None,
        root_session: session,
        executors,
        created_at: now,
        updated_at: now,
        damaged: None,
    };
    let root = SessionState {
        id: session,
        conversation_id: id,
        parent: None,
        agent: new.agent,
        model,
        active_turn: None,
        queue: Vec::new(),
        held: false,
        usage: Default::default(),
        created_at: now,
        updated_at: now,
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
    let metadata = written.metadata;
    let states = States {
        conversation: Some(state.clone()),
        sessions: [(session, root.clone())].into(),
        last: metadata.as_ref().map_or(0, |(seq, _)| *seq),
        ..States::default()
    };
    let setup = SessionSetup {
        state: root,
        history: Vec::new(),
        limits: definitions.limits(),
    };
    Ok(ConversationStart {
        state,
        states,
        metadata,
        sessions: vec![SessionStart {
            setup,
            turns: Vec::new(),
            images: HashMap::new(),
        }],
        last_items: Vec::new(),
        workspaces: Some(workspaces),
    })
}

/// Reads a conversation from the log.
pub(super) async fn open(
    deps: &ConversationDeps,
    id: ConversationId,
) -> Result<ConversationStart, RuntimeError> {
    let model = deps.definitions.borrow().default_model.clone();
    let (state, states) = query::existing(&deps.log, id, model).await?;
    let fingerprint = deps.log.fingerprint(&metadata_key(id)?).await?;
    let limits = deps.definitions.borrow().limits();
    let mut sessions = Vec::with_capacity(states.sessions.len());
    let mut last_items = Vec::new();
    for session in states.sessions.values() {
        let (history, last) = query::history(&deps.log, id, session.id).await?;
        if last > 0 {
            last_items.push((session.id, last));
        }
        let images = images(deps, id, session.id, &history).await?;
        let turns = states
            .turns
            .values()
            .filter(|turn| turn.session_id == session.id)
            .cloned();
        let turns = turns.collect();
        let setup = SessionSetup {
            state: session.clone(),
            history,
            limits,
        };
        sessions.push(SessionStart {
            setup,
            turns,
            images,
        });
    }
    let metadata = fingerprint.map(|fingerprint| (states.last, fingerprint));
    Ok(ConversationStart {
        state,
        states,
        metadata,
        sessions,
        last_items,
        workspaces: None,
    })
}

/// The large images that a session's items refer to.
async fn images(
    deps: &ConversationDeps,
    id: ConversationId,
    session: SessionId,
    items: &[Item],
) -> Result<HashMap<BlobId, String>, Error> {
    let mut images = HashMap::new();
    for content in items.iter().flat_map(content_of) {
        let Content::Image {
            data: ImageData::Blob(reference),
            ..
        } = content
        else {
            continue;
        };
        let read = blob::read(&deps.log, id, session, reference, 0, MAX_IMAGE).await;
        match read {
            Ok((_, bytes)) => {
                images.insert(reference.id, STANDARD.encode(bytes));
            }
            // Without its bytes the model is told that an image is missing.
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(images)
}

fn content_of(item: &Item) -> Vec<Content> {
    if let Some(Ok(message)) = item.body::<UserMessage>() {
        return message.content;
    }
    match item.body::<ToolResult>() {
        Some(Ok(result)) => result.content,
        _ => Vec::new(),
    }
}
