//! Runnable demos; see the files beside this one.
