//! One life of a runtime: from its start on what an earlier one left to its end, good or bad.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use openvaala_core::protocol::conversation::{Session, SessionStatus};
use openvaala_core::protocol::id::ConversationId;
use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::sim::SimFs;
use openvaala_core::storage::sqlite::{SqliteDatabase, SqliteOptions};
use openvaala_core::{
    AgentLimits, ConversationHandle, Input, ListConversations, NewConversation, RetryPolicy,
    Runtime, RuntimeBuilder, RuntimeError,
};
use tokio::task::JoinSet;
use tokio::time::{advance, sleep, timeout};

use super::clients::{Watch, client};
use super::model::Model;
use super::tool::Work;
use super::world::Shared;

/// Where the data directory lies on the simulated disk.
pub(crate) const ROOT: &str = "/data";
/// By how much virtual time goes on at once, and what that costs: disks are real threads, which need some.
const PACE: Duration = Duration::from_millis(50);
const PACE_COSTS: Duration = Duration::from_micros(100);
/// The longest life, in virtual time: what takes longer hangs.
const LONGEST: Duration = Duration::from_secs(600);

/// What happens in a life.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) clients: u64,
    pub(crate) end: End,
    /// How many conversations are new.
    pub(crate) new: u64,
}

/// How a life ends.
#[derive(Debug)]
pub(crate) enum End {
    /// When all is done.
    Settled,
    /// In good order, in the middle of things.
    Shutdown,
    /// Without notice.
    Killed,
    /// Without notice, and what was not flushed may be lost, drawn by this seed.
    PowerCut(u64),
}

/// Lives on a disk and gives what the next one finds.
pub(crate) fn live(disk: &SimFs, shared: &Arc<Shared>, plan: Plan) -> SimFs {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    tokio.block_on(async {
        tokio::select! {
            biased;
            found = timeout(LONGEST, run(disk, shared, plan)) => found.expect("a life comes to its end"),
            () = pace() => unreachable!("time never ends"),
        }
    })
}

/// Lets time pass; without this it would jump to the next alarm whenever everybody waits for the disk.
async fn pace() {
    loop {
        let real = tokio::task::spawn_blocking(|| thread::sleep(PACE_COSTS));
        real.await.unwrap();
        advance(PACE).await;
    }
}

async fn run(disk: &SimFs, shared: &Arc<Shared>, plan: Plan) -> SimFs {
    let Ok(runtime) = start(disk, shared).await else {
        assert!(
            !matches!(plan.end, End::Settled),
            "a healthy disk can be opened"
        );
        return end_of(disk, shared, &plan.end);
    };
    if matches!(plan.end, End::Settled) {
        settle(&runtime, shared).await;
        runtime.shutdown().await;
        return disk.kill();
    }
    let mut ids: Vec<ConversationId> = shared.known().conversations.iter().copied().collect();
    for _ in 0..plan.new {
        if let Ok(new) = runtime.create(NewConversation::default()).await {
            ids.push(new.id());
        }
    }
    let mut clients = JoinSet::new();
    for _ in 0..plan.clients {
        clients.spawn(client(runtime.clone(), Arc::clone(shared), ids.clone()));
    }
    let until = Duration::from_millis(shared.below(9_000));
    let all = async { while clients.join_next().await.is_some_and(|end| end.is_ok()) {} };
    if timeout(until, all).await.is_ok() {
        while let Some(end) = clients.join_next().await {
            end.unwrap();
        }
    }
    if matches!(plan.end, End::Shutdown) {
        runtime.shutdown().await;
        sleep(Duration::from_secs(5)).await;
        assert_eq!(
            shared.known().running,
            0,
            "I-7: no tool outlives its runtime"
        );
    }
    end_of(disk, shared, &plan.end)
}

fn end_of(disk: &SimFs, shared: &Arc<Shared>, end: &End) -> SimFs {
    let seed = match end {
        End::PowerCut(seed) => *seed,
        _ if disk.is_cut() => 0,
        _ => return disk.kill(),
    };
    shared.known().power_was_cut = true;
    disk.crash(seed)
}

async fn start(disk: &SimFs, shared: &Arc<Shared>) -> Result<Runtime, RuntimeError> {
    let options = FileOptions::new(ROOT)
        .fs(Arc::new(disk.clone()))
        .flush_threads(1);
    let logs = Arc::new(FileStorage::open(options)?);
    let options = SqliteOptions::in_memory().namespaces(RuntimeBuilder::namespaces());
    let records = Arc::new(SqliteDatabase::open(options)?.records());
    let builder = Runtime::builder()
        .logs(logs)
        .records(records)
        .provider("model", Arc::new(Model(Arc::clone(shared))))
        .tool(Arc::new(Work::new(Arc::clone(shared))))
        .retry(RetryPolicy::default().with_attempts(2))
        .agent_limits(AgentLimits::new(2, 5))
        .unload_after(Some(Duration::from_secs(2)))
        .clock(Arc::clone(shared) as _)
        .ids(Arc::clone(shared) as _);
    builder.build().await
}

/// What waits is done once something is said, and then nothing runs and nothing waits.
async fn settle(runtime: &Runtime, shared: &Arc<Shared>) {
    runtime.caught_up().await;
    let conversations = shared.known().conversations.clone();
    for id in &conversations {
        let conversation = runtime.open(*id).await.unwrap();
        let mut watch = Watch::default();
        watch.subscribe(&conversation).await.unwrap();
        let last = Input::text("last");
        let item = last.item_id;
        conversation.send(last).await.unwrap();
        shared.known().acknowledged.insert((*id, item));
        while !sessions(&conversation).await.iter().all(is_at_rest) {
            sleep(Duration::from_millis(200)).await;
        }
        watch.drain();
        watch.keep(*id, shared);
    }
    let listed = runtime.list(ListConversations::default()).await.unwrap();
    let listed: Vec<ConversationId> = listed.conversations.iter().map(|one| one.id).collect();
    for id in &conversations {
        assert!(listed.contains(id), "I-6: {id} is not among {listed:?}");
    }
}

async fn sessions(conversation: &ConversationHandle) -> Vec<Session> {
    conversation.details().await.unwrap().sessions
}

/// What an interrupted agent is told waits until somebody says more to it.
fn is_at_rest(session: &Session) -> bool {
    let is_held = session.parent.is_some() && session.held;
    session.status == SessionStatus::Idle && (session.pending.is_empty() || is_held)
}
