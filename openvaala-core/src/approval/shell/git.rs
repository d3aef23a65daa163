//! Which calls of git only read.

use super::harmless::{has_option, texts};
use super::word::Word;

/// Subcommands that only read, whatever their arguments are but for [`WRITES`].
const READS: &[&str] = &[
    "blame",
    "cat-file",
    "check-ignore",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "version",
    "whatchanged",
];

/// Options by which these write or run something.
const WRITES: &[&str] = &[
    "-O",
    "--output",
    "--ext-diff",
    "--textconv",
    "--filters",
    "--open-files-in-pager",
    "--exec",
    "--upload-pack",
    "--help",
];

/// Whether a call of git only reads.
///
/// One in another folder (`-C`) is not known to: what looks like a folder of files may be a repository, with a configuration that
/// runs commands.
pub(super) fn is_harmless(arguments: &[Word]) -> bool {
    let Some(arguments) = texts(arguments) else {
        return false;
    };
    let mut rest = arguments.as_slice();
    loop {
        rest = match rest {
            ["--no-pager" | "-P" | "--no-optional-locks", rest @ ..] => rest,
            ["--version"] => return true,
            [subcommand, rest @ ..] => return reads(subcommand, rest),
            [] => return false,
        }
    }
}

fn reads(subcommand: &str, rest: &[&str]) -> bool {
    if has_option(rest, WRITES) {
        return false;
    }
    let lists = |options: &[&str]| rest.iter().all(|word| options.contains(word));
    match (subcommand, rest) {
        (name, _) if READS.contains(&name) => true,
        ("branch", _) => lists(&[
            "-a",
            "-r",
            "-v",
            "-vv",
            "--all",
            "--remotes",
            "--list",
            "--show-current",
            "--verbose",
        ]),
        ("tag", [] | ["-l" | "--list", ..]) => {
            !has_option(rest, &["-d", "-a", "-s", "-f", "-m", "--delete"])
        }
        ("remote", [] | ["-v" | "--verbose"] | ["get-url", ..]) => true,
        ("stash", ["list" | "show", ..])
        | ("worktree", ["list", ..])
        | ("notes", ["list" | "show", ..]) => true,
        ("reflog", [] | ["show", ..]) => true,
        (
            "config",
            [
                "--get" | "--get-all" | "--list" | "-l" | "list" | "get",
                rest @ ..,
            ],
        ) => !rest.iter().any(|word| {
            word.starts_with('-')
                && !matches!(*word, "--global" | "--local" | "--system" | "--show-origin")
        }),
        ("submodule", ["status", ..]) => true,
        _ => false,
    }
}
