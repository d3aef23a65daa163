//! Every back end against a model: random calls, with restarts in between, give what a map would give.

mod back_end;
mod logs;
mod records;

use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}
