//! The HTTP side: who may connect, and how a connection becomes a WebSocket.

mod accept;
mod admit;
mod counted;
mod first_message;
mod gate;
mod listen;
mod readiness;
mod remote;
pub(crate) mod tls;

pub(crate) use self::accept::Acceptor;
pub(crate) use self::admit::{Admitted, Socket, admit};
pub(crate) use self::counted::Written;
pub(crate) use self::gate::Gate;
pub(crate) use self::listen::{DEFAULT_ADDRESS, Wanted, bind};
pub(crate) use self::readiness::Readiness;
pub(crate) use self::remote::{Doors, Remote, open_remote};
pub use self::tls::TlsError;
