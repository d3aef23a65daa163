//! What the system tells the process.

use std::future::pending;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Something that the system tells the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Told {
    /// End: SIGTERM or SIGINT.
    End,
    /// Load the configuration anew: SIGHUP.
    Reload,
}

/// The number of SIGXFSZ, which has no name here.
const FILE_TOO_LARGE: i32 = 25;

/// The signals of the process, if they are listened to.
#[derive(Debug)]
pub(crate) struct Signals(Option<[Signal; 3]>);

impl Signals {
    /// Listens; from now on these signals do not end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ];
        // A write beyond the limit of a file's size is an error of that write, not the end of the process. The handler
        // stays for the life of the process, whoever waits for it.
        drop(signal(SignalKind::from_raw(FILE_TOO_LARGE))?);
        let [terminate, interrupt, hangup] = kinds.map(signal);
        Ok(Self(Some([terminate?, interrupt?, hangup?])))
    }

    /// Leaves the signals as they are.
    pub(crate) const fn ignore() -> Self {
        Self(None)
    }

    /// Waits for the next one; for ever if they are not listened to. Cancel safe.
    pub(crate) async fn next(&mut self) -> Told {
        let Some([terminate, interrupt, hangup]) = &mut self.0 else {
            return pending().await;
        };
        tokio::select! {
            Some(()) = terminate.recv() => Told::End,
            Some(()) = interrupt.recv() => Told::End,
            Some(()) = hangup.recv() => Told::Reload,
            else => pending().await,
        }
    }
}
