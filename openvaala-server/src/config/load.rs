//! Reads the configuration directory: all of it, or nothing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use openvaala_core::{AgentLimits, CompactionPolicy, ContextWindows, RetryPolicy};

use super::agents::load_agents;
use super::approvals;
use super::context_files::{load_instructions, load_skills};
use super::fault::{ConfigError, ConfigFault};
use super::limits::limits;
use super::schema::{
    AgentLimitsSection, CompactionSection, HttpProviderFile, MainFile, ProviderHead, RetrySection,
    check_key,
};
use super::{
    Config, DEMO, HttpProvider, Key, ModelChoice, ProviderConfig, ProviderKind, ProviderType,
};
use crate::environment::Environment;

/// The largest file that is read.
const MAX_FILE: u64 = 1 << 20;
/// The deepest nesting that is read; no field of ours is deeper than three.
const MAX_DEPTH: usize = 64;
/// The file for everything but the providers.
pub(super) const MAIN: &str = "openvaala.yaml";
/// The directory with a file for each provider.
pub(super) const PROVIDERS: &str = "providers";

/// Reads every file; the error has the first fault of each broken one.
///
/// `main` is taken in the place of what the main file says.
pub(super) fn load(
    dir: &Path,
    main: Option<&str>,
    environment: &Environment,
) -> Result<Config, ConfigError> {
    let mut faults = Vec::new();
    let main_path = dir.join(MAIN);
    let main_text = match main {
        Some(text) => Ok(Some(text.to_owned())),
        None => read(&main_path),
    };
    let main_text = main_text.unwrap_or_else(|fault| {
        faults.push(fault);
        None
    });
    let main = main_text
        .as_deref()
        .map(|text| parse::<MainFile>(&main_path, text));
    let main = main.transpose().unwrap_or_else(|fault| {
        faults.push(fault);
        None
    });
    let mut warnings = Vec::new();
    let mut providers = BTreeMap::new();
    match yaml_files(&dir.join(PROVIDERS)) {
        Ok(files) => {
            for path in files {
                match load_provider(&path, environment) {
                    Ok((provider, warning)) => {
                        warnings.extend(warning);
                        providers.insert(provider.name.clone(), provider);
                    }
                    Err(fault) => faults.push(fault),
                }
            }
        }
        Err(fault) => faults.push(fault),
    }
    let agents = load_agents(dir, &mut faults);
    let approved = approvals::load(dir).unwrap_or_else(|fault| {
        faults.push(fault);
        Vec::new()
    });
    let mut main = main.unwrap_or_default();
    let remote = main.remote.take().map(|remote| remote.read(dir));
    let remote = remote.transpose().unwrap_or_else(|(field, message)| {
        let text = main_text.as_deref().unwrap_or_default();
        faults.push(ConfigFault::field(&main_path, text, field, message));
        None
    });
    let mut config = config(main, providers, warnings);
    config.remote = remote;
    config.agents = agents;
    config.instructions = load_instructions(dir, &mut config.warnings);
    config.skills = load_skills(dir, &mut config.warnings);
    config.approval.rules.extend(approved);
    if faults.is_empty() {
        Ok(config)
    } else {
        Err(ConfigError::new(faults))
    }
}

/// Says where in the directory's main file something is wrong that only shows when all is known.
pub(super) fn main_fault(
    dir: &Path,
    main: Option<&str>,
    field: &str,
    message: String,
) -> ConfigError {
    let path = dir.join(MAIN);
    let text = match main {
        Some(text) => text.to_owned(),
        None => read(&path).ok().flatten().unwrap_or_default(),
    };
    ConfigError::new(vec![ConfigFault::field(&path, &text, field, message)])
}

