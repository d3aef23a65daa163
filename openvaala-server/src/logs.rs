//! The end of what a server has said, kept in memory for clients that ask for it.

use std::collections::VecDeque;
use std::io;

use tokio::sync::{mpsc, oneshot};

/// How many lines are kept.
const LINES: usize = 5_000;
/// How many bytes they have at most, in all.
const BYTES: usize = 1 << 20;
/// A longer line is cut there.
const LINE: usize = 4 << 10;
/// How many lines may be on their way; those that come faster are not kept.
const ON_THE_WAY: usize = 1_024;

/// A handle to what is kept; clones share it.
#[derive(Clone, Debug)]
pub struct Logs {
    written: mpsc::Sender<String>,
    asked: mpsc::Sender<Asked>,
}

/// Writes to it: a line at each call, as the formatting layers of `tracing_subscriber` do. Never waits and never fails.
#[derive(Clone, Debug)]
pub struct LogWriter(mpsc::Sender<String>);

/// A line that was said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Line {
    /// How many were kept before it, and it.
    pub(crate) number: u64,
    pub(crate) text: String,
}

#[derive(Debug)]
struct Asked {
    query: LogQuery,
    reply: oneshot::Sender<Vec<Line>>,
}

/// Which lines to give.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogQuery {
    /// Those after this one, the oldest first; `None` means the last ones.
    pub(crate) after: Option<u64>,
    pub(crate) limit: usize,
    /// Whether to wait until there is one.
    pub(crate) wait: bool,
}

impl Logs {
    /// Begins to keep what is written; ends with the last handle and writer. Must be called within a tokio runtime.
    #[must_use]
    pub fn keep() -> Self {
        let (written, lines) = mpsc::channel(ON_THE_WAY);
        let (asked, questions) = mpsc::channel(16);
        tokio::spawn(Kept::default().run(lines, questions));
        Self { written, asked }
    }

    /// A way to write to it.
    #[must_use]
    pub fn writer(&self) -> LogWriter {
        LogWriter(self.written.clone())
    }

    /// Some of the lines; waits for one if it is asked to, and gives none if nothing is kept any more.
    pub(crate) async fn read(&self, query: LogQuery) -> Vec<Line> {
        let (reply, lines) = oneshot::channel();
        let asked = self.asked.send(Asked { query, reply }).await;
        match asked {
            Ok(()) => lines.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }
}

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches('\n');
        let text = &text[..text.floor_char_boundary(LINE)];
        // What comes too fast is not kept: it is in the log itself.
        let _ = self.0.try_send(text.to_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The one owner of what is kept.
#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<Line>,
    bytes: usize,
    last: u64,
    waiting: Vec<Asked>,
}

impl Kept {
    async fn run(
        mut self,
        mut lines: mpsc::Receiver<String>,
        mut questions: mpsc::Receiver<Asked>,
    ) {
        loop {
            tokio::select! {
                // What was said before a question is in its answer.
                biased;
                Some(text) = lines.recv() => self.take(text),
                Some(asked) = questions.recv() => self.answer(asked),
                else => return,
            }
        }
    }

    fn take(&mut self, text: String) {
        self.last += 1;
        self.bytes += text.len();
        let number = self.last;
        self.lines.push_back(Line { number, text });
        while self.lines.len() > LINES || self.bytes > BYTES {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.text.len();
        }
        for asked in std::mem::take(&mut self.waiting) {
            self.answer(asked);
        }
    }

    fn answer(&mut self, asked: Asked) {
        if asked.reply.is_closed() {
            return;
        }
        let found = self.find(asked.query);
        if found.is_empty() && asked.query.wait {
            self.waiting.retain(|waiting| !waiting.reply.is_closed());
            self.waiting.push(asked);
            return;
        }
        // Whoever asked may have gone.
        let _ = asked.reply.send(found);
    }

    fn find(&self, query: LogQuery) -> Vec<Line> {
        let begin = match query.after {
            Some(after) => self.lines.partition_point(|line| line.number <= after),
            None => self.lines.len().saturating_sub(query.limit),
        };
        let lines = self.lines.iter().skip(begin).take(query.limit);
        lines.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use pretty_assertions::assert_eq;

    use super::*;

    const LAST: LogQuery = LogQuery {
        after: None,
        limit: 2,
        wait: false,
    };

    fn numbers(lines: &[Line]) -> Vec<u64> {
        lines.iter().map(|line| line.number).collect()
    }

    #[tokio::test]
    async fn the_last_lines_are_given_and_those_after_one() {
        let logs = Logs::keep();
        for text in ["one\n", "two\n", "three\n"] {
            logs.writer().write_all(text.as_bytes()).unwrap();
        }
        let last = logs.read(LAST).await;
        let texts: Vec<&str> = last.iter().map(|line| line.text.as_str()).collect();
        assert_eq!((numbers(&last), texts), (vec![2, 3], vec!["two", "three"]));
        let after = LogQuery {
            after: Some(0),
            ..LAST
        };
        assert_eq!(numbers(&logs.read(after).await), [1, 2]);
    }

    #[tokio::test]
    async fn who_waits_is_told_the_next_line() {
        let logs = Logs::keep();
        let wait = LogQuery {
            after: Some(0),
            limit: 10,
            wait: true,
        };
        let (lines, ()) = tokio::join!(logs.read(wait), async {
            logs.writer().write_all(b"at last\n").unwrap();
        });
        assert_eq!(numbers(&lines), [1]);
    }

    #[test]
    fn old_lines_make_room_for_new_ones_in_number_and_in_bytes() {
        let mut kept = Kept::default();
        (0..LINES + 10).for_each(|_| kept.take("x".to_owned()));
        assert_eq!((kept.lines.len(), kept.bytes), (LINES, LINES));
        assert_eq!(kept.lines[0].number, 11);
        (0..1_000).for_each(|_| kept.take("x".repeat(LINE)));
        assert_eq!((kept.lines.len(), kept.bytes), (BYTES / LINE, BYTES));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_cut_at_a_character() {
        let logs = Logs::keep();
        let long = format!("a{}", "ü".repeat(LINE));
        logs.writer().write_all(long.as_bytes()).unwrap();
        let kept = logs.read(LAST).await;
        assert_eq!(kept[0].text.len(), LINE - 1);
    }
}
