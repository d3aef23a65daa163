//! Fifty thousand conversations: the list of them, and the start of a server on them.

use std::path::Path;
use std::time::{Duration, Instant};

use openvaala_core::protocol::conversation::Conversation;
use openvaala_core::protocol::id::ConversationId;
use openvaala_core::protocol::time::Timestamp;
use openvaala_core::{ConversationFilter, ListConversations, Runtime};

use super::daemon::Daemon;
use super::data::Data;
use super::{Setting, ms};
use crate::fresh::Figures;
use crate::generate::{self, Author, Plan, words};
use crate::report::{Bar, Report, Row, median, percentile};
use crate::{Failure, floors};

const CONVERSATIONS: u64 = 50_000;
const ITEMS_EACH: u64 = 2;
const ITEM_BYTES: u64 = 600;
pub(super) const PAGE: usize = 50;
/// How often each is asked for; with few conversations once for each.
const LISTS: usize = 200;
/// Slow ones are asked for less often, but so often at least.
const FEWEST: usize = 10;
const LONG: Duration = Duration::from_secs(5);
/// What is searched for, and in how many titles it stands.
const SEARCHES: [(&str, Option<&str>); 5] = [
    ("no filter", None),
    ("rare text", Some(words::RARE)),
    ("absent text", Some(words::ABSENT)),
    ("common text", Some(words::COMMON)),
    ("two letters", Some(words::SHORT)),
];

pub(super) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let conversations = setting.size(CONVERSATIONS, 60);
    let plan = Plan::new(conversations, conversations * ITEMS_EACH, ITEM_BYTES);
    let data = Data::prepare(setting, "list", plan, true).await?;
    let rounds = setting.probe("list", &data)?;
    for (name, _) in SEARCHES {
        let measure = format!("list 50 of 50,000, {name}, p99");
        report.row(rounds.row(name, &measure, "ms")?.bar(Bar::AtMost(15.0)))?;
    }
    let mut times = Vec::new();
    for _ in 0..setting.rounds {
        let daemon = Daemon::start(setting, &data.path, None).await?;
        times.push(daemon.ready);
        daemon.check_list(&data.author).await?;
        daemon.stop()?;
    }
    let row = Row::new(
        "server ready with 50,000 conversations, fresh index",
        "ms",
        times,
    );
    report.row(row.bar(Bar::AtMost(50.0)))?;
    let rounds = setting.probe("build", &data)?;
    let row = rounds.row("built", "runtime built, all directories checked", "ms")?;
    report.row(
        row.bar(Bar::AtMost(500.0))
            .floor(median(&rounds.of("floor")?)),
    )
}

pub(super) async fn probe(data: &Path, author: &Author) -> Result<Figures, Failure> {
    let runtime = generate::runtime(data).build().await?;
    // A list waits for the check at the start, which is measured by itself.
    runtime.caught_up().await;
    let mut figures = Figures::new();
    for (name, search) in SEARCHES {
        let wanted = wanted(author, search);
        let lists = LISTS.min(author.plan.conversations as usize);
        let mut times = Vec::with_capacity(lists);
        let all = Instant::now();
        while times.len() < lists && (times.len() < FEWEST || all.elapsed() < LONG) {
            let began = Instant::now();
            let found = list(&runtime, search).await?;
            times.push(ms(began));
            check(&found, &wanted)?;
        }
        figures.insert(name.to_owned(), percentile(&times, 99));
    }
    runtime.shutdown().await;
    Ok(figures)
}

pub(super) async fn list(
    runtime: &Runtime,
    search: Option<&str>,
) -> Result<Vec<Conversation>, Failure> {
    let filter = ConversationFilter {
        search: search.map(str::to_owned),
        ..ConversationFilter::default()
    };
    let options = ListConversations {
        filter,
        limit: PAGE,
        cursor: None,
    };
    Ok(runtime.list(options).await?.conversations)
}

/// Id, title and last use of conversations.
pub(super) type Wanted = Vec<(ConversationId, Option<String>, Timestamp)>;

/// What the first page has to have: those that were last used and whose titles have the text.
pub(super) fn wanted(author: &Author, search: Option<&str>) -> Wanted {
    let passes = |conversation: &u64| {
        search.is_none_or(|search| {
            let title = author.title(*conversation);
            title.is_some_and(|title| title.contains(search))
        })
    };
    let by_use = author.plan.by_use().into_iter();
    by_use
        .filter(passes)
        .take(PAGE)
        .map(|conversation| {
            let id = author.plan.conversation_id(conversation);
            let updated = author.plan.updated_at(conversation);
            (id, author.title(conversation), updated)
        })
        .collect()
}

pub(super) fn check(found: &[Conversation], wanted: &Wanted) -> Result<(), Failure> {
    let found = found
        .iter()
        .map(|found| (found.id, found.title.clone(), found.updated_at));
    let found: Wanted = found.collect();
    if found == *wanted {
        Ok(())
    } else {
        Err(format!("the list has {found:?} and not {wanted:?}").into())
    }
}

/// How long a runtime takes to be there, and the system to list and look at each directory.
pub(super) async fn probe_build(data: &Path, author: &Author) -> Result<Figures, Failure> {
    let floor = floors::list_and_stat(&data.join("conversations"), "metadata.jsonl")?;
    let began = Instant::now();
    let runtime = generate::runtime(data).build().await?;
    // A list waits for the check at the start, which is measured by itself.
    runtime.caught_up().await;
    let built = ms(began);
    check(&list(&runtime, None).await?, &wanted(author, None))?;
    runtime.shutdown().await;
    let floor = floor.as_secs_f64() * 1e3;
    Ok([("built".to_owned(), built), ("floor".to_owned(), floor)].into())
}
