//! THE table of methods and notifications.
//!
//! Dispatch ([`Call`]), typed clients ([`method`]), documents and schemas are all made from it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::error::ErrorCode::{
    self, ApprovalAnswered, ApprovalNotFound, ConfigChanged, ConversationBusy, ConversationExists,
    ConversationNotFound, InputNotFound, InputTaken, InvalidRequest, Overloaded, QueueChanged,
    Runtime, SessionBusy, SessionNotFound, TerminalNotFound, TokenExists, TokenNotFound,
    TurnNotFound,
};
use super::error::RpcError;
use super::params::{
    agent, approval, check, compaction, config, conversation, executor, model, pending, provider,
    server, session, terminal, token, trash, turn, update, usage,
};
use super::rights::Right;

/// One method of the protocol, as a type.
pub trait Method {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What it takes.
    type Params: DeserializeOwned + Serialize + Send;
    /// What it gives.
    type Result: DeserializeOwned + Serialize + Send;

    /// Whether carrying it out twice is the same as once, so that a client whose answer was lost may send it again.
    fn may_repeat(params: &Self::Params) -> bool;
}

/// One notification of the protocol, as a type.
pub trait NoticeKind {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What it carries.
    type Params: DeserializeOwned + Serialize + Send;
}

/// One row of the table of methods.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MethodInfo {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// The errors it gives besides those that any method can give.
    pub errors: &'static [ErrorCode],
    /// When a client whose answer was lost may send it again: carrying it out twice is the same as once.
    pub repeatable: Repeatable,
    /// What the token of the connection must allow: all of these.
    pub rights: &'static [Right],
    /// The protocol version that brought it.
    pub since: &'static str,
}

/// When a request may be sent again whose answer was lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Repeatable {
    /// Always.
    Yes,
    /// If the client has given this parameter.
    With(&'static str),
    /// Never: it does something each time.
    No,
}

impl MethodInfo {
    /// The row of a method; `None` if there is no such method.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        METHODS.iter().find(|method| method.name == name)
    }
}

/// One row of the table of notifications.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NotificationInfo {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it tells.
    pub about: &'static str,
    /// The protocol version that brought it.
    pub since: &'static str,
}

