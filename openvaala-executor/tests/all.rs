//! The executor crate against the real machine.

#[cfg(test)]
mod all {
    mod bash;
    mod conformance;
    mod local;
    mod read_file;
    mod support;
}
