//! The HTTP side: who may connect, and how a connection becomes a WebSocket.

mod accept;
mod admit;
mod counted;
mod first_message;
mod gate;
mod listen;
mod readiness;

pub(crate) use self::accept::Acceptor;
pub(crate) use self::admit::{Admitted, Socket, admit};
pub(crate) use self::counted::Written;
pub(crate) use self::gate::Gate;
pub(crate) use self::listen::{DEFAULT_ADDRESS, Wanted, bind};
pub(crate) use self::readiness::Readiness;
