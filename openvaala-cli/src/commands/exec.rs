//! `openvaala exec`: one prompt, streamed to its end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use openvaala_protocol::client::{Client, ClientError, Notices};
use openvaala_protocol::content::{Content, joined_text};
use openvaala_protocol::conversation::{ModelRef, Turn, TurnFailureKind, TurnStatus, WorkLocation};
use openvaala_protocol::event::{Entry, Live, PartialItem, ResumeCursor};
use openvaala_protocol::id::{ConversationId, ExecutorId, ItemId};
use openvaala_protocol::item::{AssistantMessage, Item, ItemKind, ToolCall, ToolResult};
use openvaala_protocol::rpc::Notice;
use openvaala_protocol::rpc::method::{
    ConversationCreate, ConversationSubscribe, SessionInterrupt, SessionSend,
};
use openvaala_protocol::rpc::params::conversation::{CreateParams, SubscribeParams};
use openvaala_protocol::rpc::params::session::{InterruptParams, SendMode, SendParams};
use serde::Serialize;

use super::show::{clean, status};
use crate::args::ExecArgs;
use crate::dirs::Dirs;
use crate::error::{CliError, FAILED, INTERRUPTED, REFUSED};
use crate::output::{note, one_line, out};
use crate::start::{connect, connect_running};

/// How often a lost connection is tried again, and how long after the last try.
const RECONNECT: [u64; 6] = [50, 200, 500, 1_000, 2_000, 4_000];
/// Variables that a server takes a model from when it starts.
const KEYS: [&str; 3] = ["OPENAI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY"];

pub(super) async fn run(dirs: &Dirs, args: ExecArgs) -> Result<ExitCode, CliError> {
    if args.prompt.trim().is_empty() {
        return Err(
            CliError::usage("the prompt is empty").hint("say what to do: openvaala exec \"…\"")
        );
    }
    let root = folder(args.cwd)?;
    let model = args.model.as_deref().map(model).transpose()?;
    let (client, notices) = connect(dirs).await?;
    if !args.json {
        tell_notice(&client, model.as_ref());
    }
    let executors = vec![WorkLocation {
        executor: ExecutorId::local(),
        root,
    }];
    let created = client
        .call::<ConversationCreate>(CreateParams { executors, model })
        .await?;
    let id = created.conversation.id;
    let subscribe = SubscribeParams {
        conversation_id: id,
        cursor: None,
    };
    let subscribed = client.call::<ConversationSubscribe>(subscribe).await?;
    let input = ItemId::from_uuid(uuid::Uuid::now_v7());
    let mut run = Run {
        dirs: dirs.clone(),
        id,
        input,
        prompt: args.prompt,
        cursor: subscribed.cursor,
        screen: Screen::new(args.json),
        acknowledged: false,
    };
    if args.json {
        let conversation = &created.conversation;
        out(&event("conversation", "conversation", conversation)?)?;
    }
    let outcome = run.follow_turn(client, notices).await;
    run.screen.end()?;
    if !args.json {
        note(&format!("openvaala show {id}"));
    }
    outcome
}

fn folder(cwd: Option<PathBuf>) -> Result<String, CliError> {
    let folder = match cwd {
        Some(folder) => folder,
        None => std::env::current_dir()?,
    };
    let shown = folder.display().to_string();
    let canonical = std::fs::canonicalize(&folder)
        .map_err(|error| CliError::usage(format!("{shown} cannot be worked in")).because(error))?;
    canonical.into_os_string().into_string().map_err(|_| {
        CliError::usage(format!(
            "{shown} cannot be worked in: its name is no valid UTF-8"
        ))
    })
}

fn model(text: &str) -> Result<ModelRef, CliError> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(ModelRef {
            provider: provider.to_owned(),
            model: model.to_owned(),
            effort: None,
        }),
        _ => Err(CliError::usage(format!("{text:?} names no model"))
            .hint("write PROVIDER/MODEL; `openvaala provider list` shows the providers")),
    }
}

