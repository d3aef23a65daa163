use std::collections::{BTreeMap, BTreeSet, HashMap};

use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{ModelRef, TurnStatus};
use openvaala_protocol::id::{ConversationId, ItemId, SessionId, TurnId};
use openvaala_protocol::item::{
    AssistantMessage, ContextSummary, Item, ItemBody, ItemHead, UserMessage,
};
use openvaala_protocol::time::Timestamp;
use openvaala_protocol::usage::Usage;
use openvaala_storage::{Damage, Entry, EntryData};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::*;
use crate::context::{AssembleOptions, assemble};
use crate::dao::query::States;
use crate::dao::record::{ConversationState, SessionState, State, TurnState};

const ROOT: u128 = 1;
const CHILD: u128 = 2;

fn session_id(number: u128) -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(number))
}

fn model() -> ModelRef {
    ModelRef {
        provider: "p".into(),
        model: "m".into(),
        effort: None,
    }
}

fn conversation(title: usize) -> State {
    State::Conversation(ConversationState {
        id: ConversationId::from_uuid(Uuid::from_u128(9)),
        title: Some(title.to_string()),
        root_session: session_id(ROOT),
        executors: Vec::new(),
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        damaged: None,
        archived: false,
        forked_from: None,
        children: Vec::new(),
    })
}

fn session(number: u128, active: Option<TurnId>, last_pos: u64) -> State {
    State::Session(SessionState {
        id: session_id(number),
        conversation_id: ConversationId::from_uuid(Uuid::from_u128(9)),
        parent: None,
        agent: None,
        model: model(),
        approval_mode: None,
        approval_rules: Vec::new(),
        active_turn: active,
        queue: Vec::new(),
        held: false,
        last_pos,
        newest_input: None,
        withdrawn: Vec::new(),
        usage: Usage::default(),
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        context_tokens: None,
        child: None,
    })
}

fn turn(number: u128, id: TurnId, ended: bool) -> State {
    State::Turn(TurnState {
        id,
        session_id: session_id(number),
        status: if ended {
            TurnStatus::Completed
        } else {
            TurnStatus::Running
        },
        failure: None,
        inputs: vec![ItemId::from_uuid(*id.as_uuid())],
        output_schema: None,
        model: model(),
        executors: Vec::new(),
        steps: 0,
        usage: Usage::default(),
        started_at: Timestamp::from_millis(0),
        ended_at: ended.then(|| Timestamp::from_millis(1)),
        last_seq: 0,
    })
}

/// A metadata stream as two sessions write it, from the choices of a schedule.
#[derive(Default)]
struct Stream {
    entries: Vec<Entry>,
    active: BTreeMap<u128, TurnId>,
    turns: u128,
}

impl Stream {
    fn push(&mut self, data: Box<RawValue>) {
        let seq = self.entries.len() as u64 + 1;
        let data = EntryData::Json(data);
        self.entries.push(Entry { seq, time: 0, data });
    }

    fn state(&mut self, state: &State) {
        self.push(state.to_raw().unwrap());
    }

