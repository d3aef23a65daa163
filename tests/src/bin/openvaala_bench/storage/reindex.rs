//! The index made anew, and what others wait for meanwhile.

use std::path::Path;
use std::time::Instant;

use openvaala_core::protocol::rpc::params::session::ItemsOrder;
use openvaala_core::{ReindexReport, Runtime};
use tokio::sync::mpsc;

use super::data::Data;
use super::list::Wanted;
use super::{Setting, list, ms, page};
use crate::fresh::Figures;
use crate::generate::{self, At, Author, Plan};
use crate::memory::Growth;
use crate::report::{Bar, Report, median, percentile};
use crate::{Failure, floors};

const CONVERSATIONS: u64 = 10_000;
const ITEMS_EACH: u64 = 100;
/// Two GiB in a million lines.
const ITEM_BYTES: u64 = 2_147;
/// Requests beside reindexing, at least; with few conversations two for each.
const REQUESTS: usize = 300;

pub(super) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let conversations = setting.size(CONVERSATIONS, 20);
    let plan = Plan::new(conversations, conversations * ITEMS_EACH, ITEM_BYTES);
    let data = Data::prepare(setting, "reindex", plan, true).await?;
    let rounds = setting.probe("reindex", &data)?;
    let name = "reindex of 10,000 conversations, 1,000,000 items, 2 GiB";
    let row = rounds.row("seconds", name, "s")?;
    report.row(
        row.bar(Bar::AtMost(45.0))
            .floor(median(&rounds.of("floor")?)),
    )?;
    let row = rounds.row("growth", "the same, memory growth", "MiB")?;
    report.row(row.bar(Bar::AtMost(200.0)))?;
    let rounds = setting.probe("latency", &data)?;
    let row = rounds.row(
        "p99",
        "a list, or a conversation opened and read, beside reindexing, p99",
        "ms",
    )?;
    report.row(row.bar(Bar::AtMost(100.0)))?;
    report.row(rounds.row("longest", "the same, the longest", "ms")?)
}

pub(super) async fn probe(data: &Path, author: &Author) -> Result<Figures, Failure> {
    let floor = floors::read_each(&data.join("conversations"), "metadata.jsonl")?;
    let runtime = generate::runtime(data).index_only().build().await?;
    let growth = Growth::begin()?;
    let began = Instant::now();
    let (tell, mut hear) = mpsc::channel(16);
    let told = async {
        let mut last = None;
        while let Some(progress) = hear.recv().await {
            last = Some(progress);
        }
        last
    };
    let (report, last) = tokio::join!(runtime.reindex(tell), told);
    let seconds = ms(began) / 1e3;
    let growth = growth.highest()?;
    whole(&report?, author)?;
    if last.is_none_or(|last| last.total != author.plan.conversations) {
        return Err(format!("reindexing told {last:?} last").into());
    }
    let found = list::list(&runtime, None).await?;
    list::check(&found, &list::wanted(author, None))?;
    runtime.shutdown().await;
    let figures = [
        ("seconds", seconds),
        ("growth", growth),
        ("floor", floor.as_secs_f64()),
    ];
    Ok(figures
        .map(|(name, figure)| (name.to_owned(), figure))
        .into())
}

fn whole(report: &ReindexReport, author: &Author) -> Result<(), Failure> {
    if report.conversations == author.plan.conversations && report.damaged.is_empty() {
        Ok(())
    } else {
        Err(format!("reindexing did not find all: {report:?}").into())
    }
}

/// Requests while the index is made anew, again and again until there are enough.
pub(super) async fn probe_latency(data: &Path, author: &Author) -> Result<Figures, Failure> {
    let runtime = generate::runtime(data).index_only().build().await?;
    let mut dice = author.plan.dice("visits", [0, 0, 0]);
    let wanted = list::wanted(author, None);
    let mut times = Vec::new();
    let enough = REQUESTS.min(author.plan.conversations as usize * 2);
    while times.len() < enough {
        let reindexing = tokio::spawn(reindex(runtime.clone()));
        while !reindexing.is_finished() {
            let conversation = dice.below(author.plan.conversations);
            times.extend(requests(&runtime, author, &wanted, conversation).await?);
        }
        whole(&reindexing.await??, author)?;
    }
    runtime.shutdown().await;
    let longest = times.iter().copied().fold(0.0, f64::max);
    let p99 = percentile(&times, 99);
    Ok([("p99".to_owned(), p99), ("longest".to_owned(), longest)].into())
}

async fn reindex(runtime: Runtime) -> Result<ReindexReport, Failure> {
    let (tell, _) = mpsc::channel(1);
    Ok(runtime.reindex(tell).await?)
}

async fn requests(
    runtime: &Runtime,
    author: &Author,
    wanted: &Wanted,
    conversation: u64,
) -> Result<[f64; 2], Failure> {
    let began = Instant::now();
    let found = list::list(runtime, None).await?;
    let listed = ms(began);
    list::check(&found, wanted)?;
    let began = Instant::now();
    let handle = runtime
        .open(author.plan.conversation_id(conversation))
        .await?;
    let opened = ms(began);
    let at = At::root(conversation);
    let read = page::read(&handle, page::query(ItemsOrder::Descending, 0), author, at).await?;
    Ok([listed, opened + read])
}
