//! The table of the storage: appends, long histories, many conversations.

mod append;
mod daemon;
mod data;
mod entries;
mod large;
mod list;
mod many;
mod open;
mod page;
mod reindex;

use std::path::{Path, PathBuf};

use self::data::Data;
use crate::Failure;
use crate::arguments::Arguments;
use crate::fresh::{self, Figures};
use crate::generate::{Author, Plan};
use crate::report::{Report, Row};

/// The measures, in the order of the table.
pub(crate) const NAMES: [&str; 7] = [
    "append", "open", "entries", "list", "reindex", "many", "large",
];

/// Those that start a server.
const SERVED: [&str; 2] = ["list", "many"];

/// How all of it is measured.
#[derive(Debug)]
pub(crate) struct Setting {
    folder: PathBuf,
    rounds: usize,
    scale: f64,
    binary: PathBuf,
    keep: bool,
}

impl Setting {
    fn from_arguments(arguments: &mut Arguments) -> Result<Self, Failure> {
        let folder = arguments.option("dir")?;
        let folder: PathBuf = folder.unwrap_or_else(|| PathBuf::from("target/bench"));
        let rounds = arguments.option("rounds")?.unwrap_or(3);
        let scale = arguments.option("scale")?.unwrap_or(1.0);
        if rounds == 0 || !(scale > 0.0 && scale <= 1.0) {
            return Err("--rounds must be at least 1, --scale above 0 and at most 1".into());
        }
        let binary = match arguments.option("binary")? {
            Some(binary) => binary,
            None => std::env::current_exe()?.with_file_name("openvaala"),
        };
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            // Programs that are started get absolute paths.
            folder: folder.canonicalize()?,
            rounds,
            scale,
            binary,
            keep: arguments.flag("keep"),
        })
    }

    fn check_binary(&self) -> Result<(), Failure> {
        if self.binary.is_file() {
            return Ok(());
        }
        let binary = self.binary.display();
        let build = "cargo build --release -p openvaala-cli";
        Err(format!("there is no {binary}: build it ({build}) or give --binary").into())
    }

    /// A size of the bars, made smaller if that is asked for.
    fn size(&self, full: u64, least: u64) -> u64 {
        ((full as f64 * self.scale) as u64).max(least)
    }

    /// The figures of a probe, each round in a process of its own.
    fn probe(&self, name: &str, data: &Data) -> Result<Rounds, Failure> {
        let rounds = (0..self.rounds).map(|_| fresh::probe(name, &data.path, &data.author.plan));
        rounds.collect::<Result<_, _>>().map(Rounds)
    }
}

/// What the rounds found.
#[derive(Debug)]
struct Rounds(Vec<Figures>);

impl Rounds {
    fn of(&self, name: &str) -> Result<Vec<f64>, Failure> {
        let figures = self.0.iter().map(|figures| figures.get(name).copied());
        let figures = figures.collect::<Option<_>>();
        figures.ok_or_else(|| format!("a probe gave no figure {name}").into())
    }

    fn row(&self, name: &str, measure: &str, unit: &'static str) -> Result<Row, Failure> {
        Ok(Row::new(measure, unit, self.of(name)?))
    }
}

/// The command `storage`, or one measure of it.
pub(crate) async fn run(mut arguments: Arguments, name: Option<&str>) -> Result<(), Failure> {
    let only = match name {
        Some(name) => Some(name.to_owned()),
        None => arguments.option("only")?,
    };
    let setting = Setting::from_arguments(&mut arguments)?;
    arguments.finish()?;
    let only: Option<Vec<&str>> = only.as_deref().map(|only| only.split(',').collect());
    if let Some(unknown) = only.iter().flatten().find(|name| !NAMES.contains(*name)) {
        return Err(format!("there is no measure {unknown:?}: {}", NAMES.join(", ")).into());
    }
    let chosen = NAMES
        .into_iter()
        .filter(|name| only.as_ref().is_none_or(|only| only.contains(name)));
    if chosen.clone().any(|name| SERVED.contains(&name)) {
        setting.check_binary()?;
    }
    let mut report = Report::begin(setting.scale)?;
    for name in chosen {
        measure(name, &setting, &mut report).await?;
    }
    report.end(setting.rounds)
}

async fn measure(name: &str, setting: &Setting, report: &mut Report) -> Result<(), Failure> {
    eprintln!("measuring {name}");
    match name {
        "append" => append::measure(setting, report).await,
        "open" => open::measure(setting, report).await,
        "entries" => entries::measure(setting, report).await,
        "list" => list::measure(setting, report).await,
        "reindex" => reindex::measure(setting, report).await,
        "many" => many::measure(setting, report).await,
        "large" => large::measure(setting, report),
        other => Err(format!("there is no measure {other:?}").into()),
    }
}

/// Takes the figures of one probe in this process and prints them as JSON.
pub(crate) async fn probe(mut arguments: Arguments) -> Result<(), Failure> {
    let name = arguments.required("the probe's name")?;
    let data = PathBuf::from(arguments.required("the data directory")?);
    let plan: Plan = serde_json::from_str(&arguments.required("the plan")?)?;
    arguments.finish()?;
    let figures = take(&name, &data, &Author::new(plan)).await?;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

async fn take(name: &str, data: &Path, author: &Author) -> Result<Figures, Failure> {
    match name {
        "open" => open::probe(data, author).await,
        "rebuild" => open::probe_rebuild(data, author).await,
        "entries" => entries::probe(data, author).await,
        "list" => list::probe(data, author).await,
        "build" => list::probe_build(data, author).await,
        "reindex" => reindex::probe(data, author).await,
        "latency" => reindex::probe_latency(data, author).await,
        "large-append" => large::probe_append(data, author.plan.item_bytes).await,
        "large-read" => large::probe_read(data, author.plan.item_bytes).await,
        other => Err(format!("there is no probe {other:?}").into()),
    }
}

/// Milliseconds since then.
fn ms(since: std::time::Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
