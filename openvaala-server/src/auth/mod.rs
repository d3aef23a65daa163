//! Who may do what: the tokens that are good now, and what a connection got with one of them.

mod access;
mod bound;
mod file;
mod keeper;
mod keys;
mod throttle;

pub(crate) use self::access::{Access, Grant};
pub(crate) use self::keeper::{Keeper, TokenRequest};
pub(crate) use self::keys::Keys;
pub(crate) use self::throttle::Throttle;
