//! Follows one turn to its end, over lost connections and past interrupts.

mod asking;
mod own;
mod screen;

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Fuse, FusedFuture};
use openvaala_protocol::approval::ApprovalMode;
use openvaala_protocol::client::{Client, ClientError, Notices};
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{
    Conversation, ConversationStatus, Session, Turn, TurnFailureKind, TurnStatus,
};
use openvaala_protocol::event::{Entry, Live, ResumeCursor};
use openvaala_protocol::id::{ConversationId, ItemId};
use openvaala_protocol::rpc::Notice;
use openvaala_protocol::rpc::method::{
    ApprovalAnswer, ConversationSubscribe, SessionInterrupt, SessionSend,
};
use openvaala_protocol::rpc::params::conversation::SubscribeParams;
use openvaala_protocol::rpc::params::session::{
    InterruptParams, InterruptScope, SendMode, SendParams,
};
use serde_json::value::RawValue;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::asking::Asking;
use self::own::Own;
pub(super) use self::screen::Mode;
use self::screen::{Screen, Shown};
use super::schema;
use crate::dirs::Dirs;
use crate::error::{CliError, FAILED, INTERRUPTED, REFUSED};
use crate::output::{note, out};
use crate::start::connect_running;

/// How long is waited before each try to come back to the server, in milliseconds.
const RECONNECT: [u64; 6] = [50, 200, 500, 1_000, 2_000, 4_000];

/// What following begins with.
pub(super) struct Start {
    pub(super) conversation: Conversation,
    /// Where the conversation is now: what lies before is not shown.
    pub(super) cursor: ResumeCursor,
    pub(super) content: Vec<Content>,
    pub(super) send_mode: SendMode,
    pub(super) output_schema: Option<Box<RawValue>>,
    pub(super) approval_mode: Option<ApprovalMode>,
    /// What is shown of it, and how.
    pub(super) mode: Mode,
}

/// Sends a prompt and shows what comes of it.
pub(super) struct Follower {
    dirs: Dirs,
    conversation: Conversation,
    cursor: ResumeCursor,
    /// The prompt as it is sent; the same when it is sent again, so that it is taken once.
    input: SendParams,
    acknowledged: bool,
    own: Own,
    mode: Mode,
    screen: Screen,
    asking: Asking,
}

/// Why following stops for now.
enum Stop {
    /// There is nothing more to follow.
    Done(ExitCode),
    /// The connection is lost; another may be had.
    Lost(ClientError),
    /// It cannot go on.
    Failed(CliError),
}

impl<E: Into<CliError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Begins to watch a conversation, before anything is sent to it; what follows is told from that point on.
pub(super) async fn watch(
    client: &Client,
    conversation_id: ConversationId,
) -> Result<ResumeCursor, CliError> {
    let subscribe = SubscribeParams {
        conversation_id,
        cursor: None,
    };
    let subscribed = client.call::<ConversationSubscribe>(subscribe).await?;
    Ok(subscribed.cursor)
}

impl Follower {
    pub(super) fn new(dirs: Dirs, start: Start) -> Self {
        let item_id = ItemId::from_uuid(uuid::Uuid::now_v7());
        let input = SendParams {
            conversation_id: start.conversation.id,
            session_id: None,
            item_id,
            content: start.content,
            mode: start.send_mode,
            output_schema: start.output_schema,
            approval_mode: start.approval_mode,
        };
        Self {
            dirs,
            conversation: start.conversation,
            cursor: start.cursor,
            input,
            acknowledged: false,
            own: Own::new(item_id),
            mode: start.mode,
            screen: Screen::new(start.mode),
            asking: Asking::new(start.mode == Mode::Json),
        }
    }

    const fn id(&self) -> ConversationId {
        self.conversation.id
    }

    /// Follows to the end and gives the exit code.
    pub(super) async fn run(
        &mut self,
        client: Client,
        notices: Notices,
    ) -> Result<ExitCode, CliError> {
        let mut interrupts = Interrupts::listen()?;
        let stop = match self.begin() {
            Ok(()) => self.follow_on(client, notices, &mut interrupts).await,
            Err(stop) => stop,
        };
        // The last line is ended also if it was an error that ended it.
        let _ = self.show(self.screen.end());
        match stop {
            Stop::Done(code) => Ok(code),
            Stop::Failed(error) => Err(error),
            Stop::Lost(error) => Err(CliError::from(error).hint(format!(
                "what was written down is safe: `openvaala show {}` shows it",
                self.id()
            ))),
        }
    }

    fn begin(&self) -> Result<(), Stop> {
        if self.mode != Mode::Json && self.conversation.status == ConversationStatus::Running {
            note("note: a turn runs in this conversation already");
        }
        self.show(self.screen.begin(&self.conversation)?)
    }

