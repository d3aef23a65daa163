//! Measures the library beside what disk and kernel give at best, and writes data directories to measure with.
//!
//! ```text
//! cargo run --release -p openvaala-tests --bin openvaala-bench -- help
//! ```
//!
//! Everything else is what every embedder gets: files that are flushed, the index in SQLite, commands in `bash`. A figure
//! comes only from work whose result was looked at: entries, pages and lists are compared with what was written.

mod arguments;
mod floors;
mod fresh;
mod generate;
mod memory;
mod report;
mod script;
mod storage;
mod turns;
mod work;

use std::error::Error;
use std::process::ExitCode;

use self::arguments::Arguments;

/// What a measure or its set-up can fail with.
type Failure = Box<dyn Error + Send + Sync>;

const HELP: &str = "\
openvaala-bench turns [--dir DIR]
    appends, turns, steps and 50 sessions in one process, with a model that answers at once

openvaala-bench storage [--only NAME,...] [--dir DIR] [--rounds N] [--scale F] [--binary FILE] [--keep]
    the table of the storage: append, open, entries, list, reindex, many, large
    openvaala-bench NAME is short for storage --only NAME

    --dir DIR      a folder on the disk to measure (target/bench)
    --rounds N     how often each is measured (3)
    --scale F      all sizes times F; 1 are the sizes of the bars
    --binary FILE  the openvaala that `list` and `many` start (the one beside this program)
    --keep         leaves the generated data directories there for the next run

openvaala-bench generate DIR --conversations N --items M
        [--sessions S] [--turns T] [--item-bytes B] [--titles none|realistic] [--seed X] [--index]
    a data directory with M items in N conversations of S sessions (1); T turns a session (one per 100 items);
    lines of B bytes on average (1024), some ten and some a hundred times as long; --index makes the index, too
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("openvaala-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(worker_threads = 2)]
async fn run() -> Result<(), Failure> {
    let mut arguments = Arguments::parse(std::env::args().skip(1))?;
    let command = arguments.next();
    match command.as_deref() {
        Some("turns") => turns::run(arguments).await,
        Some("storage") => storage::run(arguments, None).await,
        Some("generate") => generate::run(arguments).await,
        Some(fresh::COMMAND) => storage::probe(arguments).await,
        Some("help") | None => {
            print!("{HELP}");
            Ok(())
        }
        Some(name) if storage::NAMES.contains(&name) => storage::run(arguments, Some(name)).await,
        Some(other) => Err(format!("there is no {other:?}; see openvaala-bench help").into()),
    }
}
