//! What other programs do to the files of a server.
