//! Questions whether a call may run: who answers when, and what must be on disk then.

use std::collections::{BTreeMap, BTreeSet};

use openvaala_protocol::approval::{ApprovalAnswer, ApprovalScope};
use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{Approval, ApprovalState, Item, ItemKind, ToolCall, ToolResult};
use uuid::Uuid;

use super::{Disk, Simulation};
use crate::agent::RunningCall;
use crate::conversation::AnswerApproval;
use crate::session::event::Event;

impl Disk {
    /// The last writing of an approval.
    fn last_approval(&self, is_it: impl Fn(&Approval) -> bool) -> Option<Approval> {
        let mut approvals = self
            .items
            .iter()
            .rev()
            .filter_map(|item| item.body::<Approval>()?.ok());
        approvals.find(|approval| is_it(approval))
    }

    /// The questions of the turn that runs that nobody has answered; `None` without such a turn.
    pub(super) fn open_questions(&self) -> Option<Vec<ItemId>> {
        let mut turns = self.turns.values();
        let running = turns.find(|turn| turn.status == TurnStatus::Running)?;
        let of_turn = |item: &&Item| item.head().turn == Some(running.id);
        let items = || self.items.iter().filter(of_turn);
        let mut states: BTreeMap<ItemId, Approval> = items()
            .filter_map(|item| Some((item.head().id, item.body::<Approval>()?.ok()?)))
            .collect();
        let results = items().filter_map(|item| item.body::<ToolResult>()?.ok());
        let answered: BTreeSet<ItemId> = results.map(|result| result.call).collect();
        states.retain(|_, approval| {
            approval.state == ApprovalState::Pending && !answered.contains(&approval.call)
        });
        Some(states.into_keys().collect())
    }

    /// The item of a call.
    fn call_of(&self, call_id: &str) -> Option<ItemId> {
        let item = self.items.iter().find(|item| {
            item.body::<ToolCall>()
                .is_some_and(|body| body.unwrap().call_id == call_id)
        });
        item.map(|item| item.head().id)
    }
}

impl Simulation {
    /// Somebody answers one of the questions, perhaps one that is answered already.
    pub(super) fn answer(&mut self, choice: u8) {
        let approvals = self.disk.items.iter().rev();
        let approvals = approvals.filter(|item| item.head().kind == ItemKind::Approval);
        let Some(item) = approvals.take(3).nth(usize::from(choice) % 3) else {
            return;
        };
        let answer = if choice.is_multiple_of(4) {
            ApprovalAnswer::Deny
        } else {
            ApprovalAnswer::Approve
        };
        let scope = if choice.is_multiple_of(8) {
            ApprovalScope::Session
        } else {
            ApprovalScope::Once
        };
        let answer = AnswerApproval::new(item.head().id, answer).with_scope(scope);
        self.last_reply += 1;
        let reply = self.last_reply;
        self.replies.insert(reply, ItemId::from_uuid(Uuid::nil()));
        self.event(Event::AnswerApproval { reply, answer });
    }

    pub(super) fn answer_all(&mut self) -> bool {
        let open = self.machine.open_approvals(self.setup.conversation_id);
        for question in &open {
            let answer = AnswerApproval::new(question.approval_id, ApprovalAnswer::Approve);
            self.last_reply += 1;
            let reply = self.last_reply;
            self.replies.insert(reply, ItemId::from_uuid(Uuid::nil()));
            self.event(Event::AnswerApproval { reply, answer });
        }
        !open.is_empty()
    }

    /// A restart leaves exactly those questions open.
    pub(super) fn expect_open(&mut self, questions: &[ItemId]) {
        let left = self.machine.open_approvals(self.setup.conversation_id);
        let calls = left.iter().map(|question| question.approval.call);
        self.left_calls.extend(calls);
        let open = left.iter().map(|question| question.approval_id);
        let mut open: Vec<ItemId> = open.collect();
        open.sort();
        assert_eq!(open, questions, "what is asked is asked after a restart");
    }

    pub(super) fn note_start(&mut self, call: &RunningCall) {
        let call = self.disk.call_of(&call.call_id);
        let is_late = call.is_some_and(|call| self.left_calls.contains(&call));
        self.late_starts += usize::from(is_late);
    }

    pub(super) fn expect_approved(&self, call: &RunningCall) {
        let asked = self
            .disk
            .last_approval(|approval| self.disk.call_of(&call.call_id) == Some(approval.call));
        let approved = asked.is_none_or(|approval| approval.state == ApprovalState::Approved);
        assert!(
            approved,
            "what is asked is approved on disk before it starts"
        );
    }

    pub(super) fn expect_last_word(&self, approval: &Approval) {
        let on_disk = self.disk.last_approval(|other| other.call == approval.call);
        assert_eq!(
            on_disk,
            Some(approval.clone()),
            "an answer is on disk, and is the last word"
        );
    }

    pub(super) fn expect_no_open_question(&self) {
        let pending = self
            .disk
            .items
            .iter()
            .filter_map(|item| item.body::<Approval>()?.ok());
        for call in pending.map(|approval| approval.call) {
            let last = self.disk.last_approval(|approval| approval.call == call);
            assert_ne!(
                last.map(|approval| approval.state),
                Some(ApprovalState::Pending),
                "no question stays open without its turn"
            );
        }
    }
}
