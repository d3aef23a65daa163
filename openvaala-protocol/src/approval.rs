//! Which tool calls run without a question: modes, rules, and the answers to questions.

use serde::{Deserialize, Serialize};

use crate::id::ExecutorId;

/// What is done with a tool call that no rule speaks of.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalMode {
    /// What only reads runs, everything else is denied.
    ReadOnly,
    /// What only reads runs, everything else is asked.
    #[default]
    Ask,
    /// As `ask`, and patches of files in the work location run.
    AutoEdit,
    /// Everything runs.
    Full,
}

impl ApprovalMode {
    /// Every mode, the most careful first.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::Ask, Self::AutoEdit, Self::Full];

    /// Its name in JSON, in the configuration and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Ask => "ask",
            Self::AutoEdit => "auto_edit",
            Self::Full => "full",
        }
    }
}

/// What a rule does with the calls that it fits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleDecision {
    /// They run.
    Allow,
    /// They are asked.
    Ask,
    /// They do not run.
    Deny,
}

/// A rule about tool calls; it fits a call if all that it names fits. Deny beats ask, and ask beats allow.
///
/// In all patterns `*` stands for any text, `?` for one character, and a backslash takes the next character as it is.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(feature = "schema", ts(optional_fields = nullable))]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// What is done.
    pub decision: RuleDecision,
    /// A pattern of tools; `None` means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The executor; `None` means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorId>,
    /// The work location that a call is made in, as it is, without patterns; `None` means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// A pattern of the files that a call names; relative ones lie in the work location.
    ///
    /// `*` stays within a folder, `**` does not. A rule that allows fits only if all files of the call fit, any other if
    /// one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A pattern of a shell command with its words separated by single spaces; ` *` at the end also stands for nothing.
    ///
    /// A rule that allows fits only if all commands of the line either fit it or one like it, or only read; any other
    /// if one command fits, wherever in the line it stands. Without wildcards it may also be a whole line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl ApprovalRule {
    /// A rule for all calls.
    #[must_use]
    pub const fn new(decision: RuleDecision) -> Self {
        Self {
            decision,
            tool: None,
            executor: None,
            folder: None,
            path: None,
            command: None,
        }
    }

    /// The same for tools of that pattern.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// The same on that executor.
    #[must_use]
    pub fn with_executor(mut self, executor: ExecutorId) -> Self {
        self.executor = Some(executor);
        self
    }

    /// The same for calls in that work location.
    #[must_use]
    pub fn with_folder(mut self, folder: impl Into<String>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// The same for files of that pattern.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The same for shell commands of that pattern.
    #[must_use]
    pub fn with_command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}

/// What is answered to a question whether a call may run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// It may.
    Approve,
    /// It may not.
    Deny,
}

/// How long an approval counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalScope {
    /// For this call.
    #[default]
    Once,
    /// Its rule counts in this session from now on.
    Session,
    /// Its rule counts in this session, and is written to the configuration.
    Always,
}
