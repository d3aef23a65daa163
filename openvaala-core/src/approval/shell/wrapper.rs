//! Commands that run other commands.

use super::variable;
use super::word::Word;

/// What a command runs in its turn.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Inner {
    /// Another command.
    pub(super) words: Option<Vec<Word>>,
    /// A line of the shell.
    pub(super) line: Option<String>,
    /// Whether it does nothing else.
    pub(super) is_harmless: bool,
    /// Why it is not known what it runs.
    pub(super) opaque: Option<String>,
}

/// How the options of a command are told from what it runs.
struct Wrapper {
    name: &'static str,
    /// Options that take the next word.
    with_value: &'static [&'static str],
    /// Words before the command, such as a time.
    operands: usize,
    /// Whether it does nothing but run the command.
    is_harmless: bool,
}

const fn wrapper(
    name: &'static str,
    with_value: &'static [&'static str],
    operands: usize,
    is_harmless: bool,
) -> Wrapper {
    Wrapper {
        name,
        with_value,
        operands,
        is_harmless,
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("nice", &["-n", "--adjustment"], 0, true),
    wrapper(
        "ionice",
        &["-c", "-n", "-t", "--class", "--classdata"],
        0,
        false,
    ),
    wrapper(
        "timeout",
        &["-s", "-k", "--signal", "--kill-after"],
        1,
        true,
    ),
    wrapper("time", &[], 0, true),
    wrapper(
        "stdbuf",
        &["-i", "-o", "-e", "--input", "--output", "--error"],
        0,
        true,
    ),
    wrapper("setsid", &[], 0, true),
    wrapper("command", &[], 0, true),
    wrapper("builtin", &[], 0, true),
    wrapper(
        "xargs",
        &[
            "-n",
            "-L",
            "-P",
            "-d",
            "-s",
            "-E",
            "-I",
            "--max-args",
            "--max-lines",
            "--max-procs",
            "--delimiter",
            "--max-chars",
            "--replace",
        ],
        0,
        true,
    ),
    wrapper("nohup", &[], 0, false),
    wrapper("exec", &["-a"], 0, false),
    wrapper(
        "sudo",
        &[
            "-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-D", "-R", "--user", "--group",
            "--host", "--prompt", "--chdir",
        ],
        0,
        false,
    ),
    wrapper("doas", &["-u", "-C"], 0, false),
    wrapper("chroot", &["--userspec", "--groups"], 1, false),
    wrapper("flock", &["-w", "-E", "--timeout"], 1, false),
    wrapper(
        "strace",
        &[
            "-e", "-o", "-p", "-s", "-u", "-E", "-P", "-a", "-b", "-I", "-O", "-S", "-X",
        ],
        0,
        false,
    ),
    wrapper("watch", &["-n", "--interval"], 0, false),
    wrapper("parallel", &["-j", "--jobs"], 0, false),
    wrapper("coproc", &[], 0, false),
    wrapper("busybox", &[], 0, false),
];

/// Shells: they run a line with `-c`.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "rbash", "sh", "zsh"];

/// What a command runs in its turn; nothing if it runs none.
pub(super) fn runs(words: &[Word]) -> Inner {
    let Some((name, arguments)) = words.split_first() else {
        return Inner::default();
    };
    let Some(path) = name.text.as_deref() else {
        return Inner::default();
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut inner = match name {
        "env" => env(arguments),
        "find" => find(arguments),
        "eval" => eval(arguments),
        name if SHELLS.contains(&name) => shell(arguments),
        name => match WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
            Some(wrapper) => wrapped(wrapper, arguments),
            None => Inner::default(),
        },
    };
    // A program of that name in some folder need not be what the name says.
    inner.is_harmless &=
        !path.contains('/') || path.starts_with("/bin/") || path.starts_with("/usr/bin/");
    inner
}

fn unknown(why: &str) -> Inner {
    Inner {
        opaque: Some(why.to_owned()),
        ..Inner::default()
    }
}

fn wrapped(wrapper: &Wrapper, arguments: &[Word]) -> Inner {
    let name = wrapper.name;
    // `command -v name` asks where a command is.
    let asks = matches!(
        arguments.first().and_then(|word| word.text.as_deref()),
        Some("-v" | "-V")
    );
    if name == "command" && asks {
        return Inner {
            is_harmless: true,
            ..Inner::default()
        };
    }
    let Some(at) = first_operand(arguments, wrapper.with_value) else {
        return unknown("which command it runs is not known before it runs");
    };
    let options = arguments.get(..at).unwrap_or_default();
    let rest = arguments.get(at..).unwrap_or_default();
    let operands = wrapper.operands.min(rest.len());
    let (operands, rest) = rest.split_at(operands);
    // An unknown operand may be several words.
    if operands.iter().any(|word| word.text.is_none()) {
        return unknown("which command it runs is not known before it runs");
    }
    let mut rest = rest.to_vec();
    if name == "sudo" {
        while rest
            .first()
            .is_some_and(|word| is_assignment(word).is_some())
        {
            rest.remove(0);
        }
    }
    if name == "xargs" {
        if rest.is_empty() {
            rest.push(Word::exact("echo"));
        }
        for word in &mut rest {
            if replaced(options).iter().any(|text| word.raw.contains(text)) {
                *word = Word::unknown(&word.raw);
            }
        }
        rest.push(Word::unknown("…"));
    }
    let is_harmless = wrapper.is_harmless && has_known_options(name, options);
    if rest.is_empty() {
        return Inner::default();
    }
    let line = (name == "watch").then(|| joined(&rest)).flatten();
    Inner {
        words: line.is_none().then_some(rest),
        line,
        is_harmless,
        opaque: None,
    }
}

/// Whether the options of a command that runs another are known to have no effect of their own.
fn has_known_options(name: &str, options: &[Word]) -> bool {
    let known: &[&str] = match name {
        "time" => &["-p"],
        "xargs" => &[
            "-0",
            "-r",
            "-t",
            "-n",
            "-L",
            "-P",
            "-d",
            "-s",
            "-E",
            "-I",
            "--null",
            "--no-run-if-empty",
            "--max-args",
            "--max-lines",
            "--max-procs",
            "--delimiter",
        ],
        _ => return true,
    };
    options.iter().all(|word| {
        let text = word.text.as_deref().unwrap_or("-?");
        !text.starts_with('-') || known.iter().any(|known| text.starts_with(known))
    })
}

/// The texts that xargs puts something in the place of.
fn replaced(options: &[Word]) -> Vec<&str> {
    let mut texts = Vec::new();
    let mut words = options.iter().filter_map(|word| word.text.as_deref());
    while let Some(word) = words.next() {
        match word.strip_prefix("-I") {
            Some("") => texts.extend(words.next()),
            Some(text) => texts.push(text),
            None => {}
        }
    }
    texts
}

/// Where the first word is that is no option; `None` if that is not known.
fn first_operand(arguments: &[Word], with_value: &[&str]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.text.as_deref() else {
            return (!word.may_be_option()).then_some(at);
        };
        if text == "--" {
            return Some(at + 1);
        }
        if !text.starts_with('-') || text == "-" {
            return Some(at);
        }
        at += if with_value.contains(&text) { 2 } else { 1 };
    }
    Some(arguments.len())
}

