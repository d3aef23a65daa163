//! Kill -9 in the middle of a turn, again and again.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::id::ConversationId;
use openvaala_tests::checker::{When, check};
use openvaala_tests::dice::Dice;
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use serde_json::json;

/// How many kills a data directory sees.
const KILLS: usize = 50;

/// How many data directories there are; with `OPENVAALA_LONG` set twenty.
const CAMPAIGNS: usize = 1;

/// How many times one conversation is killed before the next one begins.
const KILLS_A_CONVERSATION: usize = 5;

/// The steps of a turn that is to be killed.
const STEPS: usize = 4;

/// Works in several steps with tools that leave a mark each time they run; says `pong` when only asked for that.
fn works_in_steps(asked: &Asked) -> Answer {
    let task = asked.last_user();
    let task = task.split_whitespace().last().unwrap_or_default();
    if task.starts_with("ping") {
        return Answer::text("pong");
    }
    let step = asked.step();
    let mut answer = Answer::stream();
    for word in ["Now ", "comes ", "the ", "next ", "step. "] {
        answer = answer.say(word).pause(Duration::from_millis(2));
    }
    if step >= STEPS {
        return answer.say("Done.").end();
    }
    for (tool, rest) in [("a", ""), ("b", "; sleep 0.03"), ("c", "; seq 3000")] {
        let mark = format!("{task}-{step}-{tool}");
        let arguments = json!({ "command": format!("echo {mark} >> marks.txt{rest}") });
        answer = answer.call(&mark, "bash", &arguments.to_string());
    }
    answer.end()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_01_r_32_p_17_p_18_a_killed_server_has_lost_nothing_that_it_acknowledged() {
    let long = env::var_os("OPENVAALA_LONG").is_some();
    let campaigns = if long { CAMPAIGNS * 20 } else { CAMPAIGNS };
    let mut dice = Dice::from_environment("crash");
    for _ in 0..campaigns {
        campaign(&mut dice).await;
    }
}

/// Kills the server of one data directory again and again.
async fn campaign(dice: &mut Dice) {
    let mut model = FakeModel::start(works_in_steps);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut run = Run::new(&sandbox).await;
    let mut interrupted = 0;
    for kill in 0..KILLS {
        if kill % KILLS_A_CONVERSATION == 0 {
            run.conversation = run.watcher.create(&sandbox.project()).await;
        }
        let conversation = run.conversation;
        run.kill_in_mid_turn(&format!("task{kill}"), dice).await;
        check(sandbox.data(), &run.watcher.journal, When::Crashed);
        run.restart(&sandbox).await;
        interrupted += usize::from(run.expect_recovered(conversation).await);
        let turn = run.watcher.ask(conversation, &format!("ping{kill}")).await;
        assert_eq!(turn.status, TurnStatus::Completed, "kill {kill}: {turn:?}");
        assert_eq!(
            run.watcher.last_answer(conversation).await,
            "pong",
            "kill {kill}"
        );
        check(sandbox.data(), &run.watcher.journal, When::Settled);
    }
    let entries = run.watcher.journal.len();
    println!("{KILLS} kills, {interrupted} of them in a turn, {entries} entries");
    // Kills must have met running turns, or the test shows little; how many depends on the machine.
    assert!(
        interrupted * 2 >= KILLS,
        "only {interrupted} of {KILLS} met a turn"
    );
    expect_no_mark_twice(&sandbox.project().join("marks.txt"));
    model.expect_sound_requests();

    run.watcher.client.close().await;
    let stopped = tokio::task::spawn_blocking(|| run.server.terminate()).await;
    let _ = stopped.unwrap().expect_code(0);
    check(sandbox.data(), &run.watcher.journal, When::Settled);
}

struct Run {
    server: Server,
    watcher: Watcher,
    conversation: ConversationId,
}

impl Run {
    async fn new(sandbox: &Sandbox) -> Self {
        let server = sandbox.serve();
        let mut watcher = Watcher::connect(&server.discovery).await;
        let conversation = watcher.create(&sandbox.project()).await;
        Self {
            server,
            watcher,
            conversation,
        }
    }

    /// Sends a task and kills the server at a random point of its turn.
    async fn kill_in_mid_turn(&mut self, task: &str, dice: &mut Dice) {
        let pid = self.server.pid();
        // A turn takes some hundred milliseconds and tells about 100 things; half of the points are given by what
        // has been told, half by the time.
        let (notices, micros) = if dice.below(2) == 0 {
            (dice.below(80), dice.below(3_000))
        } else {
            (0, dice.below(250_000))
        };
        println!("{task}: after {notices} notifications and {micros} µs");
        if self.watcher.send(self.conversation, task).await.is_err() {
            panic!("{task}: the server ended by itself");
        }
        for _ in 0..notices {
            self.watcher.next().await;
        }
        let until = Instant::now() + Duration::from_micros(micros);
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            // The fault itself is what waits here; what is told meanwhile is noted.
            if tokio::time::timeout(left, self.watcher.next())
                .await
                .is_err()
            {
                break;
            }
        }
        kill(pid);
        // All that came through before the end counts as acknowledged.
        while self.watcher.next().await.is_some() {}
    }

    async fn restart(&mut self, sandbox: &Sandbox) {
        let journal = std::mem::take(&mut self.watcher.journal);
        let cursors = std::mem::take(&mut self.watcher.cursors);
        self.server = sandbox.serve();
        self.watcher = Watcher::with_journal(&self.server.discovery, journal).await;
        // Going on from the last cursor must bring what was told again unchanged, and what was missed.
        for (conversation, cursor) in cursors {
            if conversation == self.conversation {
                self.watcher.subscribe(conversation, Some(cursor)).await;
            }
        }
    }

    /// No turn runs; tells whether the last one was interrupted (and has not just ended in time).
    async fn expect_recovered(&self, conversation: ConversationId) -> bool {
        let state = self.watcher.get(conversation).await;
        let state = state.unwrap_or_else(|error| panic!("the conversation is lost: {error}"));
        let turn = state.turns.last().expect("there is a turn");
        match turn.status {
            TurnStatus::Interrupted => true,
            TurnStatus::Completed => false,
            status => panic!("the turn is {status:?}: {turn:?}"),
        }
    }
}

pub(crate) fn kill(pid: u32) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let pid = pid.expect("it is a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("the server lives");
}

/// I-8: a call is started at most once, ever.
pub(crate) fn expect_no_mark_twice(marks: &Path) {
    let text = fs::read_to_string(marks).expect("tools have run");
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for mark in text.lines() {
        *times.entry(mark).or_default() += 1;
    }
    let twice: Vec<_> = times.into_iter().filter(|(_, times)| *times > 1).collect();
    assert!(
        twice.is_empty(),
        "I-8: these calls ran more than once: {twice:?}"
    );
}