    fn step(&mut self, choice: u8) {
        let number = if choice & 0x80 == 0 { ROOT } else { CHILD };
        match choice & 0x0f {
            0 => self.state(&conversation(self.entries.len())),
            1 => self.push(raw(
                r#"{"format":1,"kind":"conversation","id":"9","deleted":true}"#,
            )),
            2 => self.push(raw(r#"{"format":9,"kind":"session","id":"1","state":{}}"#)),
            3 => self.push(raw(r#"{"format":1,"kind":"session","id":"1","state":7}"#)),
            4 | 5 => self.damage(),
            6..=9 => {
                let active = self.active.get(&number).copied();
                self.state(&session(number, active, u64::from(choice)));
            }
            // The second state of a batch may be lost in a crash.
            last => {
                self.turn(number);
                if last < 15 {
                    let active = self.active.get(&number).copied();
                    self.state(&session(number, active, u64::from(choice)));
                }
            }
        }
    }

    fn turn(&mut self, number: u128) {
        if let Some(id) = self.active.remove(&number) {
            return self.state(&turn(number, id, true));
        }
        self.turns += 1;
        let id = TurnId::from_uuid(Uuid::from_u128(1_000 + self.turns));
        self.active.insert(number, id);
        self.state(&turn(number, id, false));
    }

    fn damage(&mut self) {
        if let Some(last) = self.entries.last_mut() {
            last.data = EntryData::Damaged(Damage {
                offset: 0,
                length: 1,
                reason: "flipped".into(),
            });
        }
    }

    /// What a reader of all of it knows, of the turns those that an opening is about.
    fn read_whole(&self) -> States {
        let mut all = States::default();
        let mut last_turns = BTreeMap::new();
        for entry in &self.entries {
            all.take(entry);
            let mut one = States::default();
            one.take(entry);
            last_turns.extend(one.turns.values().map(|turn| (turn.session_id, turn.id)));
        }
        let active = all
            .sessions
            .values()
            .filter_map(|session| session.active_turn);
        let wanted: BTreeSet<TurnId> = active.chain(last_turns.into_values()).collect();
        let sessions = &all.sessions;
        all.turns
            .retain(|id, turn| wanted.contains(id) && sessions.contains_key(&turn.session_id));
        all
    }
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// R-57: a damaged last state falls back to the one before it, whichever way the log is read.
    #[test]
    fn r_57_reading_backwards_tells_what_reading_all_of_it_tells(
        steps in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut stream = Stream::default();
        stream.state(&conversation(0));
        stream.state(&session(ROOT, None, 0));
        stream.state(&session(CHILD, None, 0));
        for choice in steps {
            stream.step(choice);
        }
        let expected = stream.read_whole();
        let with_items = [session_id(ROOT), session_id(CHILD)].into();
        let (mut latest, _) = latest_of(&stream.entries, with_items);
        prop_assert_eq!(latest.states.deleted, expected.deleted);
        if !expected.deleted {
            // Only what was passed on the way is told of damage and newer formats; of times nothing is.
            latest.states.damaged.clone_from(&expected.damaged);
            (latest.states.newer, latest.states.times) = (expected.newer, expected.times);
            let is_expected = |id: &TurnId| expected.turns.contains_key(id);
            let met = latest.states.turns.clone();
            latest.states.turns.retain(|id, _| is_expected(id));
            prop_assert_eq!(latest.states, expected.clone());
            let others = met.iter().filter(|(id, _)| !is_expected(id));
            let open = others.filter(|(_, turn)| turn.ended_at.is_none());
            prop_assert_eq!(open.count(), 0);
        }
    }
}

#[test]
fn states_that_are_written_again_keep_the_rest_of_the_log_unread() {
    let mut stream = Stream::default();
    stream.state(&conversation(0));
    stream.state(&session(ROOT, None, 0));
    for n in 0..100_000 {
        stream.turn(ROOT);
        let active = stream.active.get(&ROOT).copied();
        stream.state(&session(ROOT, active, n));
        if n % 50 == 0 {
            stream.state(&conversation(0));
        }
    }
    let (latest, read) = latest_of(&stream.entries, [session_id(ROOT)].into());
    assert_eq!(latest.states.last, stream.entries.len() as u64);
    assert!(read <= 102, "{read} entries were read");
}

fn item<B: ItemBody>(pos: u64, turn: u128, body: &B) -> Item {
    let now = Timestamp::from_millis(0);
    let id = ItemId::from_uuid(Uuid::from_u128(u128::from(pos)));
    let turn = Some(TurnId::from_uuid(Uuid::from_u128(turn)));
    Item::new(ItemHead::new(id, B::KIND, turn, pos, now, now), body).unwrap()
}

/// Turns of some items each, those of one turn in any order, now and then a summary.
fn history(turns: &[(u8, u8, u8)]) -> Vec<Item> {
    let (mut items, mut pos, mut up_to) = (Vec::new(), 0, 0);
    for (number, (count, rotate, summary)) in (1..).zip(turns) {
        let begin = items.len();
        for n in 0..=count % 6 {
            pos += 1;
            if n == 0 {
                let said = vec![Content::text(format!("question {pos}"))];
                items.push(item(pos, number, &UserMessage::new(said, false)));
            } else if n == 3 && summary.is_multiple_of(4) {
                up_to = (pos - u64::from(summary / 4 % 8).min(pos)).max(up_to);
                let body = serde_json::json!({ "text": format!("summary {pos}"), "up_to": up_to });
                let body: ContextSummary = serde_json::from_value(body).unwrap();
                items.push(item(pos, number, &body));
            } else {
                let body = serde_json::json!({ "text": format!("answer {pos}") });
                let body: AssistantMessage = serde_json::from_value(body).unwrap();
                items.push(item(pos, number, &body));
            }
        }
        let of_turn = &mut items[begin..];
        of_turn.rotate_left(usize::from(*rotate) % of_turn.len());
    }
    items
}

proptest! {
    #[test]
    fn u_024_what_is_read_back_to_the_last_summary_makes_the_same_request(
        turns in proptest::collection::vec(any::<(u8, u8, u8)>(), 0..20),
    ) {
        let items = history(&turns);
        let mut context = Context::default();
        let _ = items.iter().rev().all(|item| context.take(item.clone()));
        let context = context.finish();
        let (target, blobs) = (model(), HashMap::new());
        let request = |items: &[Item]| {
            format!("{:#?}", assemble(AssembleOptions::new(items, &target, &blobs)))
        };
        prop_assert_eq!(request(&context), request(&items));
    }
}
