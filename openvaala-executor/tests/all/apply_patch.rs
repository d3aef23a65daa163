//! The tool `apply_patch`.

mod cases;
mod properties;
mod tool;
