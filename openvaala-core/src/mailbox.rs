//! Bounded mailboxes that cost next to nothing while they are empty.
//!
//! A channel keeps room for 32 messages from its beginning, and every open conversation has several: so what is sent is boxed.

use tokio::sync::mpsc;

/// The way in; clones share it.
#[derive(Debug)]
pub(crate) struct Sender<T>(mpsc::Sender<Box<T>>);

/// A way in that does not keep the mailbox open.
#[derive(Debug)]
pub(crate) struct WeakSender<T>(mpsc::WeakSender<Box<T>>);

/// The way out.
#[derive(Debug)]
pub(crate) struct Receiver<T>(mpsc::Receiver<Box<T>>);

/// Nobody takes messages any more.
#[derive(Debug)]
pub(crate) struct Closed;

/// Why a message was not taken, with the message.
#[derive(Debug)]
pub(crate) enum NotTaken<T> {
    /// As many wait as may.
    Full(T),
    /// Nobody takes messages any more.
    Closed(T),
}

/// A mailbox in which that many messages may wait.
pub(crate) fn mailbox<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(room);
    (Sender(sender), Receiver(receiver))
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Sender<T> {
    /// Puts a message in, as soon as there is room.
    pub(crate) async fn send(&self, message: T) -> Result<(), Closed> {
        self.0.send(Box::new(message)).await.map_err(|_| Closed)
    }

    /// Puts a message in if there is room.
    pub(crate) fn try_send(&self, message: T) -> Result<(), NotTaken<T>> {
        self.0
            .try_send(Box::new(message))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(message) => NotTaken::Full(*message),
                mpsc::error::TrySendError::Closed(message) => NotTaken::Closed(*message),
            })
    }

    /// A way in that does not keep the mailbox open.
    pub(crate) fn downgrade(&self) -> WeakSender<T> {
        WeakSender(self.0.downgrade())
    }

    /// How many ways in there are.
    pub(crate) fn strong_count(&self) -> usize {
        self.0.strong_count()
    }

    /// Whether nobody takes messages any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> WeakSender<T> {
    /// A way in, if there is another one still.
    pub(crate) fn upgrade(&self) -> Option<Sender<T>> {
        self.0.upgrade().map(Sender)
    }
}

impl<T> Receiver<T> {
    /// Waits for the next message; `None` when nobody can send one any more. Cancel safe.
    pub(crate) async fn recv(&mut self) -> Option<T> {
        self.0.recv().await.map(|message| *message)
    }

    /// Takes a message that is there.
    #[cfg(test)]
    pub(crate) fn try_recv(&mut self) -> Option<T> {
        self.0.try_recv().ok().map(|message| *message)
    }
}
