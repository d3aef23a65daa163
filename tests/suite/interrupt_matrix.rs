//! An interrupt of everything that can hang: it is acknowledged in time, keeps what there was, and leaves nothing behind.

mod agents;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use openvaala_protocol::conversation::{SessionStatus, TurnStatus};
use openvaala_protocol::event::{Entry, Live};
use openvaala_protocol::id::{ConversationId, ItemId};
use openvaala_protocol::item::{
    Approval, ApprovalState, AssistantMessage, Item, ItemBody, ItemKind, RetryNotice, ToolResult,
    ToolResultStatus,
};
use openvaala_protocol::rpc::params::session::{InterruptParams, InterruptScope};
use openvaala_protocol::rpc::{Notice, method};
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::notice::is_long;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// Within one second, says the design; the rest is for a busy machine.
const ACKNOWLEDGED: Duration = Duration::from_secs(2);

/// After that nothing is alive.
const GONE: Duration = Duration::from_secs(3);

/// What goes on when a turn is interrupted.
const BACKGROUND: &str = "sleep 2000";

/// Something that hangs, and how one sees that it does.
#[derive(Clone, Copy, Debug)]
enum Hung {
    /// A model that takes the request and says nothing.
    Silence,
    /// A model that stops in the middle of a text.
    Text,
    /// A model that wants to be asked again later.
    Retry,
    /// Calls of these commands, each of which prints `ready` once it runs.
    Commands(&'static [&'static str]),
    /// A command that waits at the input that its call keeps open.
    Input,
    /// A question that nobody answers.
    Approval,
    /// An agent that is waited for, and hangs like that.
    Agent(&'static Self),
    /// A command and an agent in the background that hangs like that: the whole tree is interrupted.
    Tree(&'static Self),
}

impl Hung {
    fn answer(self) -> Answer {
        let bash = |arguments: Value| Answer::tool("call-0", "bash", &arguments.to_string());
        match self {
            Self::Silence => Answer::silence(),
            Self::Text => Answer::stream().say("so far, ").say("so good").stall(),
            Self::Retry => {
                Answer::error(429, "rate_limited", "slow down").header("retry-after", "50")
            }
            Self::Commands(lines) => lines
                .iter()
                .enumerate()
                .fold(Answer::stream(), |answer, (n, line)| {
                    let arguments = json!({ "command": line }).to_string();
                    answer.call(&format!("call-{n}"), "bash", &arguments)
                })
                .end(),
            Self::Input => bash(json!({ "command": "echo ready; cat", "input": true })),
            Self::Approval => bash(json!({ "command": "touch made" })),
            Self::Agent(_) => agents::starts_one(),
            Self::Tree(_) => agents::starts_one_in_the_background(),
        }
    }

    /// Waits until it hangs.
    async fn begun(self, watcher: &mut Watcher, model: &mut FakeModel) {
        match self {
            Self::Silence => {
                wait::eventually("the request", async || {
                    let mut hanging = model.requests().iter();
                    hanging.next().map(drop).ok_or("none has come")
                })
                .await;
            }
            Self::Text => printed(watcher, ItemKind::AssistantMessage, 1, "so good").await,
            Self::Retry => written::<RetryNotice>(watcher).await,
            Self::Commands(lines) => {
                printed(watcher, ItemKind::ToolResult, lines.len(), "ready").await
            }
            Self::Input => printed(watcher, ItemKind::ToolResult, 1, "ready").await,
            Self::Approval => written::<Approval>(watcher).await,
            Self::Agent(hung) => agents::begun(hung, 0, watcher, model).await,
            Self::Tree(hung) => agents::begun(hung, 1, watcher, model).await,
        }
    }

    /// How the agent below the main one hangs, if there is one.
    const fn below(self) -> Option<Self> {
        match self {
            Self::Agent(hung) | Self::Tree(hung) => Some(*hung),
            _ => None,
        }
    }

    const fn scope(self) -> InterruptScope {
        match self {
            Self::Tree(_) => InterruptScope::Tree,
            _ => InterruptScope::Turn,
        }
    }

    /// Checks what the log keeps of it.
    #[track_caller]
    fn expect_kept(self, items: &[Item]) {
        match self {
            Self::Silence => assert_eq!(bodies::<AssistantMessage>(items).len(), 0),
            Self::Text => {
                let messages = bodies::<AssistantMessage>(items);
                let [message] = messages.as_slice() else {
                    panic!("{messages:?}");
                };
                assert_eq!(
                    (message.text.as_str(), message.cut),
                    ("so far, so good", true)
                );
            }
            Self::Retry => assert_eq!(bodies::<RetryNotice>(items).len(), 1),
            Self::Commands(lines) => expect_output(items, lines.len()),
            Self::Input => expect_output(items, 1),
            Self::Approval => {
                let states: Vec<_> = bodies::<Approval>(items)
                    .into_iter()
                    .map(|approval| approval.state)
                    .collect();
                assert_eq!(states, [ApprovalState::Cancelled]);
            }
            Self::Agent(_) => agents::expect_call_ended(items),
            Self::Tree(_) => expect_output(items, 1),
        }
    }
}

/// All results of the interrupted turn say so, and begin with what their commands had printed.
#[track_caller]
fn expect_output(items: &[Item], calls: usize) {
    let results: Vec<_> = bodies::<ToolResult>(items)
        .into_iter()
        .filter(|result| result.status == ToolResultStatus::Interrupted)
        .map(|result| {
            let text = result.content.first().map(|piece| format!("{piece:?}"));
            text.is_some_and(|text| text.contains("ready"))
        })
        .collect();
    assert_eq!(results, vec![true; calls], "{items:?}");
}

/// The newest version of each item of a kind.
fn bodies<B: ItemBody>(items: &[Item]) -> Vec<B> {
    let newest: BTreeMap<u64, &Item> = items.iter().map(|item| (item.head().pos, item)).collect();
    let of_kind = newest.values().filter_map(|item| item.body::<B>());
    of_kind
        .map(|body| body.expect("the item can be read"))
        .collect()
}

/// Waits until that many growing items of a kind have a text.
async fn printed(watcher: &mut Watcher, kind: ItemKind, items: usize, wanted: &str) {
    let mut texts: BTreeMap<ItemId, String> = BTreeMap::new();
    while texts.values().filter(|text| text.contains(wanted)).count() < items {
        let notice = watcher.next().await.expect("the connection lives");
        let Notice::ConversationLive(told) = notice else {
            continue;
        };
        match told.live {
            Live::Started(item) if item.kind == kind => {
                texts.insert(item.item_id, item.text);
            }
            Live::Delta(delta) => {
                if let Some(text) = texts.get_mut(&delta.item_id) {
                    text.push_str(&delta.text);
                }
            }
            _ => {}
        }
    }
}

/// Waits until an item of that kind is written.
async fn written<B: ItemBody>(watcher: &mut Watcher) {
    loop {
        let notice = watcher.next().await.expect("the connection lives");
        if let Notice::ConversationEntry(told) = notice
            && let Entry::Item { item, .. } = told.entry
            && item.body::<B>().is_some()
        {
            return;
        }
    }
}

/// What an interrupt of one thing took, round by round.
#[derive(Debug, Default)]
struct Times {
    /// From sending it to its acknowledgement.
    acknowledged: Vec<Duration>,
    /// From sending it until no process was left.
    gone: Vec<Duration>,
}

impl Times {
    fn print(mut self, what: &str) {
        self.acknowledged.sort();
        self.gone.sort();
        let of = |times: &[Duration], percent: usize| {
            let place = (times.len() * percent).div_ceil(100).max(1) - 1;
            times[place].as_secs_f64() * 1e3
        };
        println!(
            "{what}: {} interrupts, acknowledged after p50 {:.1}, p99 {:.1}, at the most {:.1} ms; \
             nothing left after at the most {:.0} ms",
            self.acknowledged.len(),
            of(&self.acknowledged, 50),
            of(&self.acknowledged, 99),
            of(&self.acknowledged, 100),
            of(&self.gone, 100),
        );
    }
}

/// The model's script: something in the background, something that hangs, or an answer.
fn script(hung: Hung, asked: &Asked) -> Answer {
    if let Some(hung) = hung.below().filter(|_| agents::is_below(asked)) {
        return hung.answer();
    }
    match (asked.last_user().as_str(), asked.step()) {
        ("hang", _) => hung.answer(),
        ("leave", 0) => {
            let arguments = json!({ "command": format!("{BACKGROUND} &") }).to_string();
            Answer::tool("call-left", "bash", &arguments)
        }
        _ => Answer::text("all is well"),
    }
}

/// The commands of the sandbox, and how many of them were left in the background on purpose.
fn commands(sandbox: &Sandbox) -> (Vec<String>, usize) {
    let lines = sandbox.processes().into_iter().map(|process| process.line);
    let commands: Vec<String> = lines.filter(|line| !line.contains(" serve")).collect();
    let (left, others): (Vec<_>, Vec<_>) =
        commands.into_iter().partition(|line| line == BACKGROUND);
    (others, left.len())
}

/// Interrupts it, once or with `OPENVAALA_LONG` set thirty times; `with_background` beside something that goes on.
async fn matrix(what: &str, hung: Hung, with_background: bool) {
    let mut model = FakeModel::start(move |asked| script(hung, asked));
    let sandbox = Sandbox::new();
    let mode = if matches!(hung, Hung::Approval) {
        "ask"
    } else {
        "full"
    };
    sandbox.use_model_with(&model.base_url(), &format!("approval: {{mode: {mode}}}\n"));
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let mut times = Times::default();
    let rounds = if is_long() { 30 } else { 1 };
    for round in 1..=rounds {
        let conversation = watcher.create(&sandbox.project()).await;
        if with_background {
            watcher.ask(conversation, "leave").await;
        }
        watcher.send(conversation, "hang").await.unwrap();
        hung.begun(&mut watcher, &mut model).await;
        let (acknowledged, gone) = interrupt(&sandbox, &watcher, conversation, hung.scope()).await;
        assert!(
            acknowledged < ACKNOWLEDGED,
            "acknowledged after {acknowledged:?}"
        );
        times.acknowledged.push(acknowledged);
        times.gone.push(gone);
        hung.expect_kept(&watcher.items(conversation).await);
        if let Some(hung) = hung.below() {
            hung.expect_kept(&agents::items_below(&watcher, conversation).await);
        }
        let left = if with_background { round } else { 0 };
        assert_eq!(commands(&sandbox), (vec![], left));

        let turn = watcher.ask(conversation, "go on").await;
        assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
        assert_eq!(watcher.last_answer(conversation).await, "all is well");
        model.expect_sound_requests();
        model.forget();
    }
    times.print(what);
}

/// Interrupts the turn that runs, and waits until nothing of it is left; gives how long both took.
async fn interrupt(
    sandbox: &Sandbox,
    watcher: &Watcher,
    conversation_id: ConversationId,
    scope: InterruptScope,
) -> (Duration, Duration) {
    let begin = Instant::now();
    let params = InterruptParams {
        conversation_id,
        session_id: None,
        scope,
    };
    let interrupted = watcher.client.call::<method::SessionInterrupt>(params);
    let interrupted = interrupted.await.unwrap();
    let acknowledged = begin.elapsed();
    wait::within(GONE, "the end of all commands", || {
        match commands(sandbox) {
            (left, _) if left.is_empty() => Ok(()),
            (left, _) => Err(format!("{left:?}")),
        }
    });
    let state = wait::eventually("the end of all turns", async || {
        let state = watcher.get(conversation_id).await.unwrap();
        let mut sessions = state.sessions.iter();
        match sessions.find(|session| session.status != SessionStatus::Idle) {
            Some(busy) => Err(format!("{busy:?}")),
            None => Ok(state),
        }
    })
    .await;
    let gone = begin.elapsed();
    assert!(gone < ACKNOWLEDGED + GONE, "all is over after {gone:?}");
    for session in &state.sessions {
        let mut turns = state.turns.iter().rev();
        let last = turns.find(|turn| turn.session_id == session.id).unwrap();
        assert_eq!(last.status, TurnStatus::Interrupted, "{}", session.path);
        if session.parent.is_none() {
            assert_eq!(Some(last.id), interrupted.turn_id);
        }
    }
    (acknowledged, gone)
}

#[tokio::test]
async fn u_061_a_model_that_never_answers_is_interrupted() {
    matrix("a model that never answers", Hung::Silence, false).await;
}

#[tokio::test]
async fn u_061_a_model_that_stops_in_the_middle_is_interrupted_and_its_text_kept() {
    matrix("a model that stops in the middle", Hung::Text, false).await;
}

#[tokio::test]
async fn u_061_a_wait_before_a_retry_is_interrupted() {
    matrix("a wait before a retry", Hung::Retry, false).await;
}

#[tokio::test]
async fn u_061_a_command_that_sleeps_is_interrupted() {
    let lines = &["echo ready; sleep 1000"];
    matrix("a command that sleeps", Hung::Commands(lines), false).await;
}

#[tokio::test]
async fn u_061_a_command_that_does_not_listen_is_killed() {
    let lines = &["trap '' TERM; echo ready; while :; do sleep 1000; done"];
    matrix(
        "a command that ignores SIGTERM",
        Hung::Commands(lines),
        false,
    )
    .await;
}

#[tokio::test]
async fn u_061_a_child_in_a_session_of_its_own_ends_with_its_command() {
    let lines = &["setsid sh -c 'echo ready; sleep 1000; true' & sleep 1000"];
    matrix(
        "a child in a session of its own",
        Hung::Commands(lines),
        false,
    )
    .await;
}

#[tokio::test]
async fn u_061_a_child_in_a_session_of_its_own_that_does_not_listen_is_killed() {
    let lines = &[
        "setsid sh -c \"trap '' TERM; echo ready; while :; do sleep 0.1; echo on; done\" & sleep 1000",
    ];
    let what = "a child in a session of its own that ignores SIGTERM and goes on to write";
    matrix(what, Hung::Commands(lines), false).await;
}

#[tokio::test]
async fn u_061_a_flood_of_output_is_interrupted() {
    matrix("a flood of output", Hung::Commands(&["yes ready"]), false).await;
}

#[tokio::test]
async fn u_061_parallel_commands_are_all_interrupted() {
    let lines = &[
        "echo ready; sleep 1000",
        "trap '' TERM; echo ready; while :; do sleep 1000; done",
        "echo ready; sleep 1000 & wait",
        "yes ready",
        "setsid sh -c 'echo ready; sleep 1000; true' & sleep 1000",
    ];
    matrix("five commands at once", Hung::Commands(lines), false).await;
}

#[tokio::test]
async fn u_061_a_command_that_waits_for_input_is_interrupted() {
    matrix("a command that waits for input", Hung::Input, false).await;
}

#[tokio::test]
async fn u_061_a_question_that_nobody_answers_is_interrupted() {
    matrix("a question that nobody answers", Hung::Approval, false).await;
}

#[tokio::test]
async fn u_061_what_was_left_in_the_background_before_goes_on() {
    let lines = &["echo ready; sleep 1000"];
    let what = "a command beside another one in the background";
    matrix(what, Hung::Commands(lines), true).await;
}
