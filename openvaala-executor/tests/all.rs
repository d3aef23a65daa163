//! The executor crate against the real machine.

#[cfg(test)]
mod all {
    mod apply_patch;
    mod bash;
    mod commands;
    mod conformance;
    mod flood;
    mod leftovers;
    mod local;
    mod read_file;
    mod session;
    mod storm;
    mod support;
}
