//! The library alone, in one process and without a network, beside what disk and kernel give at best.

use std::path::PathBuf;
use std::time::Duration;

use crate::arguments::Arguments;
use crate::work::{self, Bench};
use crate::{Failure, floors};

/// Turns without tools.
const TURNS: usize = 200;
/// Steps of the turn that shows whether steps become slower.
const STEPS: usize = 500;
/// Steps at each end of that turn that are compared.
const END: usize = 50;
/// Sessions at once, and the steps of each.
const CROWD: (usize, usize) = (50, 10);

/// Measures and prints a table; everything is written below a temporary folder.
pub(crate) async fn run(mut arguments: Arguments) -> Result<(), Failure> {
    let folder = arguments
        .option("dir")?
        .unwrap_or_else(|| PathBuf::from("."));
    arguments.finish()?;
    let folder = tempfile::Builder::new()
        .prefix("openvaala-bench-")
        .tempdir_in(folder)?;
    let flush = floors::append_and_flush(folder.path())?;
    let spawn = floors::spawn_bash()?;
    println!("| measure | ms | floor | x floor |");
    println!("| --- | --- | --- | --- |");
    row("floor: append and fdatasync", flush, None);
    row("floor: spawn of `bash -c true`", spawn, None);

    let append = work::append(&folder.path().join("log")).await?;
    row("append of one entry, flushed", append, Some(flush));
    let mut bench = Bench::open(&folder.path().join("data")).await?;
    let turns = bench.new_conversations(TURNS).await?;
    row("turn in a new conversation", median(turns), Some(flush));
    let turns = bench.turns(TURNS).await?;
    row("turn in the same conversation", median(turns), Some(flush));
    let steps = bench.steps(STEPS).await?;
    let (first, last) = (&steps[..END], &steps[steps.len() - END..]);
    let floor = Some(flush + spawn);
    row("tool step 1-50", median(first.to_vec()), floor);
    row("tool step 451-500", median(last.to_vec()), floor);
    let (sessions, each) = CROWD;
    let took = bench.crowd(sessions, each).await?;
    let step = took / u32::try_from(sessions * each)?;
    row("step of 50 sessions at once", step, floor);
    println!();
    println!("{:.0} steps a second", 1.0 / step.as_secs_f64());
    bench.close().await;
    Ok(())
}

fn row(name: &str, took: Duration, floor: Option<Duration>) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (floor, ratio) = match floor {
        Some(floor) => (
            format!("{:.2}", ms(floor)),
            format!("{:.1}", ms(took) / ms(floor)),
        ),
        None => (String::new(), String::new()),
    };
    println!("| {name} | {:.2} | {floor} | {ratio} |", ms(took));
}

/// The middle one; zero of nothing.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
