//! Integration tests of the runtime: real storage, real executor, scripted models.

mod suite {
    pub(crate) mod conversations;
    pub(crate) mod interrupting;
    pub(crate) mod recovery;
    pub(crate) mod script;
    pub(crate) mod watching;
}