fn config(
    main: MainFile,
    providers: BTreeMap<String, ProviderConfig>,
    warnings: Vec<String>,
) -> Config {
    Config {
        listen: main.listen.map(|listen| listen.0),
        remote: None,
        origins: main.origins.into_iter().map(|origin| origin.0).collect(),
        default_model: main.default_model.map(|choice| ModelChoice {
            provider: choice.provider,
            model: choice.model.map(|model| model.0),
            effort: choice.effort.map(|effort| effort.0),
        }),
        environment_allow: main.environment.allow,
        step_limit: main.step_limit.map(|limit| limit.0),
        repeat_limit: main.repeat_limit.map(|limit| limit.0),
        retry: retry(&main.retry),
        compaction: compaction(&main.compaction),
        idle_exit: main.idle_exit_seconds.map(|seconds| seconds.0),
        keep_trash: main.trash.keep_days.map(|days| days.0),
        unload_after: main.unload_after_seconds.map(|seconds| seconds.0),
        approval: approvals::policy(main.approval),
        agent_limits: agent_limits(&main.agent_limits),
        limits: limits(&main.limits),
        providers,
        agents: BTreeMap::new(),
        instructions: None,
        skills: Vec::new(),
        warnings,
    }
}

fn agent_limits(section: &AgentLimitsSection) -> AgentLimits {
    let mut limits = AgentLimits::default();
    limits.depth = section.depth.map_or(limits.depth, |depth| depth.0);
    limits.open = section.open.map_or(limits.open, |open| open.0);
    limits
}

fn compaction(section: &CompactionSection) -> CompactionPolicy {
    let mut policy = CompactionPolicy::default();
    if let Some(automatic) = section.automatic {
        policy = policy.with_automatic(automatic);
    }
    if let Some(share) = section.share_percent {
        policy = policy.with_share_percent(share.0);
    }
    policy
}

fn retry(section: &RetrySection) -> RetryPolicy {
    let mut policy = RetryPolicy::default();
    if let Some(attempts) = section.attempts {
        policy = policy.with_attempts(attempts.0);
    }
    if let Some(wait) = section.first_wait_ms {
        policy = policy.with_first_wait(wait.0);
    }
    if let Some(wait) = section.longest_wait_seconds {
        policy = policy.with_longest_wait(wait.0);
    }
    policy
}

/// The files of a directory, by name; what is no YAML file or hidden is passed over.
pub(super) fn yaml_files(dir: &Path) -> Result<Vec<PathBuf>, ConfigFault> {
    let failed =
        |error: io::Error| ConfigFault::whole(dir.display().to_string(), error.to_string());
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let extension = path.extension().and_then(OsStr::to_str);
        if !hidden && matches!(extension, Some("yaml" | "yml")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn load_provider(
    path: &Path,
    environment: &Environment,
) -> Result<(ProviderConfig, Option<String>), ConfigFault> {
    let whole = |message: String| ConfigFault::whole(path.display().to_string(), message);
    let name = name_of(path, "a provider")?;
    check_name(name).map_err(|message| whole(format!("{message}: rename the file")))?;
    let text = read(path)?.ok_or_else(|| whole("it is gone".to_owned()))?;
    // A file of an unknown type is refused as that, not for the fields that its type has.
    parse::<ProviderHead>(path, &text)?;
    let file = parse::<HttpProviderFile>(path, &text)?;
    http_provider(path, &text, name, file, environment)
}

fn windows(any: Option<u64>, models: BTreeMap<String, u64>) -> ContextWindows {
    let begin = any.map_or_else(ContextWindows::default, ContextWindows::of_all);
    models.into_iter().fold(begin, |windows, (model, tokens)| {
        windows.with_model(model, tokens)
    })
}

fn http_provider(
    path: &Path,
    text: &str,
    name: &str,
    file: HttpProviderFile,
    environment: &Environment,
) -> Result<(ProviderConfig, Option<String>), ConfigFault> {
    if file.max_tokens.is_some() && file.kind != ProviderType::AnthropicMessages {
        let message = format!(
            "only {} needs a limit of tokens: leave the line out",
            ProviderType::AnthropicMessages
        );
        return Err(ConfigFault::field(path, text, "max_tokens", message));
    }
    let fault = |message: &str| ConfigFault::field(path, text, "api_key_env", message);
    let mut warning = None;
    let key = match (file.api_key, file.api_key_env) {
        (Some(_), Some(_)) => {
            return Err(fault("there is an `api_key` too: give only one of them"));
        }
        (Some(key), None) => Key::Given(key.0),
        (None, Some(variable)) => {
            let key = from_variable(variable.0, environment).map_err(|error| fault(&error))?;
            if let Key::Missing { variable } = &key {
                let message = format!(
                    "the variable {variable} is not set where the server was started, so this provider \
                     cannot be asked"
                );
                warning = Some(fault(&message).to_string());
            }
            key
        }
        (None, None) => Key::None,
    };
    let provider = ProviderConfig {
        name: name.to_owned(),
        default_model: file.default_model.0,
        origin: format!("{PROVIDERS}/{name}.yaml"),
        kind: ProviderKind::Http(HttpProvider {
            speaks: file.kind,
            base_url: file.base_url.0,
            key,
            headers: file.headers.into_vec(),
            idle_timeout: file.idle_timeout_seconds.map(|seconds| seconds.0),
            max_tokens: file.max_tokens.map(|tokens| tokens.0),
            context_windows: windows(file.context_window, file.context_windows),
        }),
    };
    Ok((provider, warning))
}

/// The key in a variable.
pub(super) fn from_variable(variable: String, environment: &Environment) -> Result<Key, String> {
    let Some(key) = environment.get(&variable) else {
        return Ok(Key::Missing { variable });
    };
    check_key(key).map_err(|error| format!("the variable {variable}: {error}"))?;
    let key = openvaala_core::dialect::http::Secret::new(key);
    Ok(Key::FromVariable { variable, key })
}

/// The name that a file gives to what is in it; `what` that is stands in the errors.
pub(super) fn name_of<'a>(path: &'a Path, what: &str) -> Result<&'a str, ConfigFault> {
    let whole = |message: String| ConfigFault::whole(path.display().to_string(), message);
    if path.extension() != Some(OsStr::new("yaml")) {
        return Err(whole(format!(
            "the name of {what}'s file ends in .yaml: rename it"
        )));
    }
    let name = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    check_letters(name, what).map_err(|message| whole(format!("{message}: rename the file")))?;
    Ok(name)
}

