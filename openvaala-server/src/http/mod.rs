//! The HTTP side: who may connect, and how a connection becomes a WebSocket.

mod accept;
mod admit;
mod listen;
mod readiness;

pub(crate) use self::accept::Acceptor;
pub(crate) use self::admit::{Gate, Socket, admit};
pub(crate) use self::listen::{DEFAULT_ADDRESS, Wanted, bind};
pub(crate) use self::readiness::Readiness;
