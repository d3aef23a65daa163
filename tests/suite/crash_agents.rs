//! Kill -9 in the middle of the work of several agents.

mod log;
mod script;

use std::time::{Duration, Instant};

use openvaala_protocol::conversation::{Session, SessionStatus, TurnStatus};
use openvaala_protocol::id::ConversationId;
use openvaala_tests::checker::{When, check};
use openvaala_tests::dice::Dice;
use openvaala_tests::fake_model::FakeModel;
use openvaala_tests::notice::is_long;
use openvaala_tests::sandbox::{Process, Sandbox};
use openvaala_tests::server::Server;
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use self::log::{Counts, Log};
use self::script::plays_all_agents;
use crate::crash::{expect_no_mark_twice, kill};
use crate::support::stop;

/// How many kills there are; with `OPENVAALA_LONG` set two hundred.
const KILLS: usize = 6;

/// How many kills a data directory sees in the long run.
const KILLS_A_DIRECTORY: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_01_a_server_killed_while_agents_work_has_lost_and_doubled_nothing() {
    let mut left = if is_long() { 200 } else { KILLS };
    let mut dice = Dice::from_environment("crash_agents");
    while left > 0 {
        let kills = left.min(KILLS_A_DIRECTORY);
        campaign(kills, &mut dice).await;
        left -= kills;
    }
}

/// Kills the server of one data directory again and again.
async fn campaign(kills: usize, dice: &mut Dice) {
    let mut model = FakeModel::start(plays_all_agents);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut run = Run::new(&sandbox).await;
    let (mut killed, mut task) = (0, 0);
    let mut all = Counts::default();
    while killed < kills {
        let conversation = run.begin(task).await;
        run.kill_at_a_random_point(dice).await;
        killed += 1;
        // A server that is just putting things right is killed as well.
        while killed < kills && dice.below(3) == 0 {
            run.restart(conversation).await;
            run.kill_at_a_random_point(dice).await;
            killed += 1;
        }
        run.restart(conversation).await;
        let counts = run.expect_nothing_lost(conversation, task).await;
        all.agents += counts.agents;
        all.reports += counts.reports;
        all.crashed_turns += counts.crashed_turns;
        task += 1;
    }
    let left = run.left_commands;
    println!("{kills} kills in {task} conversations left {left} commands: {all:?}");
    // Kills must have met running turns, and agents must have reported, or the test shows little.
    assert!(all.crashed_turns * 2 >= kills, "{all:?}");
    assert!(all.agents >= task && all.reports >= task, "{all:?}");
    assert!(left > 0, "a kill has left nothing running");
    expect_no_mark_twice(&sandbox.project().join("marks.txt"));
    model.expect_sound_requests();

    let Run {
        server, watcher, ..
    } = run;
    watcher.client.close().await;
    stop(server).await;
    assert_eq!(commands(&sandbox).len(), 0, "nothing outlives its server");
    check(sandbox.data(), &watcher.journal, When::Settled);
    let _ = sandbox.run(&["check"]).expect_code(0);
}

struct Run<'a> {
    sandbox: &'a Sandbox,
    server: Server,
    watcher: Watcher,
    /// How many commands killed servers have left running.
    left_commands: usize,
}

impl<'a> Run<'a> {
    async fn new(sandbox: &'a Sandbox) -> Self {
        let server = sandbox.serve();
        let watcher = Watcher::connect(&server.discovery).await;
        Self {
            sandbox,
            server,
            watcher,
            left_commands: 0,
        }
    }

    /// Gives a task to a new conversation, and says something more that waits.
    async fn begin(&mut self, task: usize) -> ConversationId {
        let conversation = self.watcher.create(&self.sandbox.project()).await;
        for text in [format!("task{task}"), format!("and {task}")] {
            self.watcher.send(conversation, &text).await.unwrap();
        }
        conversation
    }

    /// Kills the server: half of the points are given by what has been told, half by the time.
    async fn kill_at_a_random_point(&mut self, dice: &mut Dice) {
        let (notices, micros) = if dice.below(2) == 0 {
            (dice.below(300), dice.below(3_000))
        } else {
            (0, dice.below(800_000))
        };
        println!("kill after {notices} notifications and {micros} µs");
        // The time is the fault itself; it also ends the wait for notifications once all is done.
        let longest = Duration::from_secs(if notices > 0 { 2 } else { 0 });
        let until = Instant::now() + longest;
        for _ in 0..notices {
            let left = until.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, self.watcher.next())
                .await
                .is_err()
            {
                break;
            }
        }
        let until = Instant::now() + Duration::from_micros(micros);
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if tokio::time::timeout(left, self.watcher.next())
                .await
                .is_err()
            {
                break;
            }
        }
        kill(self.server.pid());
        // All that came through before the end counts as acknowledged.
        while self.watcher.next().await.is_some() {}
        check(self.sandbox.data(), &self.watcher.journal, When::Crashed);
    }

    /// Starts a server that ends what the killed one has left, and goes on to watch.
    async fn restart(&mut self, conversation: ConversationId) {
        let left = commands(self.sandbox);
        self.left_commands += left.len();
        let journal = std::mem::take(&mut self.watcher.journal);
        let cursor = self.watcher.cursors.remove(&conversation);
        self.server = self.sandbox.serve();
        self.watcher = Watcher::with_journal(&self.server.discovery, journal).await;
        // What was told is told again unchanged, and what was missed follows.
        self.watcher.subscribe(conversation, cursor).await;
        wait::until("the end of the killed server's commands", || {
            let alive = commands(self.sandbox);
            let is_left = |process: &&Process| left.iter().any(|one| one.pid == process.pid);
            match alive.iter().find(is_left) {
                Some(process) => Err(format!("{process:?}")),
                None => Ok(()),
            }
        });
    }

    /// Drives a conversation to rest and looks at all that its log says.
    async fn expect_nothing_lost(&mut self, conversation: ConversationId, task: usize) -> Counts {
        self.rest(conversation).await;
        let turn = self.watcher.ask(conversation, &format!("ping{task}")).await;
        assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
        assert_eq!(self.watcher.last_answer(conversation).await, "pong");
        let log = self.rest(conversation).await;
        self.watcher.drain();
        let known = &self.watcher.journal.conversations[&conversation];
        log.check_turns(&known.inputs);
        log.check_reports();
        check(self.sandbox.data(), &self.watcher.journal, When::Settled);
        log.counts()
    }

    /// Waits until nobody works, nothing waits, and no report is on its way.
    async fn rest(&self, conversation: ConversationId) -> Log {
        let folder = self.sandbox.data().join("conversations");
        let folder = folder.join(conversation.to_string());
        wait::eventually("rest", async || {
            let state = self.watcher.get(conversation).await;
            let state = state.map_err(|error| error.to_string())?;
            let mut sessions = state.sessions.iter();
            if let Some(busy) = sessions.find(|session| !is_at_rest(session)) {
                return Err(format!("{busy:?}"));
            }
            let log = Log::read(&folder);
            match log.kept_reports().first() {
                Some(report) => Err(format!("a report that nobody was told: {report}")),
                None => Ok(log),
            }
        })
        .await
    }
}

fn is_at_rest(session: &Session) -> bool {
    session.status == SessionStatus::Idle && session.pending.is_empty()
}

/// The processes of the sandbox that are no server.
fn commands(sandbox: &Sandbox) -> Vec<Process> {
    let mut processes = sandbox.processes();
    processes.retain(|process| !process.line.contains(" serve"));
    processes
}
