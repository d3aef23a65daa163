//! What a model gets to read: the history of a session as messages, and the system prompt.

mod assemble;
mod builder;
mod history;
mod inherit;
mod instructions;
mod pairing;
mod prompt;
mod skills;
mod summary;
#[cfg(test)]
mod tests;
mod wording;

pub use self::assemble::{AssembleOptions, assemble};
pub(crate) use self::assemble::{last_summary, undone_by};
pub(crate) use self::history::History;
pub(crate) use self::inherit::inherited;
pub(crate) use self::instructions::read_instructions;
pub use self::pairing::{PairingError, check_pairing};
pub use self::prompt::{PromptInput, system_prompt};
pub(crate) use self::skills::list_skills;
pub use self::skills::{Skill, SkillError};
pub(crate) use self::summary::{Replaced, SUMMARY_PROMPT, Survey};
pub(crate) use self::wording::ending;
