//! JSON Schema, TypeScript and the protocol's document, all made from the table of methods.
//!
//! The results lie in the repository as `openvaala-protocol/schema/openvaala.schema.json`,
//! `openvaala-protocol/schema/openvaala.ts` and `docs/protocol.md`; a test keeps them true.

mod json;
mod markdown;
mod names;
mod typescript;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use ts_rs::TS;

pub use self::json::json_schema;
pub use self::markdown::markdown;
pub use self::typescript::typescript;

/// Is shown each type of a table, one after the other.
pub(crate) trait VisitTypes {
    /// Takes the next type.
    fn visit<T: JsonSchema + TS + 'static>(&mut self);
}
