//! How far a long command is.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::note;

/// How long lies between two lines where there is no terminal.
const LINES: Duration = Duration::from_secs(2);

/// Shows how far it is: a bar on a terminal, now and then a line elsewhere.
pub(super) struct Meter {
    bar: ProgressBar,
    /// When the next line is due.
    due: Instant,
}

impl Meter {
    pub(super) fn new() -> Self {
        let template = "{bar:40} {pos}/{len} conversations, {per_sec}, {eta} left";
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        // On anything but a terminal it draws nothing.
        let bar = ProgressBar::new(0).with_style(style);
        Self {
            bar,
            due: Instant::now() + LINES,
        }
    }

    pub(super) fn show(&mut self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        if self.bar.is_hidden() && Instant::now() >= self.due {
            self.due = Instant::now() + LINES;
            note(&format!("{done}/{total} conversations"));
        }
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
