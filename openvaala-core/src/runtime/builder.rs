//! Puts a runtime together.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openvaala_executor::Executor;
use openvaala_executor::tool::Tool;
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::item::Instructions;
use openvaala_protocol::time::Timestamp;
use openvaala_storage::{LogStorage, RecordStorage};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::run::{Command, RuntimeLoop};
use super::{AgentDefinition, CompactionPolicy, ContextWindows, Definitions, Runtime};
use crate::agent::RetryPolicy;
use crate::agents::AgentLimits;
use crate::approval::ApprovalPolicy;
use crate::context::Skill;
use crate::conversation::ConversationDeps;
use crate::dao::files::Files;
use crate::dao::index::{Keeper, Left, Origin};
use crate::dao::staging::Staging;
use crate::dao::{fork, trash};
use crate::environment::{Clock, IdSource, RandomIds, SystemClock};
use crate::error::RuntimeError;
use crate::model::ModelProvider;

/// Requests that may wait for a runtime.
const INBOX: usize = 256;

/// The logs of a runtime, where its index lies, and what is known of its files.
type Storages = (Arc<dyn LogStorage>, Origin, Files);

/// Describes a runtime: its storage, its models, its executors.
///
/// Needs a storage ([`data_dir`](Self::data_dir), [`in_memory`](Self::in_memory), or [`logs`](Self::logs) with
/// [`records`](Self::records)) and at least one provider.
#[derive(Debug, Default)]
#[must_use]
pub struct RuntimeBuilder {
    definitions: Definitions,
    logs: Option<Arc<dyn LogStorage>>,
    records: Option<Arc<dyn RecordStorage>>,
    data_dir: Option<PathBuf>,
    announce: Option<String>,
    in_memory: bool,
    index_only: bool,
    clock: Option<Arc<dyn Clock>>,
    ids: Option<Arc<dyn IdSource>>,
}

impl RuntimeBuilder {
    /// Keeps everything in a directory: logs as files, the index as `metadata.db`. Needs `file` and `sqlite`.
    ///
    /// The directory is created if it is missing and locked for as long as the runtime lives.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// Tells whoever finds the data directory taken where this program can be reached.
    pub fn announce(mut self, address: impl Into<String>) -> Self {
        self.announce = Some(address.into());
        self
    }

    /// Keeps everything in memory: nothing touches the disk. Needs `sqlite`.
    pub const fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Leaves alone what was left unfinished: for looking after the index, not for running conversations.
    pub const fn index_only(mut self) -> Self {
        self.index_only = true;
        self
    }

    /// Keeps the logs in a storage of your own.
    pub fn logs(mut self, logs: Arc<dyn LogStorage>) -> Self {
        self.logs = Some(logs);
        self
    }

    /// Keeps the index in a storage of your own; see [`namespaces`](Self::namespaces) for what it must declare.
    pub fn records(mut self, records: Arc<dyn RecordStorage>) -> Self {
        self.records = Some(records);
        self
    }

    /// The namespaces that a record storage must have declared.
    #[must_use]
    pub fn namespaces() -> Vec<openvaala_storage::Namespace> {
        crate::dao::index::namespaces()
    }

    /// Takes all definitions at once, in place of those given so far.
    pub fn definitions(mut self, definitions: Definitions) -> Self {
        self.definitions = definitions;
        self
    }

    /// Adds a model provider; the first one is also the default, with a model of its own name, until
    /// [`default_model`](Self::default_model) says otherwise.
    pub fn provider(mut self, name: impl Into<String>, provider: Arc<dyn ModelProvider>) -> Self {
        let name = name.into();
        if self.definitions.default_model.provider.is_empty() {
            let model = name.clone();
            self.definitions.default_model = ModelRef {
                provider: name.clone(),
                model,
                effort: None,
            };
        }
        self.definitions.providers.insert(name, provider);
        self
    }

    /// Sets the model that new conversations ask.
    pub fn default_model(mut self, provider: impl Into<String>, model: impl Into<String>) -> Self {
        self.definitions.default_model = ModelRef {
            provider: provider.into(),
            model: model.into(),
            effort: None,
        };
        self
    }

