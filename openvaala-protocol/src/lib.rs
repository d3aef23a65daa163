//! The vocabulary of OpenVaala: what its log, its wire and its screens say.
//!
//! A [`Conversation`](conversation::Conversation) holds [`Session`](conversation::Session)s, a session runs
//! one [`Turn`](conversation::Turn) at a time, and all that happens in it is an [`Item`](item::Item). The
//! [`rpc`] module holds the JSON-RPC envelope and the one table of methods, notifications and errors.
//!
//! ```
//! use openvaala_protocol::item::{Item, ItemKind};
//!
//! let line = r#"{"id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","kind":"user_message","turn":null,"pos":1,
//!     "started_at":"2026-12-02T04:22:41.123Z","ended_at":"2026-12-02T04:22:41.123Z",
//!     "body":{"content":[{"type":"text","text":"hello"}]}}"#;
//! let item: Item = serde_json::from_str(line)?;
//! assert_eq!(item.head().kind, ItemKind::UserMessage);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # Writing a client
//!
//! In Rust: the feature `client`, whose module shows a whole program of ten lines. In another language:
//! `docs/protocol.md` of the repository describes the handshake with real bytes and every message, and the folder
//! `schema` of this crate has JSON Schema and TypeScript of all types. All three are made from the types here.
//!
//! # Features
//!
//! | feature | brings |
//! | --- | --- |
//! | none | the types; serde only, no async runtime |
//! | `handshake` | the challenge and proof exchanged before a WebSocket opens |
//! | `client` | a WebSocket client for `openvaala serve` (implies `handshake`) |
//! | `schema` | JSON Schema, TypeScript and Markdown of all of this |

pub mod approval;
pub mod content;
pub mod conversation;
pub mod event;
pub mod id;
pub mod item;
pub mod questions;
pub mod rpc;
pub mod time;
pub mod usage;

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "handshake")]
pub mod handshake;
#[cfg(feature = "schema")]
pub mod schema;

/// The version of the wire protocol; client and server must have the same string.
pub const PROTOCOL_VERSION: &str = "0.1";

/// The path of the WebSocket endpoint on a runtime server.
pub const ENDPOINT: &str = "/api/v1/openvaala";
