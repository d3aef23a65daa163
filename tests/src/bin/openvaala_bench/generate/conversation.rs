//! The entries of one conversation: its states and the items of its sessions.

use openvaala_core::protocol::content::Content;
use openvaala_core::protocol::conversation::ModelRef;
use openvaala_core::protocol::id::ExecutorId;
use openvaala_core::protocol::item::{
    AssistantMessage, Item, ItemHead, ItemKind, ToolCall, ToolResult, ToolResultStatus, UserMessage,
};
use openvaala_core::protocol::usage::Usage;
use openvaala_core::storage::NewEntry;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::plan::{At, Plan};
use super::words::{Pool, title};
use crate::Failure;

/// What a line of an item has around its text, about.
const AROUND: u64 = 400;
const SHORTEST: u64 = 16;
const PROJECTS: u64 = 20;

/// Makes every entry of a plan, in any order.
#[derive(Debug)]
pub(crate) struct Author {
    pub(crate) plan: Plan,
    pool: Pool,
}

impl Author {
    pub(crate) fn new(plan: Plan) -> Self {
        let pool = Pool::new(plan.seed);
        Self { plan, pool }
    }

    pub(crate) fn title(&self, conversation: u64) -> Option<String> {
        let mut dice = self.plan.dice("title", [conversation, 0, 0]);
        self.plan.titles.then(|| title(conversation, &mut dice))
    }

    /// An item; they count from 1, as the entries of its stream do.
    pub(crate) fn item(&self, at: At, number: u64) -> Result<Item, Failure> {
        let plan = &self.plan;
        let turn = plan.turn_of(at, number);
        let (first, last) = plan.bounds(at, turn);
        let (id, time) = (plan.item_id(at, number), plan.item_at(at, number));
        // The body says which kind it is.
        let kind = ItemKind::UserMessage;
        let head = ItemHead::new(id, kind, Some(plan.turn_id(at, turn)), number, time, time);
        let text = self.text(at, number);
        let (place, before_last) = (number - first, last.saturating_sub(1));
        let alone = number == before_last && place % 2 == 1;
        let item = if place == 0 {
            Item::new(head, &UserMessage::new(vec![Content::text(text)], false))
        } else if number == last || alone {
            Item::new(head, &AssistantMessage::new(text, false))
        } else if place % 2 == 1 {
            Item::new(head, &call(number, &text))
        } else {
            let call = plan.item_id(at, number - 1);
            let content = vec![Content::text(text)];
            let mut result =
                ToolResult::new(call, call_id(number - 1), ToolResultStatus::Ok, content);
            result.exit_code = Some(0);
            Item::new(head, &result)
        };
        Ok(item?)
    }

    fn text(&self, at: At, number: u64) -> String {
        let place = [at.conversation, at.session, number];
        let mut dice = self.plan.dice("text", place);
        let mean = self.plan.item_bytes.saturating_sub(AROUND).max(SHORTEST);
        // Of a thousand one is very long and twenty are long, which makes a third of all bytes.
        let length = match (number + at.conversation * 37) % 1_000 {
            500 => mean * 100,
            rest if rest % 50 == 25 => mean * 10,
            _ => mean * (35 + dice.below(71)) / 100,
        };
        self.pool.text(length.max(1) as usize, &mut dice)
    }

    pub(crate) fn item_entry(&self, at: At, number: u64) -> Result<NewEntry, Failure> {
        let item = self.item(at, number)?;
        let time = item.head().ended_at.as_millis();
        Ok(NewEntry::new(time, item.into_raw()))
    }

    /// The states of a conversation in the order in which they were written.
    pub(crate) fn states(&self, conversation: u64) -> Result<Vec<NewEntry>, Failure> {
        let created = self.plan.created_at(conversation).as_millis();
        let mut entries = vec![entry(created, self.conversation(conversation, None))?];
        for session in 0..self.plan.sessions {
            let at = At {
                conversation,
                session,
            };
            entries.push(entry(created, self.session(at, None, false))?);
            if let (0, Some(title)) = (session, self.title(conversation)) {
                entries.push(entry(
                    created,
                    self.conversation(conversation, Some(title)),
                )?);
            }
            for turn in 0..self.plan.turns_of(at) {
                let (first, last) = self.plan.bounds(at, turn);
                for (item, running) in [(first, true), (last, false)] {
                    let time = self.plan.item_at(at, item).as_millis();
                    entries.push(entry(time, self.turn(at, turn, running))?);
                    entries.push(entry(time, self.session(at, Some(turn), running))?);
                }
            }
        }
        Ok(entries)
    }

    fn conversation(&self, number: u64, title: Option<String>) -> Value {
        let id = self.plan.conversation_id(number);
        let created = self.plan.created_at(number);
        let state = json!({
            "id": id, "title": title, "root_session": self.plan.session_id(At::root(number)),
            "executors": [location(number)], "created_at": created, "updated_at": created,
        });
        json!({"format": 1, "kind": "conversation", "id": id, "state": state})
    }

    fn session(&self, at: At, turn: Option<u64>, running: bool) -> Value {
        let plan = &self.plan;
        let id = plan.session_id(at);
        let created = plan.created_at(at.conversation);
        let updated = turn.map_or(created, |turn| {
            let (first, last) = plan.bounds(at, turn);
            plan.item_at(at, if running { first } else { last })
        });
        let parent = (at.session > 0).then(|| plan.session_id(At::root(at.conversation)));
        let active = turn.filter(|_| running).map(|turn| plan.turn_id(at, turn));
        let state = json!({
            "id": id, "conversation_id": plan.conversation_id(at.conversation), "parent": parent, "model": model(),
            "active_turn": active, "queue": [], "held": false, "usage": Usage::default(),
            "created_at": created, "updated_at": updated,
        });
        json!({"format": 1, "kind": "session", "id": id, "state": state})
    }

    fn turn(&self, at: At, number: u64, running: bool) -> Value {
        let plan = &self.plan;
        let (first, last) = plan.bounds(at, number);
        let id = plan.turn_id(at, number);
        let ended = (!running).then(|| plan.item_at(at, last));
        let state = json!({
            "id": id, "session_id": plan.session_id(at),
            "status": if running { "running" } else { "completed" }, "failure": null,
            "inputs": [plan.item_id(at, first)], "model": model(), "executors": [location(at.conversation)],
            "steps": (last - first) / 2 + 1, "usage": Usage::default(),
            "started_at": plan.item_at(at, first), "ended_at": ended,
            "last_seq": if running { first } else { last },
        });
        json!({"format": 1, "kind": "turn", "id": id, "state": state})
    }
}

fn entry(time: i64, state: Value) -> Result<NewEntry, Failure> {
    Ok(NewEntry::new(time, to_raw_value(&state)?))
}

fn call(number: u64, text: &str) -> ToolCall {
    let arguments = json!({ "command": text }).to_string();
    let mut call = ToolCall::new(call_id(number), "bash".to_owned(), arguments);
    call.executor = Some(ExecutorId::local());
    call
}

fn call_id(number: u64) -> String {
    format!("call_{number}")
}

fn location(conversation: u64) -> Value {
    let root = format!("/srv/project-{}", conversation % PROJECTS);
    json!({"executor": "local", "root": root})
}

fn model() -> ModelRef {
    ModelRef {
        provider: "demo".to_owned(),
        model: "demo".to_owned(),
        effort: None,
    }
}