    /// Adds an executor.
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.definitions
            .executors
            .insert(executor.id().clone(), executor);
        self
    }

    /// Adds a tool that every conversation has.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.definitions.tools.push(tool);
        self
    }

    /// Adds an agent that conversations may name.
    pub fn agent(mut self, name: impl Into<String>, agent: AgentDefinition) -> Self {
        self.definitions.agents.insert(name.into(), agent);
        self
    }

    /// Adds text to the system prompt of every conversation.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.definitions.instructions = Some(instructions.into());
        self
    }

    /// Sets how long a deleted conversation stays in the trash; for ever unless set.
    pub const fn keep_trash(mut self, period: Option<Duration>) -> Self {
        self.definitions.keep_trash = period;
        self
    }

    /// Sets how often a failed model request is asked again; 5 attempts unless set.
    pub const fn retry(mut self, policy: RetryPolicy) -> Self {
        self.definitions.retry = policy;
        self
    }

    /// Sets how many agents may work in a conversation besides the main one: 16 on 3 levels unless set.
    pub const fn agent_limits(mut self, limits: AgentLimits) -> Self {
        self.definitions.agent_limits = limits;
        self
    }

    /// Sets when a conversation is summarised by itself: before 85 % of the model's window unless set.
    pub const fn compaction(mut self, policy: CompactionPolicy) -> Self {
        self.definitions.compaction = policy;
        self
    }

    /// Sets how much the models of a provider can read.
    pub fn context_windows(mut self, provider: impl Into<String>, windows: ContextWindows) -> Self {
        let known = &mut self.definitions.context_windows;
        known.insert(provider.into(), windows);
        self
    }

    /// Sets how long a conversation stays open that nobody uses; 10 minutes unless set, `None` for ever.
    ///
    /// It is closed then and its memory is free; opening it again costs little. One with a handle, a subscription, a running
    /// turn, a running command or an input that waits is in use. The time is taken from tokio's clock, to about a tenth.
    pub const fn unload_after(mut self, after: Option<Duration>) -> Self {
        self.definitions.unload_after = after;
        self
    }

    /// Adds instructions to every conversation, before those of its folders; such as a file of the user's.
    ///
    /// They are an item of their own with their size, and are the first to be cut where there is too much.
    pub fn global_instructions(mut self, instructions: Instructions) -> Self {
        self.definitions.global_instructions = Some(instructions);
        self
    }

    /// Tells every conversation of a skill, beside those in the folders `.agents/skills` of its work locations.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.definitions.skills.push(skill);
        self
    }

    /// Sets which tool calls run without a question; all of them unless set.
    ///
    /// What is asked stands in the log as an approval, and waits for
    /// [`ConversationHandle::answer_approval`](crate::ConversationHandle::answer_approval).
    pub fn approval(mut self, policy: ApprovalPolicy) -> Self {
        self.definitions.approval = policy;
        self
    }

    /// Takes the time from somewhere else than the system.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Takes ids from somewhere else than the system's clock and random numbers.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Opens the logs and starts the runtime.
    ///
    /// In the background the index is opened and brought up to date, and turns that were left open are ended; see
    /// [`Runtime::caught_up`]. An index that cannot be used keeps no runtime from starting. Spawns the runtime's loops
    /// onto the tokio runtime that this is called in.
    ///
    /// # Errors
    /// [`RuntimeError::Builder`] if something is missing, or the storage's error: among others that another
    /// process has the data directory.
    pub async fn build(mut self) -> Result<Runtime, RuntimeError> {
        self.check()?;
        let (logs, origin, files) = self.open_storage().await?;
        let (log, staging) = stage(logs)?;
        for id in trash::finish_restorations(&log).await? {
            tracing::info!(conversation = %id, "its restoration from the trash was finished");
        }
        if fork::remove_left(&log).await? {
            tracing::info!("a fork that was not finished was removed");
        }
        let (tell_left, left) = mpsc::unbounded_channel();
        let tell_left = (!self.index_only).then_some(tell_left);
        let (index, writer, keeper) =
            Keeper::start(Arc::clone(&log), staging.clone(), origin, tell_left);
        let (tell, definitions) = watch::channel(Arc::new(self.definitions));
        let deps = ConversationDeps {
            log: Arc::clone(&log),
            staging,
            index: index.clone(),
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock)),
            ids: self.ids.unwrap_or_else(|| Arc::new(RandomIds)),
            definitions,
        };
        let (commands, inbox) = mpsc::channel(INBOX);
        let (tell_caught_up, caught_up) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(writer);
        tasks.spawn(keeper);
        tasks.spawn(finish(commands.downgrade(), left, tell_caught_up));
        tokio::spawn(RuntimeLoop::new(deps, inbox).run(tasks));
        Ok(Runtime {
            commands,
            definitions: tell,
            index,
            log,
            files,
            caught_up,
        })
    }

    fn check(&self) -> Result<(), RuntimeError> {
        let model = &self.definitions.default_model;
        if self.definitions.providers.contains_key(&model.provider) {
            return Ok(());
        }
        let message = if self.definitions.providers.is_empty() {
            "it has no model provider: give one with `provider`".to_owned()
        } else {
            let known: Vec<&str> = self
                .definitions
                .providers
                .keys()
                .map(String::as_str)
                .collect();
            let known = known.join(", ");
            format!(
                "the default model asks provider {:?}; there are: {known}",
                model.provider
            )
        };
        Err(RuntimeError::Builder { message })
    }

    async fn open_storage(&mut self) -> Result<Storages, RuntimeError> {
        match (
            self.logs.take(),
            self.records.take(),
            self.data_dir.take(),
            self.in_memory,
        ) {
            (Some(logs), Some(records), None, false) => {
                Ok((logs, Origin::Given(records), Files::default()))
            }
            (None, None, Some(path), false) => {
                let clock = self.clock.get_or_insert_with(|| Arc::new(SystemClock));
                open_data_dir(path, self.announce.take(), clock.now()).await
            }
            (None, None, None, true) => open_in_memory(),
            (None, None, None, false) => Err(RuntimeError::Builder {
                message: "it has no storage: give `data_dir`, `in_memory`, or `logs` and `records`"
                    .to_owned(),
            }),
            _ => Err(RuntimeError::Builder {
                message: "it has more than one storage, or only one of `logs` and `records`"
                    .to_owned(),
            }),
        }
    }
}

