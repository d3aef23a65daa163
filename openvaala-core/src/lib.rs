//! An agent runtime as a library.
//!
//! A [`Runtime`] owns [conversations](ConversationHandle). Each conversation and each session in it runs a loop
//! of its own; all that happens is appended to a log before anybody is told.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use openvaala_core::dialect::demo::DemoProvider;
//! use openvaala_core::executor::local::{LocalExecutor, LocalOptions};
//! use openvaala_core::{FeedEvent, Input, NewConversation, Runtime};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::builder()
//!     .data_dir("conversations-of-my-program")
//!     .provider("demo", Arc::new(DemoProvider::new()))
//!     .executor(Arc::new(LocalExecutor::new(LocalOptions::default())))
//!     .build()
//!     .await?;
//! let conversation = runtime.create(NewConversation::in_folder("/tmp")).await?;
//! let mut events = conversation.subscribe(None).await?;
//! conversation.send(Input::text("look around")).await?;
//! while let Some(event) = events.next().await {
//!     if let FeedEvent::Entry { entry, .. } = event {
//!         println!("{entry:?}");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | feature (all on by default) | brings |
//! | --- | --- |
//! | `file` | conversations as JSON Lines files |
//! | `sqlite` | the index, and conversations that leave nothing on disk until their first message |
//! | `http` | model providers over HTTP |
//! | `local` | the machine this process runs on as an executor |
//! | `tools` | the built-in tools `read_file`, `apply_patch`, `bash` and those that look after its commands |
//!
//! Nothing here prints, reads the environment or the home directory, or keeps global state: paths, clock, ids,
//! HTTP client and environment are values that the caller gives.

pub use openvaala_executor as executor;
pub use openvaala_protocol as protocol;
pub use openvaala_storage as storage;

mod agent;
mod agents;
mod approval;
pub mod context;
mod conversation;
mod dao;
pub mod dialect;
pub mod environment;
mod error;
mod journal;
mod mailbox;
pub mod model;
mod runtime;
mod session;

pub use self::agent::RetryPolicy;
pub use self::agents::AgentLimits;
pub use self::approval::ApprovalPolicy;
pub use self::conversation::{
    AnswerApproval, BlobPiece, BlobQuery, CompactOptions, Compacted, ConversationChange,
    ConversationHandle, Details, FeedEvent, Input, ItemsPage, ItemsQuery, Pending, PendingUpdate,
    Sent, Subscription, TerminalInfo, Told, TurnsPage, TurnsQuery,
};
pub use self::dao::list::{ConversationFilter, ConversationPage, ListConversations};
pub use self::dao::trash::TrashedConversation;
pub use self::error::RuntimeError;
pub use self::model::ModelProvider;
#[cfg(feature = "file")]
pub use self::runtime::check_data_dir;
pub use self::runtime::{
    AgentDefinition, CheckOptions, CloseConversation, CompactionPolicy, ContextWindows,
    Definitions, DeletedConversation, EmptyTrash, ForkConversation, NewConversation, Progress,
    ReindexReport, Runtime, RuntimeBuilder, RuntimeStatus,
};
pub use self::session::SessionChange;
