//! Whatever the log holds, providers accept the request, and later requests begin with the earlier ones.

use openvaala_protocol::content::Content;
use openvaala_protocol::item::{
    Interruption, InterruptionCause, Item, ToolCall, ToolResult, ToolResultStatus, UserMessage,
};
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::{id, item, item_with_id, messages, opaque, said, thought, user};
use crate::context::wording::NO_RESULT;
use crate::model::{Message, Messages};

/// One item of a history, before it has a place.
#[derive(Clone, Debug)]
pub(super) enum Event {
    User(String),
    Said(String),
    Thought(bool),
    Call {
        call_id: String,
        tool: String,
        arguments: String,
        cut: bool,
    },
    Result {
        of: u64,
        call_id: String,
        status: ToolResultStatus,
        text: String,
    },
    Interruption,
    /// An item of a known kind with any body.
    Raw {
        kind: &'static str,
        body: String,
    },
    /// An item that has been there before.
    Again {
        of: u64,
    },
}

impl Event {
    fn at(&self, pos: u64) -> Item {
        match self {
            Self::User(text) => user(pos, text),
            Self::Said(text) => said(pos, text),
            Self::Thought(here) => {
                thought(pos, Some(opaque(if *here { "p" } else { "q" }, "m", None)))
            }
            Self::Call {
                call_id,
                tool,
                arguments,
                cut,
            } => {
                let mut call = ToolCall::new(call_id.clone(), tool.clone(), arguments.clone());
                call.cut = *cut;
                item(pos, &call)
            }
            Self::Result {
                of,
                call_id,
                status,
                text,
            } => {
                let content = vec![Content::text(text.as_str())];
                item(
                    pos,
                    &ToolResult::new(id(*of), call_id.clone(), *status, content),
                )
            }
            Self::Interruption => item(pos, &Interruption::new(InterruptionCause::Crash)),
            Self::Raw { kind, body } => raw(pos, kind, body),
            Self::Again { of } => {
                let body = UserMessage::new(vec![Content::text("again")], true);
                item_with_id(id(*of), pos, &body)
            }
        }
    }
}

fn raw(pos: u64, kind: &str, body: &str) -> Item {
    let (id, time) = (id(pos), "2026-12-02T04:22:41.123Z");
    let text = format!(
        "{{\"id\":\"{id}\",\"kind\":\"{kind}\",\"turn\":null,\"pos\":{pos},\"started_at\":\"{time}\",\
         \"ended_at\":\"{time}\",\"body\":{body}}}"
    );
    Item::from_raw(RawValue::from_string(text).unwrap()).unwrap()
}

const KINDS: &[&str] = &[
    "user_message",
    "assistant_message",
    "agent_message",
    "reasoning",
    "tool_call",
    "tool_result",
    "context_summary",
    "skill",
    "instructions",
    "interruption",
    "approval",
    "plan",
    "from_the_future",
];

const BODIES: &[&str] = &[
    "null",
    "7",
    "[]",
    "{}",
    "\"x\"",
    "{\"text\":\"x\"}",
    "{\"text\":\"x\",\"up_to\":3}",
    "{\"text\":\"\",\"up_to\":18446744073709551615}",
    "{\"content\":[]}",
    "{\"content\":[{\"type\":\"new\"}]}",
    "{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}",
    "{\"call_id\":\"\",\"tool\":\"\",\"arguments\":\"\"}",
    "{\"cause\":\"new\"}",
    "{\"cause\":\"requested\"}",
    "{\"name\":\"x\",\"text\":\"\",\"path\":\"\",\"bytes\":0}",
];

const ARGUMENTS: &[&str] = &["", "{}", "{\"x\":1}", "{\"x\":", "[]", "null", "}{", " {} "];

pub(super) fn event(with_raw: bool) -> impl Strategy<Value = Event> {
    let call_id =
        || prop::sample::select(vec!["", "a", "b", "a_2", "call_3"]).prop_map(str::to_owned);
    let text = || prop::sample::select(vec!["", " ", "x", "yy"]).prop_map(str::to_owned);
    let status = prop::sample::select(vec![
        ToolResultStatus::Ok,
        ToolResultStatus::Failed,
        ToolResultStatus::Interrupted,
        ToolResultStatus::Unknown,
    ]);
    let call = (
        call_id(),
        prop::sample::select(vec!["bash", "", "a b"]),
        prop::sample::select(ARGUMENTS),
        prop::bool::weighted(0.1),
    );
    prop_oneof![
        2 => text().prop_map(Event::User),
        2 => text().prop_map(Event::Said),
        1 => any::<bool>().prop_map(Event::Thought),
        4 => call.prop_map(|(call_id, tool, arguments, cut)| Event::Call {
            call_id,
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            cut,
        }),
        4 => (1_u64..14, call_id(), status, text())
            .prop_map(|(of, call_id, status, text)| Event::Result { of, call_id, status, text }),
        1 => Just(Event::Interruption),
        u32::from(with_raw) * 2 + 1 => (1_u64..14).prop_map(|of| Event::Again { of }),
        if with_raw { 3 } else { 1 } => (
            prop::sample::select(if with_raw { KINDS } else { &["approval", "from_the_future"] }),
            prop::sample::select(BODIES),
        ).prop_map(|(kind, body)| Event::Raw { kind, body: body.to_owned() }),
    ]
}

pub(super) fn history(events: &[Event]) -> Vec<Item> {
    (1..)
        .zip(events)
        .map(|(pos, event)| event.at(pos))
        .collect()
}

/// Whether a request can be made here: all calls are answered, and the model is to speak.
fn is_boundary(messages: &Messages) -> bool {
    let is_made_up = |message: &Message| {
        let Message::ToolResults(answers) = message else {
            return false;
        };
        let texts = answers
            .iter()
            .flat_map(|answer| &answer.content)
            .filter_map(Content::as_text);
        texts.into_iter().any(|text| text == NO_RESULT)
    };
    let is_assistant = matches!(messages.last(), Some(Message::Assistant(_)));
    !is_assistant && !messages.iter().any(is_made_up)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// `messages` checks the pairing.
    #[test]
    fn m_33_u_019_u_044_every_history_becomes_a_request_that_providers_accept(
        events in prop::collection::vec(event(true), 0..14),
        order in any::<u64>(),
    ) {
        let mut items = history(&events);
        if !items.is_empty() {
            let places = items.len();
            items.rotate_left(usize::try_from(order % 14).unwrap() % places);
        }
        messages(&items);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_later_request_begins_with_the_messages_of_the_earlier_one(
        events in prop::collection::vec(event(false), 0..14),
    ) {
        let items = history(&events);
        let all = messages(&items);
        for count in 0..items.len() {
            let earlier = messages(&items[..count]);
            if is_boundary(&earlier) {
                let same = all.iter().zip(&earlier).filter(|(a, b)| format!("{a:?}") == format!("{b:?}"));
                prop_assert_eq!(same.count(), earlier.len(), "{}: {:#?} | {:#?}", count, earlier, all);
            }
        }
    }
}
