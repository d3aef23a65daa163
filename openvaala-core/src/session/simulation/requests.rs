//! Clients that change what waits, and the session itself, in between.

use std::collections::BTreeSet;

use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::ExecutorChange;
use uuid::Uuid;

use super::Simulation;
use crate::session::event::{Event, Refusal, ReplyId};
use crate::session::pending::PendingChange;
use crate::session::request::{Answer, Request, SessionChange};

/// What clients know of the inputs that they have changed.
#[derive(Default)]
pub(super) struct Changes {
    /// Inputs whose withdrawal was asked for, and perhaps written.
    withdrawing: BTreeSet<ItemId>,
    /// Inputs whose withdrawal was acknowledged.
    withdrawn: BTreeSet<ItemId>,
    requests: Vec<(ReplyId, Request)>,
}

impl Changes {
    /// Whether the input is, or may be, nowhere any more.
    pub(super) fn has_withdrawn(&self, input: ItemId) -> bool {
        self.withdrawing.contains(&input) || self.withdrawn.contains(&input)
    }

    /// Nobody waits for an answer any more.
    pub(super) fn forget(&mut self) {
        self.requests.clear();
    }
}

impl Simulation {
    fn request(&mut self, request: Request) {
        if let Some(failure) = self.needs_reload.take() {
            self.restart(Some(failure));
        }
        self.last_reply += 1;
        let reply = self.last_reply;
        self.replies.insert(reply, ItemId::from_uuid(Uuid::nil()));
        self.changes.requests.push((reply, request.clone()));
        self.event(Event::Request { reply, request });
    }

    /// An input that was sent, most often one that still waits.
    fn any_input(&self, detail: u8) -> Option<ItemId> {
        let waiting: Vec<ItemId> = self.waiting();
        let known: Vec<ItemId> = if detail.is_multiple_of(4) || waiting.is_empty() {
            let gone = self.changes.withdrawn.iter();
            self.acked.iter().chain(gone).copied().collect()
        } else {
            waiting
        };
        known
            .get(usize::from(detail / 4) % known.len().max(1))
            .copied()
    }

    fn waiting(&self) -> Vec<ItemId> {
        let queue = &self.machine.queue;
        queue.inputs().iter().map(|input| input.item_id).collect()
    }

    pub(super) fn update(&mut self, detail: u8) {
        let Some(item_id) = self.any_input(detail) else {
            return;
        };
        let content = (detail & 32 != 0).then(|| vec![Content::text("hello again")]);
        let steer = (detail & 64 != 0).then_some(detail & 128 != 0);
        self.request(Request::Pending(PendingChange::Update {
            item_id,
            content,
            steer,
        }));
    }

    pub(super) fn withdraw(&mut self, detail: u8) {
        let mut item_ids = if detail.is_multiple_of(8) {
            self.waiting()
        } else {
            self.any_input(detail).into_iter().collect()
        };
        if detail.is_multiple_of(11) {
            item_ids.push(ItemId::from_uuid(Uuid::from_u128(7)));
        }
        self.request(Request::Pending(PendingChange::Withdraw { item_ids }));
    }

    pub(super) fn reorder(&mut self, detail: u8) {
        let mut item_ids = self.waiting();
        let count = item_ids.len().max(1);
        match detail % 4 {
            0 => item_ids.reverse(),
            1 => item_ids.rotate_left(usize::from(detail / 4) % count),
            2 => item_ids.sort_unstable(),
            _ => drop(item_ids.pop()),
        }
        self.request(Request::Pending(PendingChange::Reorder { item_ids }));
    }

    pub(super) fn change(&mut self, detail: u8) {
        let request = match detail % 5 {
            0 => Request::ListPending,
            1 => Request::Record(ExecutorChange::new(Vec::new(), Vec::new())),
            2 => Request::Change(SessionChange::default().with_agent(Some(format!("{detail}")))),
            3 => Request::Change(SessionChange::model(ModelRef {
                provider: "p".into(),
                model: format!("m{detail}"),
                effort: None,
            })),
            _ => Request::Pending(PendingChange::Resume),
        };
        self.request(request);
    }

    /// The machine has taken a withdrawal in: until it is written the input may be there or not.
    pub(super) fn note_withdrawals(&mut self) {
        let waiting: BTreeSet<ItemId> = self.waiting().into_iter().collect();
        for (_, request) in &self.changes.requests {
            let Request::Pending(PendingChange::Withdraw { item_ids }) = request else {
                continue;
            };
            for id in item_ids {
                if !waiting.contains(id) && !self.machine.inputs.contains(*id) {
                    self.acked.remove(id);
                    self.changes.withdrawing.insert(*id);
                }
            }
        }
    }

    pub(super) fn refused(&mut self, reply: ReplyId, refusal: &Refusal) {
        let Some(at) = self
            .changes
            .requests
            .iter()
            .position(|(id, _)| *id == reply)
        else {
            return;
        };
        let (_, request) = self.changes.requests.remove(at);
        match (request, refusal) {
            (_, Refusal::NotWritten(_)) => {}
            (Request::Pending(change), Refusal::InputNotFound(id)) => {
                assert!(!matches!(change, PendingChange::Reorder { .. }));
                assert!(!self.acked.contains(id), "what was acknowledged is known");
            }
            (Request::Pending(_), Refusal::InputTaken(id)) => {
                assert!(!self.changes.withdrawn.contains(id), "no turn takes it");
            }
            (Request::Pending(PendingChange::Reorder { item_ids }), Refusal::QueueChanged(_)) => {
                assert_ne!(item_ids, self.waiting(), "the right order is taken");
            }
            (request, refusal) => panic!("{request:?} was refused: {refusal:?}"),
        }
    }

    pub(super) fn answered(&mut self, reply: ReplyId, answer: &Answer) {
        let requests = &mut self.changes.requests;
        let at = requests.iter().position(|(id, _)| *id == reply);
        let (_, request) = requests.remove(at.expect("an answer to something asked"));
        let reordered = |(_, request): &(ReplyId, Request)| {
            matches!(request, Request::Pending(PendingChange::Reorder { .. }))
        };
        let is_last = !requests.iter().any(reordered);
        match request {
            Request::Pending(PendingChange::Withdraw { item_ids }) => {
                for id in item_ids {
                    assert_eq!(self.disk.places_of(id), 0, "withdrawn means gone from disk");
                    self.changes.withdrawing.remove(&id);
                    self.changes.withdrawn.insert(id);
                }
            }
            Request::Pending(PendingChange::Reorder { item_ids }) if is_last => {
                let queue = &self.disk.session.as_ref().unwrap().queue;
                let on_disk: Vec<ItemId> = queue
                    .iter()
                    .map(|input| input.item_id)
                    .filter(|id| item_ids.contains(id))
                    .collect();
                let mut expected = item_ids;
                expected.retain(|id| on_disk.contains(id));
                assert_eq!(on_disk, expected, "the acknowledged order is on disk");
            }
            Request::ListPending => assert!(matches!(answer, Answer::Pending { .. })),
            _ => {}
        }
    }

    /// No turn has taken, nor will take, what was withdrawn.
    pub(super) fn check_withdrawn(&self) {
        for input in &self.changes.withdrawn {
            let places = self.disk.places_of(*input);
            assert_eq!(places, 0, "what was withdrawn never comes back");
        }
    }

    /// An input that was withdrawn, to be sent again.
    pub(super) fn withdrawn_input(&self, detail: u8) -> Option<ItemId> {
        let gone = &self.changes.withdrawn;
        let at = usize::from(detail) % gone.len().max(1);
        gone.iter().nth(at).copied()
    }
}
