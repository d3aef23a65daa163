//! Ten thousand conversations of five sessions each, with few open files allowed.

use super::Setting;
use super::daemon::Daemon;
use super::data::Data;
use crate::Failure;
use crate::generate::Plan;
use crate::report::{Bar, Report, Row};

const CONVERSATIONS: u64 = 10_000;
const SESSIONS: u64 = 5;
const ITEMS_EACH: u64 = 2;
const ITEM_BYTES: u64 = 600;
/// What a process may open, and what is to be enough.
const LIMIT: u64 = 1_024;
const MOST: f64 = 256.0;
/// How many conversations are opened one after the other.
const VISITS: usize = 400;

pub(super) async fn measure(setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    let conversations = setting.size(CONVERSATIONS, 60);
    let mut plan = Plan::new(
        conversations,
        conversations * SESSIONS * ITEMS_EACH,
        ITEM_BYTES,
    );
    plan.sessions = SESSIONS;
    let data = Data::prepare(setting, "many", plan, true).await?;
    let (mut times, mut files, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setting.rounds {
        let daemon = Daemon::start(setting, &data.path, Some(LIMIT)).await?;
        times.push(daemon.ready);
        daemon.check_list(&data.author).await?;
        files.push(daemon.open_files()? as f64);
        for conversation in data.author.plan.by_use().into_iter().take(VISITS) {
            let id = data.author.plan.conversation_id(conversation);
            if daemon.last_items(id).await? != 1 {
                return Err(format!("conversation {id} has no last item").into());
            }
        }
        later.push(daemon.open_files()? as f64);
        daemon.stop()?;
    }
    let row = Row::new(
        "server ready with 10,000 conversations of 5 sessions",
        "ms",
        times,
    );
    report.row(row.bar(Bar::AtMost(1_000.0)))?;
    report.row(Row::new("the same, open files", "", files).bar(Bar::AtMost(MOST)))?;
    let row = Row::new("the same after a visit to 400 of them", "", later);
    report.row(row.bar(Bar::AtMost(MOST)))
}
