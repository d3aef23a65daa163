//! A client that keeps a journal of all that was acknowledged to it.

use std::collections::BTreeMap;
use std::path::Path;

use openvaala_protocol::client::{Client, ClientError, Notices};
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{Conversation, Turn, TurnStatus, WorkLocation};
use openvaala_protocol::event::{Entry, Live, ResumeCursor};
use openvaala_protocol::id::{ConversationId, ItemId, SessionId};
use openvaala_protocol::item::{AssistantMessage, Item};
use openvaala_protocol::rpc::params::conversation::{
    CreateParams, GetParams, GetResult, ListParams, SubscribeParams, SubscribeResult,
};
use openvaala_protocol::rpc::params::session::{ItemsOrder, ItemsParams, SendMode, SendParams};
use openvaala_protocol::rpc::{Notice, method};
use uuid::Uuid;

use crate::journal::Journal;
use crate::server::Discovery;
use crate::wait;

/// How a turn ended for a client.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// Its end is on disk.
    Written(Box<Turn>),
    /// The client was told that its end cannot be written down, and why.
    NotWritten(String),
    /// The server has gone.
    Gone,
}

impl TurnEnd {
    /// Whether the model answered and all of it is on disk.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Written(turn) if turn.status == TurnStatus::Completed)
    }
}

/// A connected client.
#[derive(Debug)]
pub struct Watcher {
    /// The connection.
    pub client: Client,
    /// What was acknowledged.
    pub journal: Journal,
    /// The last cursor of every conversation that is watched.
    pub cursors: BTreeMap<ConversationId, ResumeCursor>,
    notices: Notices,
}

impl Watcher {
    /// Connects to a server.
    ///
    /// # Panics
    /// If it cannot.
    pub async fn connect(discovery: &Discovery) -> Self {
        Self::with_journal(discovery, Journal::default()).await
    }

    /// Connects and goes on with a journal.
    ///
    /// # Panics
    /// If it cannot.
    pub async fn with_journal(discovery: &Discovery, journal: Journal) -> Self {
        let (client, notices) = Client::connect(discovery.connect_options())
            .await
            .unwrap_or_else(|error| panic!("cannot connect: {error}"));
        Self::of(client, notices, journal)
    }

    /// As [`Self::connect`], for a server that may die at any time.
    ///
    /// # Errors
    /// What kept it from connecting.
    pub async fn try_connect(discovery: &Discovery) -> Result<Self, ClientError> {
        let (client, notices) = Client::connect(discovery.connect_options()).await?;
        Ok(Self::of(client, notices, Journal::default()))
    }

    const fn of(client: Client, notices: Notices, journal: Journal) -> Self {
        Self {
            client,
            journal,
            cursors: BTreeMap::new(),
            notices,
        }
    }

    /// Creates a conversation in a folder and watches it.
    ///
    /// # Panics
    /// If it cannot.
    pub async fn create(&mut self, folder: &Path) -> ConversationId {
        let created = self.try_create(folder).await;
        created.unwrap_or_else(|error| panic!("cannot create a conversation: {error}"))
    }

    /// As [`Self::create`], where it may fail.
    ///
    /// # Errors
    /// What the server said.
    pub async fn try_create(&mut self, folder: &Path) -> Result<ConversationId, ClientError> {
        let root = folder
            .to_str()
            .expect("the folder has a plain name")
            .to_owned();
        let executor = "local".parse().expect("local is an executor id");
        let executors = vec![WorkLocation { executor, root }];
        let created = self
            .client
            .call::<method::ConversationCreate>(CreateParams {
                executors,
                ..CreateParams::default()
            })
            .await?;
        let id = created.conversation.id;
        self.try_subscribe(id, None).await?;
        Ok(id)
    }

    /// Watches a conversation from now on, or from a cursor.
    ///
    /// # Panics
    /// If it cannot.
    pub async fn subscribe(
        &mut self,
        conversation_id: ConversationId,
        cursor: Option<ResumeCursor>,
    ) -> SubscribeResult {
        let result = self.try_subscribe(conversation_id, cursor).await;
        result.unwrap_or_else(|error| panic!("cannot subscribe: {error}"))
    }

    /// As [`Self::subscribe`], where it may fail.
    ///
    /// # Errors
    /// What the server said.
    pub async fn try_subscribe(
        &mut self,
        conversation_id: ConversationId,
        cursor: Option<ResumeCursor>,
    ) -> Result<SubscribeResult, ClientError> {
        let result = self
            .client
            .call::<method::ConversationSubscribe>(SubscribeParams {
                conversation_id,
                cursor,
            })
            .await?;
        for entry in &result.entries {
            self.journal.note(conversation_id, entry);
        }
        let sessions = result
            .snapshot
            .iter()
            .flat_map(|snapshot| &snapshot.sessions);
        for entry in sessions.flat_map(|session| &session.items) {
            self.journal.note(conversation_id, entry);
        }
        self.cursors.insert(conversation_id, result.cursor.clone());
        Ok(result)
    }

    /// Sends a text.
    ///
    /// # Errors
    /// What the server said; the input may be on disk or not then.
    pub async fn send(
        &mut self,
        conversation_id: ConversationId,
        text: &str,
    ) -> Result<ItemId, ClientError> {
        let item_id = ItemId::from_uuid(Uuid::now_v7());
        self.journal.submit(conversation_id, item_id);
        let content = vec![Content::text(text)];
        let (session_id, mode) = (None, SendMode::Queue);
        let params = SendParams {
            conversation_id,
            session_id,
            item_id,
            content,
            mode,
            output_schema: None,
            approval_mode: None,
        };
        self.client.call::<method::SessionSend>(params).await?;
        self.journal.accept(conversation_id, item_id);
        Ok(item_id)
    }