fn tell_notice(client: &Client, model: Option<&ModelRef>) {
    let Some(notice) = client
        .initialized()
        .notice
        .as_ref()
        .filter(|_| model.is_none())
    else {
        return;
    };
    note(&format!("note: {notice}"));
    let set = |key: &&&str| std::env::var_os(key).is_some_and(|value| !value.is_empty());
    if let Some(key) = KEYS.iter().find(set) {
        note(&format!(
            "hint: {key} is set here, but the running server was started without it: \
             run `openvaala serve stop` and try again"
        ));
    }
}

struct Run {
    dirs: Dirs,
    id: ConversationId,
    input: ItemId,
    prompt: String,
    cursor: ResumeCursor,
    screen: Screen,
    acknowledged: bool,
}

impl Run {
    /// Sends the prompt and follows it to the end of its turn, over lost connections too.
    async fn follow_turn(
        &mut self,
        mut client: Client,
        mut notices: Notices,
    ) -> Result<ExitCode, CliError> {
        let mut interrupts = Interrupts::new()?;
        loop {
            match self.follow(&client, &mut notices, &mut interrupts).await {
                Ok(code) => {
                    client.close().await;
                    return Ok(code);
                }
                Err(Lost::Error(error)) => return Err(error),
                Err(Lost::Connection(error)) => {
                    (client, notices) = self.reconnect(error).await?;
                }
            }
            if let Some(code) = self.resume(&client).await? {
                client.close().await;
                return Ok(code);
            }
        }
    }

    async fn follow(
        &mut self,
        client: &Client,
        notices: &mut Notices,
        interrupts: &mut Interrupts,
    ) -> Result<ExitCode, Lost> {
        let send = async {
            if self.acknowledged {
                return Ok(());
            }
            let params = SendParams {
                conversation_id: self.id,
                session_id: None,
                item_id: self.input,
                content: vec![Content::text(self.prompt.clone())],
                mode: SendMode::Queue,
            };
            client.call::<SessionSend>(params).await.map(drop)
        };
        match send.await {
            Ok(()) => self.acknowledged = true,
            Err(error @ ClientError::Disconnected { .. }) => return Err(Lost::Connection(error)),
            Err(error) => return Err(Lost::Error(error.into())),
        }
        loop {
            tokio::select! {
                notice = notices.recv() => match notice {
                    Some(notice) => if let Some(code) = self.take(notice)? {
                        return Ok(code);
                    },
                    None => {
                        let reason = client.closed().await;
                        return Err(Lost::Connection(ClientError::Disconnected { sent: true, reason }));
                    }
                },
                count = interrupts.next() => {
                    if count > 1 {
                        return Ok(ExitCode::from(INTERRUPTED));
                    }
                    note("interrupting; again to leave at once");
                    let params = InterruptParams { conversation_id: self.id, session_id: None };
                    let _ = client.call::<SessionInterrupt>(params).await;
                }
            }
        }
    }

    fn take(&mut self, notice: Notice) -> Result<Option<ExitCode>, Lost> {
        match notice {
            Notice::ConversationEntry(params) if params.conversation_id == self.id => {
                self.cursor = params.cursor;
                Ok(self.entry(params.entry)?)
            }
            Notice::ConversationLive(params) if params.conversation_id == self.id => {
                self.screen.live(&params.live)?;
                match params.live {
                    Live::Degraded { message, .. } => Err(Lost::Error(
                        CliError::user("what happens cannot be written down").because_text(message),
                    )),
                    _ => Ok(None),
                }
            }
            Notice::ConversationGap(params) if params.conversation_id == self.id => {
                let error = ClientError::Disconnected {
                    sent: true,
                    reason: params.reason,
                };
                Err(Lost::Connection(error))
            }
            _ => Ok(None),
        }
    }