/// Why a text can be no name of a provider or an agent.
fn check_letters(name: &str, what: &str) -> Result<(), String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    if (1..=64).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with('.') {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    Err(format!(
        "{shown:?} is no name of {what}: expected 1 to 64 of a-z A-Z 0-9 _ - ."
    ))
}

/// Why a text can be no provider's name.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name == DEMO {
        return Err(format!("the name {DEMO:?} belongs to the built-in script"));
    }
    check_letters(name, "a provider")
}

/// Reads one value of a YAML text; a file with nothing in it reads as an empty mapping.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigFault> {
    check_depth(path, text)?;
    let is_blank = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---"
    };
    let yaml = if text.lines().all(is_blank) {
        "{}"
    } else {
        text
    };
    serde_yaml::from_str(yaml).map_err(|error| ConfigFault::yaml(path, text, &error))
}

/// Refuses what would take the YAML reader long: it looks back over all open brackets at each token.
fn check_depth(path: &Path, text: &str) -> Result<(), ConfigFault> {
    let mut depth = 0_usize;
    for (index, line) in text.lines().enumerate() {
        let indicators = line
            .split_whitespace()
            .take_while(|word| matches!(*word, "-" | "?"));
        let mut deepest = indicators.count();
        for byte in line.bytes() {
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => continue,
            }
            deepest = deepest.max(depth);
        }
        if deepest > MAX_DEPTH {
            let mut fault = ConfigFault::whole(
                path.display().to_string(),
                format!("it is nested deeper than {MAX_DEPTH} levels"),
            );
            fault.place = Some((index + 1, 1));
            return Err(fault);
        }
    }
    Ok(())
}

/// The text of a file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, ConfigFault> {
    let fault = |message: String| ConfigFault::whole(path.display().to_string(), message);
    let failed = |error: io::Error| fault(format!("it cannot be read: {error}"));
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    // Opening a pipe would wait for somebody who writes to it.
    if !metadata.is_file() {
        return Err(fault("it is no plain file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(fault(format!("it is larger than {} MiB", MAX_FILE >> 20)));
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|error| fault(format!("it is no UTF-8: {}", error.utf8_error())))
}
