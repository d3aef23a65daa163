//! Output of commands, made fit for a model.

mod clip;
mod decode;
mod line;
mod memory;
mod screen;

#[cfg(feature = "tools")]
pub(crate) use self::clip::grouped;
pub use self::clip::{Clip, Clipped, DEFAULT_CAP, clip_text};
pub use self::decode::Decoder;
pub use self::memory::MemoryOutput;
pub use self::screen::Screen;
