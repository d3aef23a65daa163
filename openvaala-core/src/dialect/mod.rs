//! Model providers: what a request and an answer look like at each kind of service.
//!
//! | module | speaks with |
//! | --- | --- |
//! | `anthropic_messages` (feature `http`) | Anthropic Messages: Claude, and what is compatible with it |
//! | `openai_chat` (feature `http`) | OpenAI Chat Completions and everything compatible with it |
//! | `openai_responses` (feature `http`) | OpenAI Responses and everything compatible with it |
//! | [`demo`] | nobody: a script that shows what an agent does, without a model |

#[cfg(feature = "http")]
pub mod anthropic_messages;
pub mod demo;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "http")]
pub mod openai_chat;
#[cfg(feature = "http")]
pub mod openai_responses;
pub mod sse;
#[cfg(test)]
#[cfg(feature = "http")]
pub(crate) mod test_answer;
#[cfg(feature = "http")]
mod wire;