/// The name of the variable that a word sets.
fn is_assignment(word: &Word) -> Option<&str> {
    let (name, _) = word.prefix.split_once('=')?;
    let is_name = |name: &str| {
        name.chars()
            .all(|char| char.is_alphanumeric() || char == '_')
    };
    (!name.is_empty() && is_name(name)).then_some(name)
}

fn env(arguments: &[Word]) -> Inner {
    let mut at = 0;
    let mut is_harmless = true;
    let mut opaque = None;
    while let Some(word) = arguments.get(at) {
        if let Some(name) = is_assignment(word) {
            if !variable::is_harmless(name) {
                opaque = Some(format!("it sets {name}, which other programs may obey"));
            }
            at += 1;
            continue;
        }
        match word.text.as_deref() {
            Some("-" | "-i" | "--ignore-environment" | "-0" | "--null") => at += 1,
            Some("-u" | "--unset" | "-C" | "--chdir") => at += 2,
            Some("--") => {
                at += 1;
                break;
            }
            Some(text) if text.starts_with('-') => {
                return unknown("it has an option of env that is not known here");
            }
            None if word.may_be_option() => {
                return unknown("which command it runs is not known before it runs");
            }
            _ => break,
        }
    }
    // After `--` there may be more variables.
    while let Some(name) = arguments.get(at).and_then(is_assignment) {
        is_harmless &= variable::is_harmless(name);
        at += 1;
    }
    let rest = arguments.get(at..).unwrap_or_default().to_vec();
    Inner {
        words: (!rest.is_empty()).then_some(rest),
        line: None,
        is_harmless,
        opaque,
    }
}