macro_rules! methods {
    ($($(#[doc = $about:literal])+ $variant:ident = $name:literal: $($params:ident)::+ => $($result:ident)::+,
        [$($error:ident),*], [$($right:ident),*], $since:literal $(, $once:ident $(unless $field:ident)?)?;)+) => {
        /// The methods as types.
        pub mod method {
            #[allow(unused_imports, reason = "not every row names every module")]
            use super::{agent, approval, check, compaction, config, conversation, executor, repeatable, Repeatable, model, pending, provider, server, session, terminal, token, trash, turn, update, usage};

            $($(#[doc = $about])+
            #[derive(Clone, Copy, Debug)]
            pub struct $variant;

            impl super::Method for $variant {
                const NAME: &'static str = $name;
                type Params = $($params)::+;
                type Result = $($result)::+;

                #[allow(unused_variables, reason = "most rows do not depend on them")]
                fn may_repeat(params: &Self::Params) -> bool {
                    let given: &[bool] = &[$($(params.$field.is_some())?)?];
                    match repeatable(&[$(stringify!($once))?], &[$($(stringify!($field))?)?]) {
                        Repeatable::Yes => true,
                        Repeatable::With(_) => given.contains(&true),
                        Repeatable::No => false,
                    }
                }
            })+
        }

        /// A request whose method and parameters are known to be right.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum Call {
            $($(#[doc = $about])+ $variant($($params)::+),)+
        }

        impl Call {
            /// Finds the method and reads its parameters; none at all are read as `{}`.
            ///
            /// # Errors
            /// `method_not_found`, or `invalid_params` naming the method and the field.
            pub fn parse(method: &str, params: Option<&RawValue>) -> Result<Self, RpcError> {
                let text = params.map_or("{}", RawValue::get);
                match method {
                    $($name => read_params(method, text).map(Self::$variant),)+
                    _ => Err(unknown_method(method)),
                }
            }
        }

        /// Every method of the protocol.
        pub const METHODS: &[MethodInfo] = &[$(MethodInfo {
            name: $name,
            about: concat!($($about, "\n"),+),
            errors: &[$($error),*],
            repeatable: repeatable(&[$(stringify!($once))?], &[$($(stringify!($field))?)?]),
            rights: &[$(Right::$right),*],
            since: $since,
        },)+];

        /// Visits the types of every method in the order of [`METHODS`], parameters before result.
        #[cfg(feature = "schema")]
        pub(crate) fn method_types(visit: &mut impl crate::schema::VisitTypes) {
            $(visit.visit::<$($params)::+>(); visit.visit::<$($result)::+>();)+
        }
    };
}

macro_rules! notifications {
    ($($(#[doc = $about:literal])+ $variant:ident = $name:literal: $($params:ident)::+, $since:literal;)+) => {
        /// The notifications as types.
        pub mod notification {
            #[allow(unused_imports, reason = "not every row names every module")]
            use super::{conversation, server};

            $($(#[doc = $about])+
            #[derive(Clone, Copy, Debug)]
            pub struct $variant;

            impl super::NoticeKind for $variant {
                const NAME: &'static str = $name;
                type Params = $($params)::+;
            })+
        }

        /// A notification whose parameters are known to be right.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum Notice {
            $($(#[doc = $about])+ $variant($($params)::+),)+
        }

        impl Notice {
            /// Reads a notification; `None` for one that this version does not know.
            ///
            /// # Errors
            /// `invalid_params` naming the notification and the field.
            pub fn parse(method: &str, params: Option<&RawValue>) -> Result<Option<Self>, RpcError> {
                let text = params.map_or("{}", RawValue::get);
                match method {
                    $($name => read_params(method, text).map(|params| Some(Self::$variant(params))),)+
                    _ => Ok(None),
                }
            }

            /// Its name on the wire.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }

            /// Its parameters as JSON text.
            ///
            /// # Errors
            /// Fails if they cannot be written as JSON, which those of this crate can.
            pub fn params(&self) -> Result<Box<RawValue>, serde_json::Error> {
                match self {
                    $(Self::$variant(params) => to_raw_value(params),)+
                }
            }
        }

        /// Every notification of the protocol.
        pub const NOTIFICATIONS: &[NotificationInfo] = &[$(NotificationInfo {
            name: $name,
            about: concat!($($about, "\n"),+),
            since: $since,
        },)+];

        /// Visits the parameters of every notification in the order of [`NOTIFICATIONS`].
        #[cfg(feature = "schema")]
        pub(crate) fn notification_types(visit: &mut impl crate::schema::VisitTypes) {
            $(visit.visit::<$($params)::+>();)+
        }
    };
}

/// A row of the table ends with `once` if its method does something each time, `unless` a parameter makes it do so once.
const fn repeatable(once: &[&str], unless: &[&'static str]) -> Repeatable {
    match (once, unless) {
        ([], _) => Repeatable::Yes,
        (_, [field, ..]) => Repeatable::With(field),
        _ => Repeatable::No,
    }
}

methods! {
    /// Opens the connection; must be the first request.
    ///
    /// The protocol version must be the same string on both sides. After a mismatch only `server/shutdown`
    /// is answered: run `openvaala serve stop` and try again.
    Initialize = "initialize": server::InitializeParams => server::InitializeResult, [InvalidRequest], [], "0.1";
    /// Tells how the server is.
    ServerStatus = "server/status": server::StatusParams => server::StatusResult, [], [Watch], "0.1";
    /// Stops the server: running turns are interrupted and written down first.
    ///
    /// With `wait_seconds` they may end by themselves before; all is served meanwhile. A second request counts if it waits less.
    /// Works also on a connection whose protocol version did not match.
    ServerShutdown = "server/shutdown": server::ShutdownParams => server::ShutdownResult, [], [Admin], "0.1";
    /// Loads the configuration anew; if it has an error the old one stays.
    ServerReload = "server/reload": server::ReloadParams => server::ReloadResult, [Runtime], [Admin], "0.1";
    /// Gives the last lines of the server's log, or those after one.
    ///
    /// The last 5,000 lines or MiB since the start are kept; nothing secret is in them.
    ServerLogs = "server/logs": server::LogsParams => server::LogsResult, [Runtime], [Admin], "0.1";
    /// Builds the index anew from the logs; tells `server/progress` while it works.
    ServerReindex = "server/reindex": server::ReindexParams => server::ReindexResult, [Runtime], [Admin], "0.1";
    /// Reads everything and says what is damaged, where and how much; tells `server/progress` while it works.
    ///
    /// With `repair` it cuts torn ends into side files, finishes interrupted deletions and restorations, and makes the
    /// index anew. No byte is thrown away, and a damaged line in the middle is never touched.
    ServerCheck = "server/check": check::CheckParams => check::CheckResult, [ConversationNotFound, Runtime], [Admin], "0.1";
    /// Creates an empty conversation; nothing is written to disk before its first message.
    ConversationCreate = "conversation/create": conversation::CreateParams => conversation::CreateResult, [Runtime], [Send], "0.1", once unless conversation_id;
    /// Lists conversations, the last used first.
    ConversationList = "conversation/list": conversation::ListParams => conversation::ListResult, [Runtime], [Watch], "0.1";
    /// Gives a conversation's state and that of its sessions and turns.
    ConversationGet = "conversation/get": conversation::GetParams => conversation::GetResult, [ConversationNotFound, Runtime], [Watch], "0.1";
    /// Loads a conversation if it is not in memory, and says what of it is damaged.
    ///
    /// Every other method loads what it needs by itself; this one is for who wants to know beforehand. Damaged lines of a session's log
    /// stand at their places in `session/items`; `server/check` reads and judges everything.
    ConversationOpen = "conversation/open": conversation::OpenParams => conversation::OpenResult, [ConversationNotFound, Runtime], [Watch], "0.1";
    /// Takes a conversation out of the memory; nothing of it is lost, and the next request about it loads it again.
    ///
    /// One in which something runs or waits, or that somebody has subscribed to, stays and is answered with `conversation_busy`, unless
    /// that ends within `wait_ms`. With `interrupt` what runs is ended first. One that is not loaded is closed already.
    ConversationClose = "conversation/close": conversation::CloseParams => conversation::CloseResult, [ConversationBusy, ConversationNotFound, Runtime], [Send], "0.1";
    /// Deletes a conversation: what runs in it is interrupted, and all of it goes to the trash.
    ///
    /// Whoever has subscribed to it is told with `conversation/deleted`.
    ConversationDelete = "conversation/delete": conversation::DeleteParams => conversation::DeleteResult, [ConversationNotFound, ConversationExists, Runtime], [Send], "0.1";
    /// Brings a conversation back from the trash, with everything as it was.
    ConversationRestore = "conversation/restore": conversation::RestoreParams => conversation::RestoreResult, [ConversationNotFound, ConversationExists, Runtime], [Send], "0.1";
    /// Lists the deleted conversations that can be restored, the last deleted first.
    TrashList = "trash/list": trash::ListParams => trash::ListResult, [Runtime], [Watch], "0.1";
    /// Removes deleted conversations for ever.
    ///
    /// If one of those that are named is not in the trash, none is removed.
    TrashEmpty = "trash/empty": trash::EmptyParams => trash::EmptyResult, [ConversationNotFound, Runtime], [Admin], "0.1";
    /// Begins to tell this client all that happens in a conversation.
    ///
    /// With a cursor the result has exactly the entries after it, or a snapshot if they are too many; without,
    /// a snapshot. What follows comes as `conversation/entry` and `conversation/live`, with no gap and no double.
    /// A second subscription of the same connection to the same conversation takes the place of the first.
    ConversationSubscribe = "conversation/subscribe": conversation::SubscribeParams => conversation::SubscribeResult, [ConversationNotFound, Runtime], [Watch], "0.1";
    /// Ends a subscription.
    ConversationUnsubscribe = "conversation/unsubscribe": conversation::UnsubscribeParams => conversation::UnsubscribeResult, [], [Watch], "0.1";
    /// Gives input to a session; it is on disk when the result comes.
    ///
    /// The client chooses the id, so a request whose answer was lost can be sent again: it is taken once.
    SessionSend = "session/send": session::SendParams => session::SendResult, [SessionBusy, ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Send], "0.1";
    /// Gives the sessions of a conversation as a tree: who has started whom, and what each does.
    SessionTree = "session/tree": session::TreeParams => session::TreeResult, [ConversationNotFound, Runtime], [Watch], "0.1";
    /// Interrupts the running turn; the result comes when that is written down.
    ///
    /// With the scope `tree` all agents below are interrupted as well, those in the background too.
    SessionInterrupt = "session/interrupt": session::InterruptParams => session::InterruptResult, [ConversationNotFound, SessionNotFound, Runtime], [Send], "0.1";
    /// Reads a page of a session's log, in either direction.
    SessionItems = "session/items": session::ItemsParams => session::ItemsResult, [ConversationNotFound, SessionNotFound, Runtime], [Watch], "0.1";
    /// Reads a piece of a large text or attachment that an item refers to.
    SessionBlob = "session/blob": session::BlobParams => session::BlobResult, [ConversationNotFound, SessionNotFound, Runtime], [Watch], "0.1";
    /// Gives one turn of a conversation.
    TurnGet = "turn/get": turn::GetParams => turn::GetResult, [TurnNotFound, ConversationNotFound, Runtime], [Watch], "0.1";
    /// Reads a page of the turns of a conversation, or of one of its sessions, in either direction.
    TurnList = "turn/list": turn::ListParams => turn::ListResult, [TurnNotFound, ConversationNotFound, SessionNotFound, Runtime], [Watch], "0.1";
    /// Lists the commands in the background of a conversation's sessions.
    ///
    /// They end with their session, and nothing is known of them after a restart of the server.
    TerminalList = "terminal/list": terminal::ListParams => terminal::ListResult, [ConversationNotFound, SessionNotFound, Runtime], [Watch], "0.1";
    /// Reads what such a command has written; what its agent has read of it makes no difference.
    TerminalRead = "terminal/read": terminal::ReadParams => terminal::ReadResult, [TerminalNotFound, ConversationNotFound, SessionNotFound, Runtime], [Watch], "0.1";
    /// Writes to the input of such a command.
    TerminalWrite = "terminal/write": terminal::WriteParams => terminal::WriteResult, [TerminalNotFound, ConversationNotFound, SessionNotFound, Runtime], [Send], "0.1", once unless at;
    /// Ends such a command with all that it has started; one that has ended stays as it is.
    TerminalKill = "terminal/kill": terminal::KillParams => terminal::KillResult, [TerminalNotFound, ConversationNotFound, SessionNotFound, Runtime], [Send], "0.1";
    /// Lists the configured agents.
    AgentList = "agent/list": agent::ListParams => agent::ListResult, [], [Watch], "0.1";
    /// Lists the models that the configuration names, and what is known of each.
    ModelList = "model/list": model::ListParams => model::ListResult, [], [Watch], "0.1";
    /// Makes a model that of new conversations: writes it to the configuration, and puts that in force.
    ModelDefaultSet = "model/default/set": model::DefaultSetParams => model::DefaultSetResult, [Runtime], [Admin], "0.1";
    /// Gives the main file of the configuration, and what is wrong with it.
    ConfigGet = "config/get": config::GetParams => config::GetResult, [Runtime], [Admin], "0.1";
    /// Says what is wrong with the configuration, or would be with another text of its main file; nothing changes.
    ConfigValidate = "config/validate": config::ValidateParams => config::ValidateResult, [Runtime], [Admin], "0.1";
    /// Gives the main file of the configuration another text, and puts that in force.
    ///
    /// All of it is loaded first; if that fails everything is as it was before, and the error says what is wrong with it.
    ConfigSet = "config/set": config::SetParams => config::SetResult, [ConfigChanged, Runtime], [Admin], "0.1";
    /// Lists the executors that tools can run on.
    ExecutorList = "executor/list": executor::ListParams => executor::ListResult, [], [Watch], "0.1";
    /// Opens a folder on an executor, to see whether it can be worked in.
    ExecutorTest = "executor/test": executor::TestParams => executor::TestResult, [], [Admin], "0.1";
    /// Lists the folders in a folder, for somebody who chooses one.
    ExecutorBrowse = "executor/browse": executor::BrowseParams => executor::BrowseResult, [Runtime], [Admin], "0.1";
    /// Completes a path that somebody types; a folder that there is not completes to nothing.
    ExecutorComplete = "executor/complete": executor::CompleteParams => executor::CompleteResult, [Runtime], [Admin], "0.1";
    /// Gives the tokens that a conversation has used, as far as its providers have told them.
    UsageGet = "usage/get": usage::GetParams => usage::GetResult, [ConversationNotFound, Runtime], [Watch], "0.1";
    /// Lists the configured model providers.
    ProviderList = "provider/list": provider::ListParams => provider::ListResult, [], [Watch], "0.1";
    /// Adds a provider: writes its file, and puts the configuration in force.
    ///
    /// All of it is loaded first; if that fails everything is as it was before. To add again what is there as it is changes nothing.
    ProviderAdd = "provider/add": provider::AddParams => provider::AddResult, [Runtime], [Admin], "0.1";
    /// Removes a provider that has a file, and puts the configuration in force.
    ///
    /// One that the configuration still names stays. One that has no file is gone already.
    ProviderRemove = "provider/remove": provider::RemoveParams => provider::RemoveResult, [Runtime], [Admin], "0.1";
    /// Changes a provider that has a file, and puts the configuration in force; what is left out stays as it is.
    ///
    /// All of it is loaded first; if that fails everything is as it was before. The key is never given out.
    ProviderEdit = "provider/edit": provider::EditParams => provider::EditResult, [Runtime], [Admin], "0.1";
    /// Asks a provider for one word, to see whether it answers.
    ProviderTest = "provider/test": provider::TestParams => provider::TestResult, [Runtime], [Admin], "0.1";
    /// Gives the inputs that wait for a session, with all that was said.
    SessionPendingList = "session/pending/list": pending::ListParams => pending::ListResult, [ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Watch], "0.1";
    /// Changes what a waiting input says, or turns it into one that the running turn reads, or back.
    SessionPendingUpdate = "session/pending/update": pending::UpdateParams => pending::ChangeResult, [InputNotFound, InputTaken, ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Send], "0.1";
    /// Takes waiting inputs back; no turn will read them.
    ///
    /// Once nothing waits any more, nothing is held either.
    SessionPendingWithdraw = "session/pending/withdraw": pending::WithdrawParams => pending::ChangeResult, [InputNotFound, InputTaken, ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Send], "0.1";
    /// Puts the waiting inputs into another order; all of them have to be named.
    SessionPendingReorder = "session/pending/reorder": pending::ReorderParams => pending::ChangeResult, [QueueChanged, ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Send], "0.1";
    /// Lets inputs go on that are held since a turn was interrupted or has failed.
    SessionResume = "session/resume": pending::ResumeParams => pending::ResumeResult, [ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Send], "0.1";
    /// Gives a session another model, effort or agent, from its next turn on.
    ///
    /// All of it is checked first: if one thing is unknown nothing changes. The log has it as an item.
    SessionUpdate = "session/update": update::SessionUpdateParams => update::SessionUpdateResult, [ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Send], "0.1";
    /// Renames or archives a conversation, or gives it other executors or folders from the next turn on.
    ///
    /// Folders are opened first: if one cannot be worked in nothing changes. Commands that run in the old ones go on.
    ConversationUpdate = "conversation/update": update::ConversationUpdateParams => update::ConversationUpdateResult, [ConversationNotFound, Overloaded, Runtime], [Send], "0.1";
    /// Begins a new conversation with what was said and done in another one up to an item.
    ///
    /// It works at the same locations with the same model and agent, and says in `forked_from` where it comes from. A cut that would
    /// separate a call from its result is refused with `invalid_params`, which names the nearest items that can be cut behind.
    ConversationFork = "conversation/fork": update::ForkParams => update::ForkResult, [ConversationNotFound, SessionNotFound, Runtime], [Send], "0.1", once unless new_id;
    /// Puts a summary in the place of what was said so far; the old items stay in the log.
    ///
    /// The model of the session writes it. With `preview` nothing changes but the count of tokens. The result comes
    /// when the summary is written down; `session/interrupt` ends the wait.
    SessionCompact = "session/compact": compaction::CompactParams => compaction::CompactResult, [SessionBusy, ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Send], "0.1", once;
    /// Takes the last summary back: requests are made from the items that it stood for again.
    ///
    /// What was said since stays.
    SessionUncompact = "session/uncompact": compaction::UncompactParams => compaction::UncompactResult, [SessionBusy, ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Send], "0.1", once;
    /// Lists the open questions whether a tool call may run, of one conversation or of all that are open.
    ApprovalList = "approval/list": approval::ListParams => approval::ListResult, [ConversationNotFound, Runtime], [Watch], "0.1";
    /// Answers such a question; the first answer counts, and everybody sees it as the approval written again.
    ///
    /// With the scope `always` its rule is written to `approvals.yaml` of the configuration as well. If that fails the call runs all the same, and
    /// the error says so.
    ApprovalAnswer = "approval/answer": approval::AnswerParams => approval::AnswerResult, [ApprovalNotFound, ApprovalAnswered, ConversationNotFound, SessionNotFound, Overloaded, Runtime], [Approve], "0.1";
    /// Makes a token of that name for a client elsewhere; its text comes this once and is kept nowhere.
    TokenCreate = "token/create": token::CreateParams => token::CreateResult, [TokenExists, Runtime], [Admin], "0.1", once;
    /// Lists the named tokens with their rights, never their texts.
    TokenList = "token/list": token::ListParams => token::ListResult, [], [Admin], "0.1";
    /// Makes a named token worthless; connections that were opened with it end within seconds, turns go on.
    TokenRevoke = "token/revoke": token::RevokeParams => token::RevokeResult, [TokenNotFound, Runtime], [Admin], "0.1";
    /// Gives the server a new token of its own, in its discovery file, and makes the old one and all bound ones worthless.
    ///
    /// Connections that were opened with these end within seconds, this one too; turns and named tokens stay.
    TokenRotate = "token/rotate": token::RotateParams => token::RotateResult, [Runtime], [Admin], "0.1", once;
    /// Makes a token that is good for one session of one conversation only, for a time; nothing of it is kept.
    TokenBind = "token/bind": token::BindParams => token::BindResult, [Runtime], [Admin], "0.1";
}

notifications! {
    /// Something was written to a conversation's log.
    ConversationEntry = "conversation/entry": conversation::EntryParams, "0.1";
    /// Something shows that is not yet, or never, in the log.
    ConversationLive = "conversation/live": conversation::LiveParams, "0.1";
    /// This client was too slow and has missed something: subscribe again with the last cursor.
    ConversationGap = "conversation/gap": conversation::GapParams, "0.1";
    /// A conversation was deleted; nothing more comes of it.
    ConversationDeleted = "conversation/deleted": conversation::DeletedParams, "0.1";
    /// How far a long operation of this client has come.
    ServerProgress = "server/progress": server::ProgressParams, "0.1";
    /// The server is about to stop.
    ServerStopping = "server/stopping": server::StoppingParams, "0.1";
}

fn read_params<P: DeserializeOwned>(method: &str, text: &str) -> Result<P, RpcError> {
    // By their places only some would be understood, and only until a field is added.
    if text.trim_start().starts_with('[') {
        let message = format!("params of {method}: a list was given, give an object with names");
        return Err(RpcError::new(ErrorCode::InvalidParams, message));
    }
    serde_json::from_str(text).map_err(|error| {
        RpcError::new(
            ErrorCode::InvalidParams,
            format!("params of {method}: {error}"),
        )
    })
}

fn unknown_method(method: &str) -> RpcError {
    let shown: String = method.chars().take(80).collect();
    let message = format!("there is no method {shown:?}: see docs/protocol.md for all of them");
    RpcError::new(ErrorCode::MethodNotFound, message)
}