    /// Follows over as many connections as it takes.
    async fn follow_on(
        &mut self,
        mut client: Client,
        mut notices: Notices,
        interrupts: &mut Interrupts,
    ) -> Stop {
        loop {
            let lost = match self.follow(&client, &mut notices, interrupts).await {
                Stop::Lost(lost) => lost,
                stop => return stop,
            };
            note(&format!("note: {lost}; trying to come back"));
            // Whoever wants to leave while there is no connection has nobody left to interrupt.
            let back = tokio::select! {
                back = self.come_back(lost) => back,
                _ = interrupts.next() => return Stop::Done(ExitCode::from(INTERRUPTED)),
            };
            (client, notices) = match back {
                Ok(connected) => connected,
                Err(stop) => return stop,
            };
        }
    }

    /// Follows until something stops it.
    async fn follow(
        &mut self,
        client: &Client,
        notices: &mut Notices,
        interrupts: &mut Interrupts,
    ) -> Stop {
        let conversation_id = self.id();
        let mut sending = pin!(if self.acknowledged {
            Fuse::terminated()
        } else {
            client.call::<SessionSend>(self.input.clone()).fuse()
        });
        let mut interrupting = pin!(Fuse::terminated());
        let mut answering = pin!(Fuse::terminated());
        let mut asked = false;
        loop {
            if answering.is_terminated()
                && let Some(answer) = self.asking.next_answer(conversation_id)
            {
                let id = answer.approval_id;
                let call = client.call::<ApprovalAnswer>(answer);
                answering.set(async move { (id, call.await) }.fuse());
            }
            // A turn that has not taken the prompt is somebody else's.
            if interrupts.count > 0 && self.own.turn.is_some() && !asked {
                asked = true;
                let params = InterruptParams {
                    conversation_id,
                    session_id: None,
                    scope: InterruptScope::Turn,
                };
                interrupting.set(client.call::<SessionInterrupt>(params).fuse());
            }
            tokio::select! {
                sent = &mut sending => match sent {
                    Ok(_) => self.acknowledged = true,
                    Err(error @ ClientError::Disconnected { .. }) => return Stop::Lost(error),
                    Err(error) => return error.into(),
                },
                notice = notices.recv() => {
                    let Some(notice) = notice else {
                        let reason = client.closed().await;
                        return Stop::Lost(ClientError::Disconnected { sent: true, reason });
                    };
                    if let Err(stop) = self.take(notice) {
                        return stop;
                    }
                }
                line = self.asking.line(), if self.asking.waits() => self.asking.take(line),
                (id, answered) = &mut answering => match answered {
                    Ok(_) => self.asking.done(id),
                    Err(error @ ClientError::Disconnected { .. }) => return Stop::Lost(error),
                    Err(error) => {
                        self.asking.done(id);
                        note(&format!("note: {error}"));
                    }
                },
                count = interrupts.next() => {
                    if count > 1 {
                        return Stop::Done(ExitCode::from(INTERRUPTED));
                    }
                    note(if self.own.turn.is_some() {
                        "interrupting; once more to leave at once"
                    } else {
                        "interrupting as soon as the prompt has its turn; once more to leave at once"
                    });
                }
                interrupted = &mut interrupting => if let Err(error) = interrupted
                    && !matches!(error, ClientError::Disconnected { .. })
                {
                    return error.into();
                },
            }
        }
    }

    fn take(&mut self, notice: Notice) -> Result<(), Stop> {
        match notice {
            Notice::ConversationEntry(params) if params.conversation_id == self.id() => {
                self.cursor = params.cursor;
                self.entry(&params.entry)
            }
            Notice::ConversationLive(params) if params.conversation_id == self.id() => {
                self.live(&params.live)
            }
            Notice::ConversationGap(params) if params.conversation_id == self.id() => {
                let reason = params.reason;
                Err(Stop::Lost(ClientError::Disconnected { sent: true, reason }))
            }
            _ => Ok(()),
        }
    }

    fn live(&mut self, live: &Live) -> Result<(), Stop> {
        if self.own.has_live(live) || self.mode == Mode::Json {
            let shown = self.screen.live(live)?;
            self.show(shown)?;
        }
        match live {
            Live::Degraded { message, .. } => {
                let error = CliError::server("what happens cannot be written down");
                Err(Stop::Failed(error.because_text(message)))
            }
            _ => Ok(()),
        }
    }

