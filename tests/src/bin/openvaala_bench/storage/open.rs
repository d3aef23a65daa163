//! A conversation with a log of 700 MB: its last page, and its offset index made anew.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use openvaala_core::protocol::rpc::params::session::ItemsOrder;

use super::data::Data;
use super::{Setting, ms, page};
use crate::Failure;
use crate::fresh::Figures;
use crate::generate::{self, At, Author, Plan, items_key};
use crate::memory::Growth;
use crate::report::{Bar, Report, median};

const ITEMS: u64 = 500_000;
const ITEM_BYTES: u64 = 1_400;
const TURNS: u64 = 500;
const MANY_TURNS: u64 = 5_000;
const AT: At = At::root(0);
/// A page that is found through an index takes less.
const INDEXED: f64 = 5.0;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let mut plan = Plan::new(1, setting.size(ITEMS, 1_000), ITEM_BYTES);
    plan.turns = Some(setting.size(TURNS, 10));
    let data = Data::prepare(setting, "open", plan.clone(), true).await?;
    // The first process warms the cache of files.
    crate::fresh::probe("open", &data.path, &plan)?;
    let rounds = setting.probe("open", &data)?;
    let row = rounds.row("shown", "open a log of 700 MB, last page shown", "ms")?;
    let floor = median(&rounds.of("floor")?);
    report.row(row.bar(Bar::AtMost(30.0)).floor(floor))?;
    let row = rounds.row("growth", "the same, memory growth", "MiB")?;
    report.row(row.bar(Bar::AtMost(8.0)))?;

    let (mut shown, mut rebuilt) = (Vec::new(), Vec::new());
    for _ in 0..setting.rounds {
        drop_side_files(&data)?;
        let figures = crate::fresh::probe("rebuild", &data.path, &plan)?;
        shown.extend(figures.get("shown"));
        rebuilt.extend(figures.get("rebuilt"));
    }
    let row = crate::report::Row::new("without an offset index, last page shown", "ms", shown);
    report.row(row.bar(Bar::AtMost(30.0)).floor(floor))?;
    let row = crate::report::Row::new(
        "the same, until a page in the middle is quick",
        "ms",
        rebuilt,
    );
    report.row(row.bar(Bar::AtMost(1_500.0)))?;
    drop(data);

    plan.turns = Some(setting.size(MANY_TURNS, 20));
    let data = Data::prepare(setting, "open-turns", plan, true).await?;
    let rounds = setting.probe("open", &data)?;
    report.row(rounds.row("shown", "open a log of 700 MB with 5,000 turns", "ms")?)?;
    report.row(rounds.row("growth", "the same, memory growth", "MiB")?)
}

/// Removes all that is not a log: it has to come back by itself.
fn drop_side_files(data: &Data) -> Result<(), Failure> {
    let id = data.author.plan.conversation_id(AT.conversation);
    let folder = data.path.join("conversations").join(id.to_string());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|end| end != "jsonl") {
            if path.is_dir() {
                fs::remove_dir_all(path)?;
            } else {
                fs::remove_file(path)?;
            }
        }
    }
    Ok(())
}

/// Opening and the last page, and what that adds to the memory of a runtime at rest.
pub(super) async fn probe(data: &Path, author: &Author) -> Result<Figures, Failure> {
    let runtime = generate::runtime(data).index_only().build().await?;
    let id = author.plan.conversation_id(AT.conversation);
    let growth = Growth::begin()?;
    let began = Instant::now();
    let conversation = runtime.open(id).await?;
    let opened = ms(began);
    let page = conversation
        .items(page::query(ItemsOrder::Descending, 0))
        .await?;
    let shown = ms(began);
    let growth = growth.highest()?;
    drop(page);
    page::read(
        &conversation,
        page::query(ItemsOrder::Descending, 0),
        author,
        AT,
    )
    .await?;
    runtime.shutdown().await;
    let key = items_key(&author.plan, AT)?;
    let log = data
        .join(key.path.as_str())
        .join(format!("{}.jsonl", key.stream.as_str()));
    let floor = crate::floors::last_lines(&log, page::PAGE as usize)?;
    let floor = floor.as_secs_f64() * 1e3;
    let figures = [
        ("opened", opened),
        ("shown", shown),
        ("growth", growth),
        ("floor", floor),
    ];
    Ok(figures
        .map(|(name, figure)| (name.to_owned(), figure))
        .into())
}

/// Opening, and then pages in the middle until one is found quickly.
pub(super) async fn probe_rebuild(data: &Path, author: &Author) -> Result<Figures, Failure> {
    let runtime = generate::runtime(data).index_only().build().await?;
    let id = author.plan.conversation_id(AT.conversation);
    let began = Instant::now();
    let conversation = runtime.open(id).await?;
    page::read(
        &conversation,
        page::query(ItemsOrder::Descending, 0),
        author,
        AT,
    )
    .await?;
    let shown = ms(began);
    let items = author.plan.items_of(AT);
    let mut dice = author.plan.dice("middle", [0, 0, 0]);
    loop {
        // Elsewhere each time, so that no page is quick for having been read before.
        let cursor = items / 4 + dice.below(items / 2);
        let query = page::query(ItemsOrder::Ascending, cursor);
        if page::read(&conversation, query, author, AT).await? < INDEXED {
            break;
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("pages in the middle are not quick after {PATIENCE:?}").into());
        }
    }
    let rebuilt = ms(began);
    runtime.shutdown().await;
    let figures = [("shown", shown), ("rebuilt", rebuilt)];
    Ok(figures
        .map(|(name, figure)| (name.to_owned(), figure))
        .into())
}
