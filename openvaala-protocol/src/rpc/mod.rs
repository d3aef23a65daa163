//! JSON-RPC 2.0 over WebSocket: the envelope, and the one table of methods, notifications and errors.
//!
//! One WebSocket text message holds one JSON-RPC message; batches are refused. `initialize` comes first.

mod envelope;
mod error;
mod methods;
pub mod params;
mod rights;

pub use self::envelope::{Incoming, Notification, Outgoing, Request, RequestId, Response};
pub use self::error::{ERRORS, ErrorCode, ErrorInfo, RpcError};
pub use self::methods::{
    Call, METHODS, Method, MethodInfo, NOTIFICATIONS, Notice, NoticeKind, NotificationInfo,
    Repeatable, method, notification,
};
#[cfg(feature = "schema")]
pub(crate) use self::methods::{method_types, notification_types};
pub use self::rights::{Right, Rights, UnknownRight};

/// The largest message that a server takes from a client, in bytes of UTF-8.
pub const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;

/// The largest message that a client takes from a server, in bytes of UTF-8.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;