/// The commands of `-exec` and the like; what else it does stands with the commands that only read.
fn find(arguments: &[Word]) -> Inner {
    let runs = ["-exec", "-execdir", "-ok", "-okdir"];
    let is_run = |word: &Word| {
        word.text
            .as_deref()
            .is_some_and(|text| runs.contains(&text))
    };
    let Some(at) = arguments.iter().position(is_run) else {
        return Inner::default();
    };
    let is_end = |word: &Word| matches!(word.text.as_deref(), Some(";" | "+"));
    let rest = &arguments[at + 1..];
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    let words = rest[..end].iter().map(|word| {
        let is_file =
            word.raw.contains("{}") || word.text.as_deref().is_some_and(|text| text.contains("{}"));
        if is_file {
            Word::unknown(&word.raw)
        } else {
            word.clone()
        }
    });
    let words: Vec<Word> = words.collect();
    let others = rest.get(end + 1..).unwrap_or_default();
    let before = &arguments[..at];
    let is_sound = !words.is_empty()
        && end < rest.len()
        && !others.iter().any(is_run)
        && super::harmless::finds_only(before)
        && super::harmless::finds_only(others);
    Inner {
        words: (!words.is_empty()).then_some(words),
        line: None,
        is_harmless: is_sound,
        opaque: others
            .iter()
            .any(is_run)
            .then(|| "it runs more than one command on files".to_owned()),
    }
}

/// The text of several words with spaces between, if it is known.
fn joined(words: &[Word]) -> Option<String> {
    let texts: Option<Vec<&str>> = words.iter().map(|word| word.text.as_deref()).collect();
    texts.map(|texts| texts.join(" "))
}

fn eval(arguments: &[Word]) -> Inner {
    match joined(arguments) {
        Some(line) => Inner {
            line: Some(line),
            is_harmless: true,
            ..Inner::default()
        },
        None => unknown("which line it runs is not known before it runs"),
    }
}

fn shell(arguments: &[Word]) -> Inner {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.text.as_deref() else {
            return unknown("which line it runs is not known before it runs");
        };
        let is_run = text.starts_with('-') && !text.starts_with("--") && text.ends_with('c');
        let is_plain = |text: &str| text[1..].chars().all(|char| "celux".contains(char));
        if is_run {
            let line = arguments.get(at + 1).and_then(|word| word.text.clone());
            return match line {
                Some(line) => Inner {
                    line: Some(line),
                    is_harmless: is_plain(text),
                    ..Inner::default()
                },
                None => unknown("which line it runs is not known before it runs"),
            };
        }
        if text == "-o" || text == "+o" {
            at += 2;
        } else if text.starts_with(['-', '+']) {
            at += 1;
        } else {
            break;
        }
    }
    // A script, or lines from standard input.
    Inner::default()
}
