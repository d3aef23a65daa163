//! Notices that a model goes round in a circle: it asks for the same again and gets the same again.

use openvaala_protocol::content::Content;
use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{ToolCall, ToolResultStatus};

use super::event::ToolOutcome;

/// How many answers before the last one that is let pass the model is warned.
const WARNED_BEFORE: u32 = 2;

/// Counts how often in a row the answers of a model had the same calls with the same results.
///
/// All calls of an answer count as one, since they run at once. An answer that looks at something that goes on by itself
/// counts for nothing: looking again is how one waits.
#[derive(Debug)]
pub(super) struct Repeats {
    /// So many in a row are too many; 0 is never.
    limit: u32,
    last: Vec<Exchange>,
    /// How often in a row `last` has come.
    times: u32,
    /// The calls of the answer under way, in their order.
    current: Vec<Exchange>,
}

/// A call and what came of it.
#[derive(Debug)]
struct Exchange {
    result: ItemId,
    tool: String,
    arguments: String,
    got: Option<Got>,
}

/// What a model sees of a result, and whether it can change by itself.
#[derive(Debug, PartialEq)]
struct Got {
    status: ToolResultStatus,
    content: Vec<Content>,
    exit_code: Option<i32>,
    goes_on: bool,
}

impl Repeats {
    pub(super) const fn new(limit: u32) -> Self {
        Self {
            limit,
            last: Vec::new(),
            times: 0,
            current: Vec::new(),
        }
    }

    /// Takes in a call of the answer under way.
    pub(super) fn asked(&mut self, result: ItemId, call: &ToolCall) {
        if self.limit > 0 {
            self.current.push(Exchange {
                result,
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                got: None,
            });
        }
    }

    /// Takes in what came of a call; gives the warning that the model is to read with it, if it is time for one.
    pub(super) fn got(&mut self, result: ItemId, outcome: &ToolOutcome) -> Option<String> {
        let mut calls = self.current.iter_mut();
        calls.find(|call| call.result == result)?.got = Some(Got {
            status: outcome.status,
            content: outcome.content.clone(),
            exit_code: outcome.exit_code,
            goes_on: outcome.goes_on,
        });
        if self.current.iter().any(|call| call.got.is_none()) {
            return None;
        }
        self.answer_over();
        let warned_at = self.limit.saturating_sub(WARNED_BEFORE).max(2);
        (self.times == warned_at && warned_at < self.limit).then(|| {
            let (times, limit) = (self.times, self.limit);
            format!(
                "[{times} times in a row the same call has had the same result: do something else. \
                 At {limit} times the turn ends.]"
            )
        })
    }

    fn answer_over(&mut self) {
        let answer = std::mem::take(&mut self.current);
        if answer.iter().any(Exchange::goes_on) {
            self.forget();
        } else if answer == self.last {
            self.times += 1;
        } else {
            (self.last, self.times) = (answer, 1);
        }
    }

    /// Begins to count anew: somebody has said something.
    pub(super) fn forget(&mut self) {
        self.last.clear();
        self.times = 0;
    }

    /// Why the turn has to end, if it has to.
    pub(super) fn too_many(&self) -> Option<String> {
        if self.limit == 0 || self.times < self.limit {
            return None;
        }
        let mut tools: Vec<&str> = self.last.iter().map(|call| call.tool.as_str()).collect();
        tools.dedup();
        Some(format!(
            "{} was called {} times in a row with the same arguments and the same result: say what to do instead",
            tools.join(", "),
            self.times
        ))
    }
}

impl Exchange {
    fn goes_on(&self) -> bool {
        self.got.as_ref().is_some_and(|got| got.goes_on)
    }
}

impl PartialEq for Exchange {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            result: _,
            tool,
            arguments,
            got,
        } = self;
        (tool, arguments, got) == (&other.tool, &other.arguments, &other.got)
    }
}

#[cfg(test)]
mod tests;