    fn entry(&mut self, entry: Entry) -> Result<Option<ExitCode>, CliError> {
        self.screen.entry(&entry)?;
        match entry {
            Entry::Turn { turn, .. } if turn.inputs.contains(&self.input) => self.turn_end(&turn),
            _ => Ok(None),
        }
    }

    fn turn_end(&mut self, turn: &Turn) -> Result<Option<ExitCode>, CliError> {
        self.screen.turn(turn)?;
        Ok(match turn.status {
            TurnStatus::Completed => Some(ExitCode::SUCCESS),
            TurnStatus::Interrupted => Some(ExitCode::from(INTERRUPTED)),
            TurnStatus::Failed => {
                let refused = turn.failure.as_ref().map(|failure| failure.kind);
                let refused = refused == Some(TurnFailureKind::Refused);
                Some(ExitCode::from(if refused { REFUSED } else { FAILED }))
            }
            _ => None,
        })
    }

    /// Comes back to the server, which may have been stopped and started meanwhile.
    async fn reconnect(&self, lost: ClientError) -> Result<(Client, Notices), CliError> {
        note(&format!("note: {lost}; trying to come back"));
        for wait in RECONNECT {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            if let Ok(Some(connected)) = connect_running(&self.dirs).await {
                return Ok(connected);
            }
        }
        Err(CliError::from(lost).hint(format!(
            "what was written down is safe: `openvaala show {}` shows it",
            self.id
        )))
    }

    /// Takes what was missed while away.
    async fn resume(&mut self, client: &Client) -> Result<Option<ExitCode>, CliError> {
        let cursor = Some(self.cursor.clone());
        let params = SubscribeParams {
            conversation_id: self.id,
            cursor,
        };
        let back = client.call::<ConversationSubscribe>(params).await?;
        self.cursor = back.cursor;
        self.screen.came_back(&back.partials)?;
        let (mut entries, mut turns) = (back.entries, Vec::new());
        if let Some(snapshot) = back.snapshot {
            for session in snapshot.sessions {
                entries.extend(session.items);
                turns.extend(session.turn);
            }
        }
        for entry in entries {
            if let Some(code) = self.entry(entry)? {
                return Ok(Some(code));
            }
        }
        let input = self.input;
        for turn in turns.iter().filter(|turn| turn.inputs.contains(&input)) {
            if let Some(code) = self.turn_end(turn)? {
                return Ok(Some(code));
            }
        }
        Ok(None)
    }
}

enum Lost {
    Connection(ClientError),
    Error(CliError),
}

impl From<CliError> for Lost {
    fn from(error: CliError) -> Self {
        Self::Error(error)
    }
}

/// Counts how often the user has asked to stop.
struct Interrupts {
    signal: tokio::signal::unix::Signal,
    count: u32,
}

impl Interrupts {
    fn new() -> Result<Self, CliError> {
        let kind = tokio::signal::unix::SignalKind::interrupt();
        Ok(Self {
            signal: tokio::signal::unix::signal(kind)?,
            count: 0,
        })
    }

    async fn next(&mut self) -> u32 {
        if self.signal.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        self.count += 1;
        self.count
    }
}

/// A line of `--json`.
///
/// Not made by way of a `Value`, which would change large numbers and the order of keys in what is passed on.
fn event(kind: &str, field: &str, what: &impl Serialize) -> Result<String, serde_json::Error> {
    let what = serde_json::to_string(what)?;
    Ok(format!("{{\"type\":\"{kind}\",\"{field}\":{what}}}\n"))
}

/// What the user sees.
struct Screen {
    json: bool,
    /// The message that is being shown, and how many bytes of it have been.
    message: Option<(ItemId, usize)>,
    /// Whether the last thing on standard output was no line break.
    open_line: bool,
    /// Messages that are completely shown.
    shown: Vec<ItemId>,
}

