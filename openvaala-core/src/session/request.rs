//! What a session is asked besides taking input: about what waits, and for another model or agent.

use openvaala_protocol::conversation::{ModelRef, Session};
use openvaala_protocol::item::{AgentChange, ExecutorChange, ItemBody, ModelChange};

use super::event::{Effect, Refusal, ReplyId};
use super::machine::SessionMachine;
use super::pending::PendingChange;
use crate::agent::Tick;
use crate::dao::record::QueuedInput;

/// What a session is asked.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// What waits?
    ListPending,
    Pending(PendingChange),
    Change(SessionChange),
    /// The conversation works elsewhere from the next turn on: write that down.
    Record(ExecutorChange),
    /// Take no more input, whatever runs.
    Close,
}

/// What a session answers, once all that it says is on disk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Pending {
        inputs: Vec<QueuedInput>,
        held: bool,
    },
    /// Whether anything was held.
    Resumed(bool),
    Session(Box<Session>),
    Recorded,
}

/// What shall be different in a session from its next turn on; what is `None` stays.
///
/// A turn that runs ends with what it began with: what a model has thought goes back only to that model, and the requests of
/// one turn begin with the same bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct SessionChange {
    /// The model to ask, its effort included.
    pub model: Option<ModelRef>,
    /// How hard the model shall think, in the provider's words; the empty text leaves it to the provider.
    pub effort: Option<String>,
    /// The name of the agent that works in it; the empty text means the default one.
    ///
    /// The session keeps its model if no other is given.
    pub agent: Option<String>,
}

impl SessionChange {
    /// Another model.
    #[must_use]
    pub fn model(model: ModelRef) -> Self {
        Self::default().with_model(Some(model))
    }

    /// The same with another model.
    #[must_use]
    pub fn with_model(mut self, model: Option<ModelRef>) -> Self {
        self.model = model;
        self
    }

    /// The same with another effort.
    #[must_use]
    pub fn with_effort(mut self, effort: Option<String>) -> Self {
        self.effort = effort;
        self
    }

    /// The same with another agent.
    #[must_use]
    pub fn with_agent(mut self, agent: Option<String>) -> Self {
        self.agent = agent;
        self
    }
}

impl SessionMachine {
    pub(super) fn request(&mut self, tick: &mut Tick<'_>, reply: ReplyId, request: Request) {
        if self.broken {
            let message = "an earlier change could not be written".to_owned();
            return self.refuse(reply, Refusal::NotWritten(message));
        }
        let answer = match request {
            Request::ListPending => self.pending(),
            Request::Pending(change) => return self.change_pending(tick, reply, change),
            Request::Change(change) => self.change(tick, change),
            Request::Record(change) => {
                self.note(tick, &change);
                self.save(tick);
                Answer::Recorded
            }
            Request::Close => {
                self.close(tick);
                Answer::Recorded
            }
        };
        self.scribe.journal.then(Effect::Answer { reply, answer });
    }

    /// Takes another model or agent from the next turn on; each difference is an item of its own, which belongs to no turn.
    fn change(&mut self, tick: &mut Tick<'_>, change: SessionChange) -> Answer {
        let mut model = change.model.unwrap_or_else(|| self.state.model.clone());
        if let Some(effort) = change.effort {
            model.effort = Some(effort).filter(|effort| !effort.is_empty());
        }
        let mut is_other = false;
        if model != self.state.model {
            let from = std::mem::replace(&mut self.state.model, model.clone());
            self.note(tick, &ModelChange::new(from, model));
            is_other = true;
        }
        let agent = change
            .agent
            .map(|name| Some(name).filter(|name| !name.is_empty()));
        if let Some(agent) = agent
            && agent != self.state.agent
        {
            let from = std::mem::replace(&mut self.state.agent, agent.clone());
            self.note(tick, &AgentChange::new(from, agent));
            is_other = true;
        }
        if is_other {
            self.save(tick);
        }
        Answer::Session(Box::new(self.current().to_wire()))
    }

    /// Writes down what is different from now on; before anything was said nothing is.
    fn note<B: ItemBody>(&mut self, tick: &mut Tick<'_>, change: &B) {
        if self.scribe.last_pos() > 0 {
            self.scribe.append(tick, None, change);
        }
    }
}
