//! One conversation that is watched: its events, and the view that they make.

use tokio::sync::mpsc;

use super::run::Command;
use crate::client::ClientError;
use crate::client::view::{View, ViewFault};
use crate::event::{Entry, Live, ResumeCursor};
use crate::id::ConversationId;
use crate::rpc::params::conversation::SubscribeResult;

/// How many events may wait to be taken.
pub(super) const EVENTS: usize = 1_024;

/// What happens to a conversation that is watched.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchEvent {
    /// The view stands anew: at the beginning, and after more was missed than is told one by one.
    Snapshot,
    /// Something was written to the log, also what was missed while there was no connection.
    Entry(Box<Entry>),
    /// Something shows that is not yet, or never, in the log.
    Live(Live),
    /// The connection is lost, and the view stands still until it is had again.
    Lost {
        /// Why.
        reason: String,
    },
    /// The connection is back, and everything that was missed has been told: what grows is in the view.
    Back,
    /// The conversation was deleted; nothing comes after this.
    Deleted,
    /// It cannot be watched any more; nothing comes after this.
    Ended {
        /// Why: it does not exist, or there will be no connection.
        error: ClientError,
    },
}

/// What the loop tells a watch.
#[derive(Debug)]
pub(super) enum Told {
    Subscribed(Box<SubscribeResult>),
    Entry(Box<Entry>, ResumeCursor),
    Live(Live),
    Lost(String),
    Deleted,
    Ended(ClientError),
}

/// The loop's end of a watch.
#[derive(Debug)]
pub(super) struct Watching {
    pub(super) conversation: ConversationId,
    pub(super) told: mpsc::Sender<Told>,
    /// The last cursor that was told; `None` before the first.
    pub(super) cursor: Option<ResumeCursor>,
    /// Whether it is told nothing, for want of room.
    pub(super) is_behind: bool,
}

/// A conversation that is watched; dropping it ends that.
#[derive(Debug)]
pub struct Watch {
    conversation: ConversationId,
    told: mpsc::Receiver<Told>,
    commands: mpsc::UnboundedSender<Command>,
    view: Option<View>,
    keep: usize,
    /// Entries that were missed, in order; then [`WatchEvent::Back`].
    missed: std::vec::IntoIter<Entry>,
    is_coming_back: bool,
    is_over: bool,
}

pub(super) fn watch(
    conversation: ConversationId,
    commands: mpsc::UnboundedSender<Command>,
) -> (Watching, Watch) {
    let (sender, told) = mpsc::channel(EVENTS);
    let watching = Watching {
        conversation,
        told: sender,
        cursor: None,
        is_behind: false,
    };
    let watch = Watch {
        conversation,
        told,
        commands,
        view: None,
        keep: crate::client::view::VIEW_ITEMS,
        missed: Vec::new().into_iter(),
        is_coming_back: false,
        is_over: false,
    };
    (watching, watch)
}

impl Watch {
    /// Which conversation.
    #[must_use]
    pub const fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Keeps that many entries of each session from the next snapshot on.
    #[must_use]
    pub const fn keeping(mut self, entries: usize) -> Self {
        self.keep = entries;
        self
    }

    /// What is known of it; `None` before the first event.
    #[must_use]
    pub const fn view(&self) -> Option<&View> {
        self.view.as_ref()
    }

    /// Waits for the next event, which is in the view when this returns; `None` after the last one.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            if let Some(entry) = self.missed.next() {
                return Some(WatchEvent::Entry(Box::new(entry)));
            }
            if std::mem::take(&mut self.is_coming_back) {
                return Some(WatchEvent::Back);
            }
            if self.is_over {
                return None;
            }
            let told = self.told.recv().await?;
            match self.take(told) {
                Ok(Some(event)) => return Some(event),
                Ok(None) => {}
                Err(_) => self.begin_anew(),
            }
        }
    }

    fn take(&mut self, told: Told) -> Result<Option<WatchEvent>, ViewFault> {
        let event = match told {
            Told::Subscribed(result) => return self.subscribed(*result),
            Told::Entry(entry, cursor) => {
                let Some(view) = &mut self.view else {
                    return Ok(None);
                };
                view.entry((*entry).clone(), cursor)?;
                WatchEvent::Entry(entry)
            }
            Told::Live(live) => {
                let Some(view) = &mut self.view else {
                    return Ok(None);
                };
                view.live(live.clone());
                WatchEvent::Live(live)
            }
            Told::Lost(reason) => WatchEvent::Lost { reason },
            Told::Deleted => {
                self.is_over = true;
                WatchEvent::Deleted
            }
            Told::Ended(error) => {
                self.is_over = true;
                WatchEvent::Ended { error }
            }
        };
        Ok(Some(event))
    }

    fn subscribed(&mut self, result: SubscribeResult) -> Result<Option<WatchEvent>, ViewFault> {
        match &mut self.view {
            Some(view) if result.snapshot.is_none() => {
                let missed = result.entries.clone();
                view.resume(result)?;
                self.missed = missed.into_iter();
                self.is_coming_back = true;
                Ok(None)
            }
            view => {
                *view = Some(View::begin(result, self.keep)?);
                Ok(Some(WatchEvent::Snapshot))
            }
        }
    }

    /// What came does not fit what is known: the connection is given up, and all of it is asked for again.
    fn begin_anew(&mut self) {
        self.view = None;
        // With the loop gone nothing more is told, which shows next.
        let _ = self.commands.send(Command::Anew(self.conversation));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.told.close();
        let _ = self.commands.send(Command::Left(self.conversation));
    }
}
