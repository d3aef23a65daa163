//! Questions whether a tool call may run: asked on a terminal, refused without one.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::thread;

use openvaala_protocol::approval::{ApprovalAnswer, ApprovalScope};
use openvaala_protocol::id::{ConversationId, ItemId, SessionId};
use openvaala_protocol::item::{Approval, ApprovalState, Item};
use openvaala_protocol::rpc::params::approval::AnswerParams;
use tokio::sync::mpsc;

use crate::commands::approvals::question;
use crate::output::note;

/// What the model is told where nobody can be asked.
const NOBODY: &str = "This runs without a terminal, so nobody can be asked. Do without it, or say what should be allowed.";

/// The questions of what is followed.
#[derive(Debug)]
pub(super) struct Asking {
    is_terminal: bool,
    questions: VecDeque<Question>,
    /// Lines from the terminal, once somebody was asked; empty when the input has ended.
    lines: Option<mpsc::Receiver<String>>,
    has_refused: bool,
}

#[derive(Debug)]
struct Question {
    session_id: SessionId,
    id: ItemId,
    approval: Approval,
    is_shown: bool,
    answer: Option<Answer>,
}

#[derive(Clone, Debug, PartialEq)]
struct Answer {
    answer: ApprovalAnswer,
    scope: ApprovalScope,
    message: Option<String>,
}

impl Asking {
    /// With `is_quiet` nobody is asked even on a terminal.
    pub(super) fn new(is_quiet: bool) -> Self {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        Self {
            is_terminal: is_terminal && !is_quiet,
            questions: VecDeque::new(),
            lines: None,
            has_refused: false,
        }
    }

    /// Whether a call was refused because nobody could be asked.
    pub(super) const fn has_refused(&self) -> bool {
        self.has_refused
    }

    /// Looks at an item: a new question, or one that was answered.
    pub(super) fn see(&mut self, session_id: SessionId, item: &Item) {
        let Some(Ok(approval)) = item.body::<Approval>() else {
            return;
        };
        let id = item.head().id;
        let known = self.questions.iter().position(|question| question.id == id);
        if approval.state == ApprovalState::Pending {
            if known.is_none() {
                self.questions.push_back(Question {
                    session_id,
                    id,
                    approval,
                    is_shown: false,
                    answer: None,
                });
            }
        } else if let Some(known) = known {
            let question = self.questions.remove(known);
            if question.is_some_and(|question| question.is_shown && question.answer.is_none()) {
                note("note: this was answered elsewhere");
            }
        }
    }

    /// An answer is on its way no longer.
    pub(super) fn done(&mut self, id: ItemId) {
        self.questions.retain(|question| question.id != id);
    }

    /// Asks the next question if nothing is asked, and gives an answer that is ready.
    pub(super) fn next_answer(&mut self, conversation_id: ConversationId) -> Option<AnswerParams> {
        let is_terminal = self.is_terminal;
        let next = self.questions.front_mut()?;
        if !is_terminal && next.answer.is_none() {
            self.has_refused = true;
            next.answer = Some(Answer {
                answer: ApprovalAnswer::Deny,
                scope: ApprovalScope::Once,
                message: Some(NOBODY.to_owned()),
            });
        }
        if !next.is_shown {
            next.is_shown = true;
            if is_terminal {
                note(&question(&next.approval));
                note(&choices(&next.approval));
            } else {
                note(&format!("refused: {}", question(&next.approval)));
            }
        }
        let answer = next.answer.clone()?;
        Some(AnswerParams {
            conversation_id,
            session_id: Some(next.session_id),
            approval_id: next.id,
            answer: answer.answer,
            scope: answer.scope,
            hash: next.approval.hash.clone(),
            message: answer.message,
        })
    }

    /// Whether a line from the terminal is waited for.
    pub(super) fn waits(&self) -> bool {
        let next = self.questions.front();
        self.is_terminal && next.is_some_and(|question| question.answer.is_none())
    }

    /// The next line from the terminal; `None` when there will be none. Cancel safe.
    pub(super) async fn line(&mut self) -> Option<String> {
        self.lines.get_or_insert_with(read_lines).recv().await
    }

    /// Takes a line as the answer to the question that was asked.
    pub(super) fn take(&mut self, line: Option<String>) {
        let Some(line) = line else {
            // Nobody will answer any more.
            self.is_terminal = false;
            return;
        };
        let Some(next) = self.questions.front_mut() else {
            return;
        };
        next.answer = answer(&line, next.approval.rule.is_some());
        if next.answer.is_none() {
            note(&choices(&next.approval));
        }
    }
}

/// Reads lines until nobody takes them. A read cannot be taken back, so it has a thread of its own that ends with the
/// process.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    thread::spawn(move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}

fn choices(approval: &Approval) -> String {
    let scopes = if approval.rule.is_some() {
        ", s: for this session, a: always"
    } else {
        ""
    };
    format!("Run it? y: yes, n: no, perhaps with a word to the model{scopes}")
}

/// What a line says; `None` if it says nothing.
fn answer(line: &str, has_rule: bool) -> Option<Answer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let scope = match word.to_ascii_lowercase().as_str() {
        "y" | "yes" => ApprovalScope::Once,
        "s" | "session" if has_rule => ApprovalScope::Session,
        "a" | "always" if has_rule => ApprovalScope::Always,
        "n" | "no" => {
            let message = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
            return Some(Answer {
                answer: ApprovalAnswer::Deny,
                scope: ApprovalScope::Once,
                message,
            });
        }
        _ => return None,
    };
    Some(Answer {
        answer: ApprovalAnswer::Approve,
        scope,
        message: None,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn an_answer_is_a_word_and_a_no_may_say_more() {
        let read = |line: &str| answer(line, true).map(|it| (it.answer, it.scope, it.message));
        let approve = |scope| Some((ApprovalAnswer::Approve, scope, None));
        let deny = |message: Option<&str>| {
            let message = message.map(str::to_owned);
            Some((ApprovalAnswer::Deny, ApprovalScope::Once, message))
        };
        assert_eq!(read("y"), approve(ApprovalScope::Once));
        assert_eq!(read(" YES "), approve(ApprovalScope::Once));
        assert_eq!(read("s"), approve(ApprovalScope::Session));
        assert_eq!(read("always"), approve(ApprovalScope::Always));
        assert_eq!(read("n"), deny(None));
        assert_eq!(
            read("no use the other one"),
            deny(Some("use the other one"))
        );
        assert_eq!(
            (read(""), read("yeah"), read("yesterday")),
            (None, None, None)
        );
        assert_eq!(answer("a", false), None);
    }
}
