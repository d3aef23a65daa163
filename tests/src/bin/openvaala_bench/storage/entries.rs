//! A history of a million items: how it opens, and pages anywhere in it.

use std::path::Path;
use std::time::Instant;

use openvaala_core::protocol::rpc::params::session::ItemsOrder;

use super::data::Data;
use super::{Setting, ms, page};
use crate::Failure;
use crate::fresh::Figures;
use crate::generate::{self, At, Author, Plan, items_key};
use crate::memory::Growth;
use crate::report::{Bar, Report, median, percentile};

const ITEMS: u64 = 1_000_000;
const ITEM_BYTES: u64 = 1_024;
const TURNS: u64 = 1_000;
const AT: At = At::root(0);
/// Pages from anywhere, at most; of a short history a tenth of its items.
const PAGES: usize = 1_000;

pub(super) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let mut plan = Plan::new(1, setting.size(ITEMS, 1_000), ITEM_BYTES);
    plan.turns = Some(setting.size(TURNS, 10));
    let data = Data::prepare(setting, "entries", plan, true).await?;
    let rounds = setting.probe("entries", &data)?;
    for (name, measure, most) in [
        ("opened", "open a conversation of 1,000,000 items", 300.0),
        ("last", "the same, last page", 50.0),
        ("first", "the same, first page", 50.0),
    ] {
        report.row(rounds.row(name, measure, "ms")?.bar(Bar::AtMost(most)))?;
    }
    let row = rounds.row("growth", "the same, memory growth", "MiB")?;
    report.row(row.bar(Bar::AtMost(64.0)))?;
    report.row(rounds.row("middle", "page of 100 anywhere, median", "ms")?)?;
    let row = rounds.row("p99", "page of 100 anywhere, p99", "ms")?;
    report.row(
        row.bar(Bar::AtMost(5.0))
            .floor(median(&rounds.of("floor")?)),
    )
}

pub(super) async fn probe(data: &Path, author: &Author) -> Result<Figures, Failure> {
    let runtime = generate::runtime(data).index_only().build().await?;
    let id = author.plan.conversation_id(AT.conversation);
    let growth = Growth::begin()?;
    let began = Instant::now();
    let conversation = runtime.open(id).await?;
    let opened = ms(began);
    let page_of = |order, cursor| page::read(&conversation, page::query(order, cursor), author, AT);
    let last = page_of(ItemsOrder::Descending, 0).await?;
    let first = page_of(ItemsOrder::Ascending, 0).await?;
    let growth = growth.highest()?;

    let items = author.plan.items_of(AT);
    let mut dice = author.plan.dice("pages", [0, 0, 0]);
    let pages = PAGES.min(items as usize / 10);
    let mut times = Vec::with_capacity(pages);
    for number in 0..pages {
        let cursor = 1 + dice.below(items);
        let order = if number % 2 == 0 {
            ItemsOrder::Ascending
        } else {
            ItemsOrder::Descending
        };
        times.push(page_of(order, cursor).await?);
    }
    runtime.shutdown().await;
    let key = items_key(&author.plan, AT)?;
    let log = data
        .join(key.path.as_str())
        .join(format!("{}.jsonl", key.stream.as_str()));
    let size = author.plan.item_bytes * page::PAGE;
    let floors = crate::floors::random_reads(&log, size, &mut dice, pages)?;
    let floors: Vec<f64> = floors.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    let figures = [
        ("opened", opened),
        ("last", last),
        ("first", first),
        ("growth", growth),
        ("middle", median(&times)),
        ("p99", percentile(&times, 99)),
        ("floor", percentile(&floors, 99)),
    ];
    Ok(figures
        .map(|(name, figure)| (name.to_owned(), figure))
        .into())
}