    fn entry(&mut self, entry: &Entry) -> Result<(), Stop> {
        // What an agent below begins with was said elsewhere before.
        let root = self.conversation.root_session;
        let is_below = matches!(entry, Entry::Item { session_id, .. } if *session_id != root);
        if !is_below && self.own.has(entry) || self.mode == Mode::Json {
            let shown = self.screen.entry(entry)?;
            self.show(shown)?;
        }
        match entry {
            Entry::Turn { turn, .. } => self.turn(turn),
            Entry::Item {
                session_id, item, ..
            } => {
                // What agents below the root ask is asked for this prompt as well.
                if is_below || self.own.turn.is_some() && item.head().turn == self.own.turn {
                    self.asking.see(*session_id, item);
                }
                Ok(())
            }
            Entry::Session { session, .. } => self.session(session),
            _ => Ok(()),
        }
    }

    /// Ends with the turn that has taken the prompt.
    fn turn(&mut self, turn: &Turn) -> Result<(), Stop> {
        let Some(code) = exit_code(turn).filter(|_| self.own.is_turn(turn)) else {
            return Ok(());
        };
        let shown = self.screen.turn_end(turn)?;
        self.show(shown)?;
        let code = if code == 0 && self.asking.has_refused() {
            note(
                "note: what had to be asked was refused, since nobody is here to answer; see `openvaala exec --help` on --approval",
            );
            REFUSED
        } else {
            code
        };
        if code == 0 && self.input.output_schema.is_some() {
            let answer = schema::check(self.own.answer.as_deref())?;
            self.show(self.screen.answer(answer))?;
        }
        Err(Stop::Done(ExitCode::from(code)))
    }

    /// Does not wait for a turn that nobody will start.
    fn session(&self, session: &Session) -> Result<(), Stop> {
        if !self.own.is_held(session) {
            return Ok(());
        }
        let message = "the turn before was interrupted or failed, so the prompt waits";
        Err(Stop::Failed(CliError::server(message).hint(format!(
            "it is taken up when something more is sent: `openvaala send {} \"go on\"`",
            self.id()
        ))))
    }

    /// Comes back to the server, which may have been stopped and started meanwhile, and takes what was missed.
    async fn come_back(&mut self, lost: ClientError) -> Result<(Client, Notices), Stop> {
        for wait in RECONNECT {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let Ok(Some((client, notices))) = connect_running(&self.dirs).await else {
                continue;
            };
            match self.resume(&client).await {
                Ok(()) => return Ok((client, notices)),
                Err(Stop::Lost(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
        Err(Stop::Lost(lost))
    }

    async fn resume(&mut self, client: &Client) -> Result<(), Stop> {
        let params = SubscribeParams {
            conversation_id: self.id(),
            cursor: Some(self.cursor.clone()),
        };
        let back = match client.call::<ConversationSubscribe>(params).await {
            Ok(back) => back,
            Err(error @ ClientError::Disconnected { .. }) => return Err(Stop::Lost(error)),
            Err(error) => return Err(error.into()),
        };
        self.cursor = back.cursor;
        let sessions = back
            .snapshot
            .map_or_else(Vec::new, |snapshot| snapshot.sessions);
        let (mut entries, mut turns) = (back.entries, Vec::new());
        for session in sessions {
            entries.extend(session.items);
            turns.extend(session.turn);
        }
        // A snapshot tells of the turn after its items.
        for turn in &turns {
            self.own.is_turn(turn);
        }
        for entry in &entries {
            self.entry(entry)?;
        }
        for partial in back.partials {
            self.live(&Live::Started(partial))?;
        }
        turns.iter().try_for_each(|turn| self.turn(turn))
    }

    fn show(&self, shown: Vec<Shown>) -> Result<(), Stop> {
        for piece in shown {
            match piece {
                Shown::Note(text) => note(&text),
                // Whoever read has had enough; the turn goes on without.
                Shown::Out(text) if !out(&text)? => return Err(Stop::Done(ExitCode::SUCCESS)),
                Shown::Out(_) => {}
            }
        }
        Ok(())
    }
}

/// The exit code that a turn ends with; `None` while it runs.
fn exit_code(turn: &Turn) -> Option<u8> {
    match turn.status {
        TurnStatus::Running => None,
        TurnStatus::Completed => Some(0),
        TurnStatus::Interrupted => Some(INTERRUPTED),
        TurnStatus::Failed => match &turn.failure {
            Some(failure) if failure.kind == TurnFailureKind::Refused => Some(REFUSED),
            _ => Some(FAILED),
        },
        // An end that a later version has: it is no success that this one knows of.
        _ => turn.ended_at.map(|_| FAILED),
    }
}

/// Counts how often the user has asked to stop.
struct Interrupts {
    signal: Signal,
    count: u32,
}

impl Interrupts {
    fn listen() -> Result<Self, CliError> {
        let signal = signal(SignalKind::interrupt())?;
        Ok(Self { signal, count: 0 })
    }

    /// Waits for the next one and gives their count. Cancel safe.
    async fn next(&mut self) -> u32 {
        if self.signal.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        self.count += 1;
        self.count
    }
}
