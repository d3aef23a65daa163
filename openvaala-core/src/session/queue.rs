//! The inputs that wait: part of the session's state, so what was accepted survives a restart.

use openvaala_protocol::id::ItemId;
use openvaala_protocol::time::Timestamp;

use crate::conversation::Input;
use crate::dao::record::QueuedInput;

/// The most inputs that may wait for one session.
pub(crate) const MAX_WAITING: usize = 1_000;

/// Inputs in the order in which they will be taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Queue {
    inputs: Vec<QueuedInput>,
    /// Whether they stay until the next send.
    pub(crate) held: bool,
}

impl Queue {
    pub(crate) const fn new(inputs: Vec<QueuedInput>, held: bool) -> Self {
        Self { inputs, held }
    }

    pub(crate) fn inputs(&self) -> &[QueuedInput] {
        &self.inputs
    }

    pub(crate) fn contains(&self, id: ItemId) -> bool {
        self.inputs.iter().any(|input| input.item_id == id)
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.inputs.len() >= MAX_WAITING
    }

    pub(crate) fn push(&mut self, input: Input, steer: bool, now: Timestamp) {
        self.inputs.push(QueuedInput {
            item_id: input.item_id,
            content: input.content,
            steer,
            output_schema: input.output_schema,
            queued_at: now,
            from: input.from,
        });
    }

    /// Takes the input that starts the next turn, unless the queue is held.
    ///
    /// What another agent says to a running turn does not keep others waiting: it goes into the turn that comes next.
    pub(crate) fn next_turn(&mut self) -> Option<QueuedInput> {
        if self.held || self.inputs.is_empty() {
            return None;
        }
        let first = self.inputs.iter().position(|input| !input.steer);
        Some(self.inputs.remove(first.unwrap_or(0)))
    }

    /// Takes what the running turn shall read before its next model request.
    pub(crate) fn take_steers(&mut self) -> Vec<QueuedInput> {
        self.inputs.extract_if(.., |input| input.steer).collect()
    }

    /// A turn has ended: what it did not read in time waits like any other input.
    pub(crate) fn turn_ended(&mut self) {
        for input in &mut self.inputs {
            input.steer &= input.from.is_some();
        }
    }

    /// The input of that id.
    pub(super) fn get_mut(&mut self, id: ItemId) -> Option<&mut QueuedInput> {
        self.inputs.iter_mut().find(|input| input.item_id == id)
    }

    /// Takes out what is chosen.
    pub(super) fn extract(&mut self, chosen: impl Fn(&QueuedInput) -> bool) -> Vec<QueuedInput> {
        self.inputs.extract_if(.., |input| chosen(input)).collect()
    }

    pub(super) fn sort_by_key<K: Ord>(&mut self, key: impl FnMut(&QueuedInput) -> K) {
        self.inputs.sort_by_key(key);
    }

    /// Drops what is known to have been taken; says whether there was any.
    pub(crate) fn drop_taken(&mut self, taken: impl Fn(ItemId) -> bool) -> bool {
        let before = self.inputs.len();
        self.inputs.retain(|input| !taken(input.item_id));
        self.inputs.len() != before
    }
}