/// Opens what was left at work: its turns are ended, its waiting inputs run. Keeps no runtime alive.
async fn finish(
    commands: mpsc::WeakSender<Command>,
    mut left: mpsc::UnboundedReceiver<Left>,
    caught_up: watch::Sender<bool>,
) {
    while let Some(left) = left.recv().await {
        let id = match left {
            Left::Conversation(id) => id,
            Left::All => {
                caught_up.send_replace(true);
                continue;
            }
        };
        let (reply, opened) = oneshot::channel();
        let Some(commands) = commands.upgrade() else {
            return;
        };
        // Whoever stops the runtime meanwhile leaves it to the next start.
        let _ = commands.send(Command::Open { id, reply }).await;
        drop(commands);
        if let Ok(Err(error)) = opened.await {
            tracing::warn!(conversation = %id, %error, "it was left at work and cannot be opened");
        }
    }
}

#[cfg(all(feature = "file", feature = "sqlite"))]
async fn open_data_dir(
    path: PathBuf,
    announce: Option<String>,
    now: Timestamp,
) -> Result<Storages, RuntimeError> {
    use crate::dao::index::DataDirIndex;
    use openvaala_storage::file::{FileOptions, FileStorage};

    let opened = tokio::task::spawn_blocking(move || {
        let logs = FileStorage::open(FileOptions::new(&path).started_at(now.as_millis()))?;
        if let Some(address) = announce {
            logs.announce(&address)?;
        }
        Ok::<_, openvaala_storage::Error>((logs, DataDirIndex::new(&path)))
    });
    let (logs, index) = opened.await.map_err(|_| RuntimeError::Stopped)??;
    let logs = Arc::new(logs);
    let files = Files::new(Arc::clone(&logs));
    Ok((logs, Origin::Place(Arc::new(index)), files))
}

#[cfg(not(all(feature = "file", feature = "sqlite")))]
#[allow(clippy::unused_async, reason = "the twin with the features waits")]
async fn open_data_dir(
    _: PathBuf,
    _: Option<String>,
    _: Timestamp,
) -> Result<Storages, RuntimeError> {
    let message = "`data_dir` needs the features `file` and `sqlite`".to_owned();
    Err(RuntimeError::Builder { message })
}

#[cfg(feature = "sqlite")]
fn open_in_memory() -> Result<Storages, RuntimeError> {
    use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions};

    let options = SqliteOptions::in_memory().namespaces(crate::dao::index::namespaces());
    let database = SqliteDatabase::open(options)?;
    let records = Arc::new(database.records());
    Ok((
        Arc::new(database.log()),
        Origin::Given(records),
        Files::default(),
    ))
}

#[cfg(not(feature = "sqlite"))]
fn open_in_memory() -> Result<Storages, RuntimeError> {
    let message = "`in_memory` needs the feature `sqlite`".to_owned();
    Err(RuntimeError::Builder { message })
}

/// Puts memory in front of the logs for conversations without a message.
#[cfg(feature = "sqlite")]
fn stage(logs: Arc<dyn LogStorage>) -> Result<(Arc<dyn LogStorage>, Staging), RuntimeError> {
    use openvaala_storage::StagedLogStorage;
    use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions};

    let memory = SqliteDatabase::open(SqliteOptions::in_memory())?.log();
    let staged = Arc::new(StagedLogStorage::new(logs, memory));
    Ok((
        Arc::clone(&staged) as Arc<dyn LogStorage>,
        Staging::new(staged),
    ))
}

#[cfg(not(feature = "sqlite"))]
#[allow(
    clippy::unnecessary_wraps,
    reason = "the twin with the feature can fail"
)]
fn stage(logs: Arc<dyn LogStorage>) -> Result<(Arc<dyn LogStorage>, Staging), RuntimeError> {
    Ok((logs, Staging::default()))
}
