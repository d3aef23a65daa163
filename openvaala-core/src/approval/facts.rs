//! What is known of a tool call before it runs.

use openvaala_protocol::id::ExecutorId;
use serde_json::Value;

use super::path::absolute;
#[cfg(feature = "tools")]
use super::path::is_within;
#[cfg(feature = "tools")]
use super::shell::{Line, Word};

/// The tool that runs shell commands.
#[cfg(feature = "tools")]
const SHELL: &str = "bash";
/// The tool that changes files.
#[cfg(feature = "tools")]
const PATCH: &str = "apply_patch";
/// The tool that ends commands, which only the session itself has started.
const KILL: &str = "bash_kill";

/// A tool call that is to be judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) tool: &'a str,
    /// Whether the tool says that it changes nothing.
    pub(crate) read_only: bool,
    pub(crate) executor: Option<&'a ExecutorId>,
    /// The work location on that executor.
    pub(crate) folder: Option<&'a str>,
    /// As the tool gets them.
    pub(crate) arguments: &'a str,
}

/// What a call would do, as far as its arguments tell.
#[derive(Debug)]
pub(super) struct Facts {
    /// The files that it names, absolute.
    pub(super) paths: Vec<String>,
    /// Whether it may use files that are not among these.
    pub(super) other_paths: bool,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// It changes nothing.
    Reads,
    /// It changes files; whether all of them lie in the work location and are the user's own.
    #[cfg(feature = "tools")]
    Edits { inside: bool },
    /// It runs a shell command; whether it begins in the work location, and whether it is known to stay there.
    #[cfg(feature = "tools")]
    Shell {
        text: String,
        line: Line,
        begins_inside: bool,
        stays_inside: bool,
    },
    /// Not known.
    Other,
}

impl Facts {
    pub(super) fn of(call: &Asked<'_>) -> Self {
        let arguments: Value = serde_json::from_str(call.arguments).unwrap_or_default();
        let folder = call.folder.unwrap_or("/");
        match call.tool {
            #[cfg(feature = "tools")]
            SHELL => shell(&arguments, folder),
            #[cfg(feature = "tools")]
            PATCH => patch(call.arguments, &arguments, folder),
            tool => {
                let path = arguments["path"].as_str();
                let reads = call.read_only || tool == KILL;
                Self {
                    paths: path
                        .map(|path| absolute(folder, path))
                        .into_iter()
                        .collect(),
                    other_paths: false,
                    what: if reads { What::Reads } else { What::Other },
                }
            }
        }
    }

    /// Whether it changes files of the work location, and nothing else.
    #[cfg(feature = "tools")]
    pub(super) const fn is_own_edit(&self) -> bool {
        matches!(self.what, What::Edits { inside: true })
    }

    #[cfg(not(feature = "tools"))]
    pub(super) const fn is_own_edit(&self) -> bool {
        false
    }

    /// Why it may do more than read; `None` if it does not.
    pub(super) fn harm(&self, tool: &str) -> Option<String> {
        match &self.what {
            What::Reads => None,
            #[cfg(feature = "tools")]
            What::Edits { .. } => Some("it changes files".to_owned()),
            #[cfg(feature = "tools")]
            What::Shell { line, .. } => line.harm(),
            What::Other => Some(format!("{tool} is not known to only read")),
        }
    }
}

/// Files that programs obey by themselves, and folders of such files: git, editors, shells, and agents.
#[cfg(feature = "tools")]
const GUARDED: &[&str] = &[
    ".agents",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".envrc",
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".husky",
    ".idea",
    ".mcp.json",
    ".profile",
    ".ssh",
    ".vscode",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "agents.md",
    "approvals.yaml",
    "openvaala.yaml",
];

/// Whether a change of a file may have others do more than was asked for.
#[cfg(feature = "tools")]
fn is_guarded(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    // Each repository has a file HEAD, also one without a folder `.git` around it.
    path.ends_with("/head") || path.split('/').any(|part| GUARDED.contains(&part))
}

#[cfg(feature = "tools")]
fn patch(text: &str, arguments: &Value, folder: &str) -> Facts {
    use openvaala_executor::patch::{Action, Patch, unwrap};

    // As the tool itself reads them.
    let text = match arguments["patch"].as_str() {
        Some(patch) => patch.to_owned(),
        None => unwrap(text).into_owned(),
    };
    let Ok(patch) = Patch::parse(&text) else {
        return Facts {
            paths: Vec::new(),
            other_paths: true,
            what: What::Edits { inside: false },
        };
    };
    let moved = |action: &Action| match action {
        Action::Update(update) => update.move_to.clone(),
        _ => None,
    };
    let named = patch.operations.iter();
    let named = named.flat_map(|operation| {
        std::iter::once(operation.path.clone()).chain(moved(&operation.action))
    });
    let paths: Vec<String> = named.map(|path| absolute(folder, &path)).collect();
    let is_own = |path: &String| {
        let rest = path.strip_prefix(folder.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.starts_with('/') && !is_guarded(rest))
    };
    let inside = paths.iter().all(is_own);
    Facts {
        paths,
        other_paths: false,
        what: What::Edits { inside },
    }
}

#[cfg(feature = "tools")]
fn shell(arguments: &Value, folder: &str) -> Facts {
    let text = arguments["command"]
        .as_str()
        .unwrap_or_default()
        .trim()
        .to_owned();
    let mut line = Line::read(&text);
    let location = folder;
    let folder = arguments["workdir"]
        .as_str()
        .map_or_else(|| folder.to_owned(), |workdir| absolute(folder, workdir));
    let location = absolute("/", location);
    let moves = !line.folders.is_empty();
    if folder != location {
        line.folders.push(Some(folder.clone()));
    }
    // Each step from the head of the work location: so no number of them leads out of it.
    let is_inside = |step: &str| {
        let place = absolute(&location, step);
        place == location || is_within(&place, &location)
    };
    let begins_inside = is_inside(&folder);
    let stays_inside = line
        .folders
        .iter()
        .all(|step| step.as_deref().is_some_and(is_inside));
    let words = || {
        let arguments = line
            .commands
            .iter()
            .flat_map(|command| command.words.iter().skip(1));
        arguments.chain(&line.writes).chain(&line.reads)
    };
    let paths = words()
        .filter_map(|word| word.text.as_deref())
        // The value of an option may be a path as well.
        .flat_map(|text| [Some(text), text.split_once('=').map(|(_, value)| value)])
        .flatten()
        .map(|path| absolute(&folder, path))
        .collect();
    let is_unknown = |word: &Word| word.text.is_none();
    Facts {
        paths,
        other_paths: moves || line.opaque.is_some() || words().any(is_unknown),
        what: What::Shell {
            text,
            line,
            begins_inside,
            stays_inside,
        },
    }
}
