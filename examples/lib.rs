//! Runnable demos; see the files beside this one.
//!
//! The documents whose code is compiled and run by the tests hang here, where they see what an embedder sees.

#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
mod embedding {}

#[cfg(doctest)]
#[doc = include_str!("../docs/tools.md")]
mod tools {}

#[cfg(doctest)]
#[doc = include_str!("../docs/providers.md")]
mod providers {}

#[cfg(doctest)]
#[doc = include_str!("../docs/storage.md")]
mod storage {}

#[cfg(test)]
mod tests;
