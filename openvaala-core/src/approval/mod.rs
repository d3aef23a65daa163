//! Which tool calls run without a question.
//!
//! A [policy](ApprovalPolicy) has a mode and rules. It is pure: a call goes in, with all that is known of it, and out comes
//! whether it runs, is asked, or is denied. What it cannot prove harmless is never let through by itself.

mod facts;
mod path;
mod pattern;
#[cfg(feature = "tools")]
mod shell;

use std::time::Duration;

use openvaala_protocol::approval::{ApprovalMode, ApprovalRule, RuleDecision};

pub(crate) use self::facts::Asked;
use self::facts::{Facts, What};
use self::pattern::{Star, exactly, fits};

/// The most that is shown of a command.
const SHOWN: usize = 200;

/// Which tool calls run without a question.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ApprovalPolicy {
    /// What is done with a call that no rule speaks of.
    pub mode: ApprovalMode,
    /// The rules; deny beats ask, and ask beats allow.
    ///
    /// A rule that allows counts for nothing in the mode `read_only`.
    pub rules: Vec<ApprovalRule>,
    /// How long a question waits for an answer until the call is denied, restarts included; `None`, the default, is for ever.
    pub answer_within: Option<Duration>,
}

impl ApprovalPolicy {
    /// A policy of that mode without rules.
    #[must_use]
    pub const fn new(mode: ApprovalMode) -> Self {
        Self {
            mode,
            rules: Vec::new(),
            answer_within: None,
        }
    }

    /// The same with one more rule.
    #[must_use]
    pub fn with_rule(mut self, rule: ApprovalRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The same with a time after which calls of which nobody has said whether they may run are denied.
    #[must_use]
    pub const fn with_answer_within(mut self, time: Duration) -> Self {
        self.answer_within = Some(time);
        self
    }
}

/// Everything runs: who embeds a runtime decides what it may do.
impl Default for ApprovalPolicy {
    fn default() -> Self {
        Self::new(ApprovalMode::Full)
    }
}

/// Whether a call runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Allow,
    Ask {
        reason: String,
        /// What would let the same call run.
        rule: Option<ApprovalRule>,
    },
    Deny {
        reason: String,
    },
}

impl ApprovalPolicy {
    /// Judges a call.
    pub(crate) fn judge(&self, call: &Asked<'_>) -> Verdict {
        let facts = Facts::of(call);
        let of = |decision: RuleDecision| {
            let rules = self
                .rules
                .iter()
                .filter(move |rule| rule.decision == decision);
            rules.filter(|rule| concerns(rule, call))
        };
        if let Some(rule) = of(RuleDecision::Deny).find(|rule| fits_any(rule, &facts)) {
            return Verdict::Deny {
                reason: format!("the rule {} denies it", shown(rule)),
            };
        }
        let harm = facts.harm(call.tool);
        if let Some(harm) = &harm
            && self.mode == ApprovalMode::ReadOnly
        {
            return Verdict::Deny {
                reason: format!("the mode is read_only, and {harm}"),
            };
        }
        let ask = |reason: String| Verdict::Ask {
            reason,
            rule: rule_for(call, &facts),
        };
        if let Some(rule) = of(RuleDecision::Ask).find(|rule| fits_any(rule, &facts)) {
            // No rule that allows would change that.
            return Verdict::Ask {
                reason: format!("the rule {} asks for it", shown(rule)),
                rule: None,
            };
        }
        let stricter = || of(RuleDecision::Deny).chain(of(RuleDecision::Ask));
        if let Some(rule) = stricter().find(|rule| may_fit(rule, &facts)) {
            let reason = format!(
                "whether the rule {} fits is not known before it runs",
                shown(rule)
            );
            return Verdict::Ask { reason, rule: None };
        }
        let Some(harm) = harm else {
            return Verdict::Allow;
        };
        if self.mode == ApprovalMode::Full
            || allowed(&of(RuleDecision::Allow).collect::<Vec<_>>(), &facts)
        {
            return Verdict::Allow;
        }
        if self.mode == ApprovalMode::AutoEdit && facts.is_own_edit() {
            return Verdict::Allow;
        }
        ask(harm)
    }
}

/// Whether a rule is about such tools in that work location.
fn concerns(rule: &ApprovalRule, call: &Asked<'_>) -> bool {
    let tool = rule
        .tool
        .as_deref()
        .is_none_or(|tool| fits(tool, call.tool, Star::Text));
    let executor = rule
        .executor
        .as_ref()
        .is_none_or(|executor| call.executor == Some(executor));
    let plain = |folder: &str| folder.trim_end_matches('/').to_owned();
    let folder = rule
        .folder
        .as_deref()
        .is_none_or(|folder| call.folder.map(plain) == Some(plain(folder)));
    tool && executor && folder
}

/// Whether some part of a call fits a rule.
fn fits_any(rule: &ApprovalRule, facts: &Facts) -> bool {
    let path = rule
        .path
        .as_deref()
        .is_none_or(|pattern| facts.paths.iter().any(|path| fits_path(pattern, path)));
    let command = rule
        .command
        .as_deref()
        .is_none_or(|pattern| command_fits(pattern, facts));
    path && command
}

/// Whether a rule might fit although it is not seen to.
fn may_fit(rule: &ApprovalRule, facts: &Facts) -> bool {
    let path = rule.path.is_some() && facts.other_paths;
    let command = rule.command.is_some() && has_unknown_commands(facts);
    let path_fits = rule.path.is_none()
        || path
        || fits_any(
            &ApprovalRule {
                command: None,
                ..rule.clone()
            },
            facts,
        );
    let command_fits = rule.command.is_none()
        || command
        || fits_any(
            &ApprovalRule {
                path: None,
                ..rule.clone()
            },
            facts,
        );
    (path || command) && path_fits && command_fits
}

