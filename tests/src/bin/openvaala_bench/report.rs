//! The table of results, a row at a time.

use std::fs;

use crate::Failure;

/// What a figure has to be; for the full sizes only.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    measure: String,
    unit: &'static str,
    rounds: Vec<f64>,
    bar: Option<Bar>,
    floor: Option<f64>,
}

impl Row {
    /// A measure with its figure of each round.
    pub(crate) fn new(measure: impl Into<String>, unit: &'static str, rounds: Vec<f64>) -> Self {
        Self {
            measure: measure.into(),
            unit,
            rounds,
            bar: None,
            floor: None,
        }
    }

    pub(crate) const fn bar(mut self, bar: Bar) -> Self {
        self.bar = Some(bar);
        self
    }

    /// What this machine gives at best for such work, in the unit of the row.
    pub(crate) const fn floor(mut self, floor: f64) -> Self {
        self.floor = Some(floor);
        self
    }
}

/// Prints rows as they come.
#[derive(Debug)]
pub(crate) struct Report {
    scale: f64,
    loads: Vec<f64>,
}

impl Report {
    pub(crate) fn begin(scale: f64) -> Result<Self, Failure> {
        println!("| measure | unit | value | bar | floor | x floor |");
        println!("| --- | --- | --- | --- | --- | --- |");
        Ok(Self {
            scale,
            loads: vec![load()?],
        })
    }

    pub(crate) fn row(&mut self, row: Row) -> Result<(), Failure> {
        let value = median(&row.rounds);
        let spread = match (lowest(&row.rounds), highest(&row.rounds)) {
            (low, high) if row.rounds.len() > 1 => format!(" ({} to {})", short(low), short(high)),
            _ => String::new(),
        };
        // At another size a bar says nothing.
        let bar = row.bar.filter(|_| self.scale == 1.0);
        let bar = bar.map_or_else(String::new, |bar| said(bar, value));
        let floor = row.floor.map_or_else(String::new, short);
        let ratio = row
            .floor
            .map_or_else(String::new, |floor| short(value / floor));
        println!(
            "| {} | {} | {}{spread} | {bar} | {floor} | {ratio} |",
            row.measure,
            row.unit,
            short(value)
        );
        self.loads.push(load()?);
        Ok(())
    }

    /// The line below the table.
    pub(crate) fn end(self, rounds: usize) -> Result<(), Failure> {
        let cores = std::thread::available_parallelism()?;
        println!();
        println!(
            "load {:.1} to {:.1}, {cores} cores, rounds: {rounds}, scale: {}; a value is the median of the rounds, in brackets their spread",
            lowest(&self.loads),
            highest(&self.loads),
            self.scale
        );
        Ok(())
    }
}

fn said(bar: Bar, value: f64) -> String {
    let (sign, bar, met) = match bar {
        Bar::AtMost(bar) => ('≤', bar, value <= bar),
        Bar::AtLeast(bar) => ('≥', bar, value >= bar),
    };
    let met = if met { "met" } else { "**missed**" };
    format!("{sign} {}: {met}", short(bar))
}

/// Three digits that count, or all of a whole number.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The middle one; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

/// The value that so many of a hundred do not exceed; 0 of nothing.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let place = (values.len() * percent / 100).min(last);
    values.get(place).copied().unwrap_or_default()
}

fn lowest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn highest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn load() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/loadavg")?;
    let first = text.split(' ').next().unwrap_or_default();
    Ok(first.parse()?)
}