impl Screen {
    const fn new(json: bool) -> Self {
        Self {
            json,
            message: None,
            open_line: false,
            shown: Vec::new(),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), CliError> {
        let clean = if self.json {
            text.to_owned()
        } else {
            clean(text)
        };
        if !out(&clean)? {
            // Whoever read has had enough.
            std::process::exit(0);
        }
        if let Some(last) = clean.chars().last() {
            self.open_line = last != '\n';
        }
        Ok(())
    }

    fn live(&mut self, live: &Live) -> Result<(), CliError> {
        if self.json {
            return self.write(&event("live", "live", live)?);
        }
        match live {
            Live::Started(partial) if partial.kind == ItemKind::AssistantMessage => {
                self.message = Some((partial.item_id, 0));
                Ok(())
            }
            Live::Delta(delta) => match self.message {
                Some((id, shown)) if id == delta.item_id => {
                    self.message = Some((id, shown + delta.text.len()));
                    self.write(&delta.text)
                }
                _ => Ok(()),
            },
            Live::Dropped { item_id, .. } if self.message.is_some_and(|(id, _)| id == *item_id) => {
                self.message = None;
                self.note("[the answer was broken off]")
            }
            _ => Ok(()),
        }
    }

    fn entry(&mut self, entry: &Entry) -> Result<(), CliError> {
        if self.json {
            return self.write(&event("entry", "entry", entry)?);
        }
        match entry {
            Entry::Item { item, .. } => self.item(item),
            Entry::Damaged { message, .. } => self.note(&format!("[damaged: {message}]")),
            _ => Ok(()),
        }
    }

    fn item(&mut self, item: &Item) -> Result<(), CliError> {
        if let Some(Ok(message)) = item.body::<AssistantMessage>() {
            return self.message(item.head().id, &message.text);
        }
        if let Some(Ok(call)) = item.body::<ToolCall>() {
            return self.note(&format!(
                "→ {} {}",
                call.tool,
                one_line(&call.arguments, 120)
            ));
        }
        if let Some(Ok(result)) = item.body::<ToolResult>() {
            let lines = joined_text(&result.content).lines().count();
            return self.note(&format!("← {}, {lines} lines", status(&result)));
        }
        Ok(())
    }

    /// Shows what of a message has not been shown while it came.
    fn message(&mut self, id: ItemId, text: &str) -> Result<(), CliError> {
        if self.shown.contains(&id) {
            return Ok(());
        }
        let seen = self
            .message
            .filter(|(known, _)| *known == id)
            .map_or(0, |(_, seen)| seen);
        self.message = None;
        self.shown.push(id);
        if let Some(rest) = text.get(seen..) {
            self.write(rest)?;
        }
        self.end()
    }

    /// Goes on with what grew while nobody looked.
    fn came_back(&mut self, partials: &[PartialItem]) -> Result<(), CliError> {
        for partial in partials
            .iter()
            .filter(|partial| partial.kind == ItemKind::AssistantMessage)
        {
            let seen = match self.message {
                Some((id, seen)) if id == partial.item_id => seen,
                _ => 0,
            };
            self.message = Some((partial.item_id, partial.text.len()));
            if let (false, Some(rest)) = (self.json, partial.text.get(seen..)) {
                self.write(rest)?;
            }
        }
        Ok(())
    }

    fn turn(&mut self, turn: &Turn) -> Result<(), CliError> {
        if self.json {
            if turn.ended_at.is_some() {
                self.write(&event("turn_end", "turn", turn)?)?;
            }
            return Ok(());
        }
        match &turn.failure {
            Some(failure) => self.note(&format!("error: {}", clean(&failure.message))),
            None => Ok(()),
        }
    }

    fn note(&mut self, text: &str) -> Result<(), CliError> {
        self.end()?;
        note(text);
        Ok(())
    }

    /// Ends the line that is being written.
    fn end(&mut self) -> Result<(), CliError> {
        if self.open_line && !self.json {
            self.write("\n")?;
        }
        Ok(())
    }
}