fn fits_path(pattern: &str, path: &str) -> bool {
    // A relative pattern may lie anywhere above.
    let pattern = if pattern.starts_with('/') || pattern.starts_with("**") {
        pattern.to_owned()
    } else {
        format!("**/{pattern}")
    };
    fits(&pattern, path, Star::Path)
}

/// Whether a pattern of commands fits; ` *` at the end also stands for nothing.
#[cfg(feature = "tools")]
fn fits_command(pattern: &str, command: &str) -> bool {
    fits(pattern, command, Star::Text)
        || pattern
            .strip_suffix(" *")
            .is_some_and(|short| !short.ends_with('\\') && fits(short, command, Star::Text))
}

#[cfg(feature = "tools")]
fn command_fits(pattern: &str, facts: &Facts) -> bool {
    let What::Shell { text, line, .. } = &facts.what else {
        return false;
    };
    fits_command(pattern, text)
        || line.commands.iter().any(|command| {
            fits_command(pattern, &command.text())
                || command
                    .text_without_folder()
                    .is_some_and(|text| fits_command(pattern, &text))
        })
}

#[cfg(feature = "tools")]
fn has_unknown_commands(facts: &Facts) -> bool {
    let What::Shell { line, .. } = &facts.what else {
        return false;
    };
    let is_unknown =
        |command: &shell::Command| command.words.iter().any(|word| word.text.is_none());
    line.opaque.is_some()
        || line
            .commands
            .iter()
            .any(|command| command.name().is_none() || is_unknown(command))
}

/// Whether the rules that allow let all of a call run.
#[cfg(feature = "tools")]
fn allowed(rules: &[&ApprovalRule], facts: &Facts) -> bool {
    let What::Shell {
        text,
        line,
        begins_inside,
        stays_inside,
    } = &facts.what
    else {
        return allowed_whole(rules, facts);
    };
    let rules: Vec<&&ApprovalRule> = rules.iter().filter(|rule| rule.path.is_none()).collect();
    let patterns = || rules.iter().filter_map(|rule| rule.command.as_deref());
    let is_whole =
        |pattern: &str| !pattern::has_wildcard(pattern) && fits(pattern, text, Star::Text);
    // The same words may be another thing in another folder.
    if rules.iter().any(|rule| rule.command.is_none())
        || (*begins_inside && patterns().any(is_whole))
    {
        return true;
    }
    let is_allowed = |command: &shell::Command| {
        line.harm_of(command).is_none()
            || command.name().is_some()
                && patterns().any(|pattern| fits_command(pattern, &command.text()))
    };
    *begins_inside
        && *stays_inside
        && line.opaque.is_none()
        && line.writes.is_empty()
        && line.commands.iter().all(is_allowed)
}

#[cfg(not(feature = "tools"))]
fn command_fits(_: &str, _: &Facts) -> bool {
    false
}

#[cfg(not(feature = "tools"))]
fn has_unknown_commands(_: &Facts) -> bool {
    false
}

#[cfg(not(feature = "tools"))]
fn allowed(rules: &[&ApprovalRule], facts: &Facts) -> bool {
    allowed_whole(rules, facts)
}

fn allowed_whole(rules: &[&ApprovalRule], facts: &Facts) -> bool {
    let without_command = rules.iter().filter(|rule| rule.command.is_none());
    without_command.clone().any(|rule| rule.path.is_none())
        || !facts.paths.is_empty()
            && !facts.other_paths
            && facts.paths.iter().all(|path| {
                let mut patterns = without_command
                    .clone()
                    .filter_map(|rule| rule.path.as_deref());
                patterns.any(|pattern| fits_path(pattern, path))
            })
}

/// The rule that would let the same call run.
fn rule_for(call: &Asked<'_>, facts: &Facts) -> Option<ApprovalRule> {
    let mut rule = ApprovalRule::new(RuleDecision::Allow).with_tool(exactly(call.tool));
    rule.executor = call.executor.cloned();
    // What is harmless in one work location may be another thing in the next.
    rule.folder = call.folder.map(str::to_owned);
    match &facts.what {
        #[cfg(feature = "tools")]
        What::Shell {
            text,
            begins_inside,
            ..
        } if text.is_empty() || !begins_inside => None,
        #[cfg(feature = "tools")]
        What::Shell { text, .. } => Some(rule.with_command(exactly(text))),
        #[cfg(feature = "tools")]
        What::Edits { inside: true } => {
            let folder = call.folder?.trim_end_matches('/');
            Some(rule.with_path(format!("{}/**", exactly(folder))))
        }
        #[cfg(feature = "tools")]
        What::Edits { .. } => match facts.paths.as_slice() {
            [path] => Some(rule.with_path(exactly(path))),
            _ => None,
        },
        What::Reads | What::Other => Some(rule),
    }
}

/// A rule in a few words.
fn shown(rule: &ApprovalRule) -> String {
    let parts = [
        rule.tool.as_ref().map(|tool| format!("tool {tool}")),
        rule.executor
            .as_ref()
            .map(|executor| format!("executor {executor}")),
        rule.folder
            .as_ref()
            .map(|folder| format!("folder {folder}")),
        rule.path.as_ref().map(|path| format!("path {path}")),
        rule.command
            .as_ref()
            .map(|command| format!("command {command}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let text: String = parts.join(", ").chars().take(SHOWN).collect();
    if text.is_empty() {
        "for all tools".to_owned()
    } else {
        format!("`{text}`")
    }
}

#[cfg(test)]
mod tests;
