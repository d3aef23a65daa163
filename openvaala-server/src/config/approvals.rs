//! Which tool calls run without a question: `approval` in `openvaala.yaml`, and `approvals.yaml` with what was approved for
//! good.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use openvaala_core::ApprovalPolicy;
use openvaala_protocol::approval::ApprovalRule;
use serde::Serialize;

use super::ConfigDir;
use super::fault::{ConfigError, ConfigFault};
use super::load::{parse, read};
use super::schema::{ApprovalSection, ApprovalsFile};
use crate::environment::Environment;
use crate::files::{create_private_dir, write_private};

/// The file that the server writes.
const FILE: &str = "approvals.yaml";
/// What stands at its head.
const HEAD: &str = "# What was approved with \"always\". Written by the server; delete rules that you do not want any more.\n";

/// Why a rule was not added; the configuration is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddRuleError {
    /// The configuration is broken.
    #[error("the configuration is broken: mend it first")]
    Broken {
        /// What is wrong with it.
        source: ConfigError,
    },
    /// The file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The policy that the main file describes: what may do more than read is asked, unless it says otherwise.
pub(super) fn policy(section: ApprovalSection) -> ApprovalPolicy {
    let mut policy = ApprovalPolicy::new(section.mode.unwrap_or_default());
    policy.rules = section.rules;
    policy.answer_within = section.answer_within_seconds.map(|seconds| seconds.0);
    policy
}

/// The rules of `approvals.yaml`; none if there is no such file.
pub(super) fn load(dir: &Path) -> Result<Vec<ApprovalRule>, ConfigFault> {
    let path = dir.join(FILE);
    match read(&path)? {
        Some(text) => Ok(parse::<ApprovalsFile>(&path, &text)?.rules),
        None => Ok(Vec::new()),
    }
}

pub(super) fn add_rule(
    dir: &ConfigDir,
    rule: &ApprovalRule,
    environment: &Environment,
) -> Result<(), AddRuleError> {
    #[derive(Serialize)]
    struct File<'a> {
        rules: &'a [ApprovalRule],
    }

    let broken = |source: ConfigError| AddRuleError::Broken { source };
    dir.load(environment).map_err(broken)?;
    let path = dir.path().join(FILE);
    // It may be a link into a repository of such files.
    let path = fs::canonicalize(&path).unwrap_or(path);
    let failed = |source: io::Error| AddRuleError::Write {
        path: path.clone(),
        source,
    };
    let fault = |fault: ConfigFault| broken(ConfigError::new(vec![fault]));
    let old = read(&path).map_err(fault)?;
    let mut rules = load(dir.path()).map_err(fault)?;
    if rules.contains(rule) {
        return Ok(());
    }
    rules.push(rule.clone());
    let text = serde_yaml::to_string(&File { rules: &rules });
    let text = text.map_err(|error| failed(io::Error::other(error.to_string())))?;
    create_private_dir(dir.path()).map_err(failed)?;
    write_private(&path, &format!("{HEAD}{text}")).map_err(failed)?;
    if let Err(source) = dir.load(environment) {
        match old {
            Some(old) => write_private(&path, &old).map_err(failed)?,
            None => fs::remove_file(&path).map_err(failed)?,
        }
        return Err(broken(source));
    }
    Ok(())
}
