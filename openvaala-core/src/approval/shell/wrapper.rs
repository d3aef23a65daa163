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
    /// Options that take none; short ones may stand together.
    flags: &'static [&'static str],
    /// Words before the command, such as a time.
    operands: usize,
    /// Whether it does nothing but run the command.
    is_harmless: bool,
}

const fn wrapper(
    name: &'static str,
    with_value: &'static [&'static str],
    flags: &'static [&'static str],
    operands: usize,
    is_harmless: bool,
) -> Wrapper {
    Wrapper {
        name,
        with_value,
        flags,
        operands,
        is_harmless,
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("nice", &["-n", "--adjustment"], &[], 0, true),
    wrapper(
        "ionice",
        &["-c", "-n", "--class", "--classdata"],
        &["-t", "--ignore"],
        0,
        false,
    ),
    wrapper(
        "timeout",
        &["-s", "-k", "--signal", "--kill-after"],
        &["-v", "--verbose", "--foreground", "--preserve-status"],
        1,
        true,
    ),
    wrapper("time", &[], &["-p"], 0, true),
    wrapper(
        "stdbuf",
        &["-i", "-o", "-e", "--input", "--output", "--error"],
        &[],
        0,
        true,
    ),
    wrapper(
        "setsid",
        &[],
        &["-c", "-f", "-w", "--ctty", "--fork", "--wait"],
        0,
        true,
    ),
    wrapper("command", &[], &["-p"], 0, true),
    wrapper("builtin", &[], &[], 0, true),
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
            "--max-procs",
            "--delimiter",
            "--max-chars",
        ],
        &[
            "-0",
            "-r",
            "-t",
            "-x",
            "--null",
            "--no-run-if-empty",
            "--verbose",
            "--exit",
        ],
        0,
        true,
    ),
    wrapper("nohup", &[], &[], 0, false),
    wrapper("exec", &["-a"], &["-c", "-l"], 0, false),
    wrapper(
        "sudo",
        &[
            "-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-D", "-R", "--user", "--group",
            "--host", "--prompt", "--chdir",
        ],
        &[
            "-A",
            "-b",
            "-E",
            "-H",
            "-i",
            "-k",
            "-n",
            "-P",
            "-S",
            "-s",
            "--askpass",
            "--background",
            "--preserve-env",
            "--set-home",
            "--login",
            "--non-interactive",
            "--stdin",
            "--shell",
        ],
        0,
        false,
    ),
    wrapper("doas", &["-u", "-C"], &["-n", "-s"], 0, false),
    wrapper(
        "chroot",
        &["--userspec", "--groups"],
        &["--skip-chdir"],
        1,
        false,
    ),
    wrapper(
        "flock",
        &["-w", "-E", "--timeout"],
        &[
            "-s",
            "-x",
            "-e",
            "-n",
            "-o",
            "--shared",
            "--exclusive",
            "--nonblock",
            "--close",
        ],
        1,
        false,
    ),
    wrapper(
        "strace",
        &[
            "-e", "-o", "-p", "-s", "-u", "-E", "-P", "-a", "-b", "-I", "-O", "-S", "-X",
        ],
        &[
            "-c", "-C", "-d", "-f", "-i", "-q", "-r", "-t", "-T", "-v", "-x", "-y",
        ],
        0,
        false,
    ),
    wrapper(
        "watch",
        &["-n", "--interval"],
        &["-b", "-d", "-e", "-g", "-t", "-x"],
        0,
        false,
    ),
    wrapper("parallel", &["-j", "--jobs"], &["-k", "-0"], 0, false),
    wrapper("coproc", &[], &[], 0, false),
    wrapper("busybox", &[], &[], 0, false),
];

/// Shells that read a line as it is read here.
const PLAIN_SHELLS: &[&str] = &["ash", "bash", "dash", "rbash", "sh"];

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
        name if SHELLS.contains(&name) => shell(name, arguments),
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
    let Some(at) = first_operand(arguments, wrapper) else {
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
    let is_harmless = wrapper.is_harmless;
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

/// The texts that xargs may put something in the place of.
fn replaced(options: &[Word]) -> Vec<&str> {
    let mut texts = Vec::new();
    let mut words = options.iter().filter_map(|word| word.text.as_deref());
    while let Some(word) = words.next() {
        // It may also be a letter in the value of another option: then more is taken for replaced than is.
        match word.split_once('I') {
            Some((_, "")) => texts.extend(words.next()),
            Some((_, text)) => texts.push(text),
            None => {}
        }
    }
    texts
}

/// Where the first word is that is no option; `None` if that is not known.
fn first_operand(arguments: &[Word], wrapper: &Wrapper) -> Option<usize> {
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
        at += if takes_next(text, wrapper)? { 2 } else { 1 };
    }
    Some(arguments.len())
}

/// Whether an option takes the next word; `None` if it is not known, or if one is cut short.
fn takes_next(text: &str, wrapper: &Wrapper) -> Option<bool> {
    if text.starts_with("--") {
        let name = text.split('=').next().unwrap_or(text);
        let takes_value = wrapper.with_value.contains(&name);
        let is_known = takes_value || wrapper.flags.contains(&name);
        return is_known.then_some(takes_value && name == text);
    }
    // `nice -10`.
    if wrapper.name == "nice" && text[1..].bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(false);
    }
    let mut letters = text[1..].chars();
    while let Some(letter) = letters.next() {
        let is_it =
            |option: &&&str| option.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4]));
        if wrapper.with_value.iter().any(|option| is_it(&option)) {
            return Some(letters.as_str().is_empty());
        }
        if !wrapper.flags.iter().any(|option| is_it(&option)) {
            return None;
        }
    }
    Some(false)
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
            Some("-0" | "--null") => at += 1,
            // Where programs are looked for is another question then.
            Some("-" | "-i" | "--ignore-environment") => {
                is_harmless = false;
                at += 1;
            }
            Some("-u" | "--unset" | "-C" | "--chdir") => {
                is_harmless = false;
                at += 2;
            }
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
    // In the folder of each file a program may obey what stands there.
    let in_folders = matches!(arguments[at].text.as_deref(), Some("-execdir" | "-okdir"));
    let is_sound = !words.is_empty()
        && !in_folders
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

fn shell(name: &str, arguments: &[Word]) -> Inner {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.text.as_deref() else {
            return unknown("which line it runs is not known before it runs");
        };
        let is_run = text.starts_with('-') && !text.starts_with("--") && text.contains('c');
        let is_plain = |text: &str| text[1..].chars().all(|char| "celux".contains(char));
        if is_run {
            let line = arguments.get(at + 1).and_then(|word| word.text.clone());
            return match line {
                Some(line) => Inner {
                    line: Some(line),
                    is_harmless: is_plain(text) && PLAIN_SHELLS.contains(&name),
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
