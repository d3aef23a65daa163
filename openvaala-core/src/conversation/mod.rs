//! A conversation: its work locations, its sessions, and everybody who watches it.

mod approvals;
mod change;
mod command;
mod compaction;
mod cursor;
mod feed;
mod handle;
mod machine;
mod run;
mod steer;
mod terminals;
mod tree;
mod turns;
mod waits;
mod workspaces;

pub use self::approvals::AnswerApproval;
pub use self::change::ConversationChange;
pub use self::compaction::{CompactOptions, Compacted};
pub use self::feed::{FeedEvent, Subscription, Told};
pub use self::handle::{
    BlobPiece, BlobQuery, ConversationHandle, Details, Input, ItemsPage, ItemsQuery, Sent,
};
pub use self::steer::{Pending, PendingUpdate};
pub use self::terminals::TerminalInfo;
pub use self::turns::{TurnsPage, TurnsQuery};

pub(crate) use self::command::Upward;
pub(crate) use self::feed::FeedSender;
pub(crate) use self::run::{ConversationDeps, ConversationStart, start};
pub(crate) use self::tree::level;
pub(crate) use self::workspaces::open as open_workspaces;