    /// Waits for the next thing that the server tells, and notes it; `None` when the connection has ended.
    ///
    /// # Panics
    /// After the deadline, or when the server says that something was missed.
    pub async fn next(&mut self) -> Option<Notice> {
        let notice = wait::finished("a notification", self.notices.recv()).await?;
        self.note(&notice);
        Some(notice)
    }

    /// Notes all that has come and was not taken.
    pub fn drain(&mut self) {
        while let Some(notice) = self.notices.try_recv() {
            self.note(&notice);
        }
    }

    fn note(&mut self, notice: &Notice) {
        match notice {
            Notice::ConversationEntry(told) => {
                self.journal.note(told.conversation_id, &told.entry);
                self.cursors
                    .insert(told.conversation_id, told.cursor.clone());
            }
            Notice::ConversationGap(gap) => panic!("the server lost something: {gap:?}"),
            _ => {}
        }
    }

    /// Waits for the end of the turn that runs or is about to run.
    ///
    /// # Panics
    /// After the deadline, or when the connection ends first.
    pub async fn turn_end(&mut self, conversation: ConversationId) -> Turn {
        loop {
            let notice = self
                .next()
                .await
                .expect("the connection lives until the turn ends");
            if let Notice::ConversationEntry(told) = notice
                && told.conversation_id == conversation
                && let Entry::Turn { turn, .. } = told.entry
                && turn.ended_at.is_some()
            {
                return turn;
            }
        }
    }

    /// Sends a text and waits for the end of its turn.
    ///
    /// # Panics
    /// If the server does not take it.
    pub async fn ask(&mut self, conversation: ConversationId, text: &str) -> Turn {
        let sent = self.send(conversation, text).await;
        let input = sent.unwrap_or_else(|error| panic!("{text:?} was not taken: {error}"));
        loop {
            let turn = self.turn_end(conversation).await;
            if turn.inputs.contains(&input) {
                return turn;
            }
        }
    }

    /// As [`Self::ask`], for a server that may die and a disk that may fail.
    ///
    /// # Errors
    /// What the server said instead of taking the text.
    pub async fn try_ask(
        &mut self,
        conversation: ConversationId,
        text: &str,
    ) -> Result<TurnEnd, ClientError> {
        let input = self.send(conversation, text).await?;
        while let Some(notice) = self.next().await {
            match notice {
                Notice::ConversationEntry(told) if told.conversation_id == conversation => {
                    if let Entry::Turn { turn, .. } = told.entry
                        && turn.ended_at.is_some()
                        && turn.inputs.contains(&input)
                    {
                        return Ok(TurnEnd::Written(Box::new(turn)));
                    }
                }
                Notice::ConversationLive(told) if told.conversation_id == conversation => {
                    if let Live::Degraded { message, .. } = told.live {
                        return Ok(TurnEnd::NotWritten(message));
                    }
                }
                _ => {}
            }
        }
        Ok(TurnEnd::Gone)
    }

    /// Notes all that comes until the connection ends.
    ///
    /// # Panics
    /// If it does not end in time.
    pub async fn drain_to_the_end(&mut self) {
        while let Some(notice) = wait::finished("the end of it all", self.notices.recv()).await {
            // A server that ends in good order closes its conversations.
            if !matches!(notice, Notice::ConversationGap(_)) {
                self.note(&notice);
            }
        }
    }

    /// All conversations that the server lists, the last used first.
    ///
    /// # Errors
    /// What the server said.
    pub async fn list(&self) -> Result<Vec<Conversation>, ClientError> {
        let mut all = Vec::new();
        let mut cursor = None;
        loop {
            let params = ListParams {
                cursor,
                limit: Some(1_000),
                ..ListParams::default()
            };
            let page = self.client.call::<method::ConversationList>(params).await?;
            all.extend(page.conversations);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// The state of a conversation.
    ///
    /// # Errors
    /// What the server said.
    pub async fn get(&self, conversation_id: ConversationId) -> Result<GetResult, ClientError> {
        self.client
            .call::<method::ConversationGet>(GetParams { conversation_id })
            .await
    }

    /// All items of a conversation's root session, oldest first.
    ///
    /// # Panics
    /// If they cannot be read.
    pub async fn items(&self, conversation_id: ConversationId) -> Vec<Item> {
        self.items_of(conversation_id, None).await
    }

    /// All items of one of its sessions, oldest first; of the root session if none is named.
    ///
    /// # Panics
    /// If they cannot be read.
    pub async fn items_of(
        &self,
        conversation_id: ConversationId,
        session_id: Option<SessionId>,
    ) -> Vec<Item> {
        let mut items = Vec::new();
        let mut cursor = Some(0);
        while let Some(after) = cursor {
            let params = ItemsParams {
                conversation_id,
                session_id,
                order: ItemsOrder::Ascending,
                cursor: after,
                limit: Some(1_000),
            };
            let page = self.client.call::<method::SessionItems>(params).await;
            let page = page.unwrap_or_else(|error| panic!("cannot read items: {error}"));
            items.extend(page.items.into_iter().filter_map(|entry| match entry {
                Entry::Item { item, .. } => Some(item),
                _ => None,
            }));
            cursor = page.next;
        }
        items
    }

    /// The text of a conversation's last assistant message.
    ///
    /// # Panics
    /// If there is none.
    pub async fn last_answer(&self, conversation: ConversationId) -> String {
        let items = self.items(conversation).await;
        let mut messages = items
            .iter()
            .rev()
            .filter_map(Item::body::<AssistantMessage>);
        let last = messages.next().expect("there is an assistant message");
        last.expect("the message can be read").text
    }
}
