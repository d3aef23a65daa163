//! The commands that are known to only read.

use super::git;
use super::word::Word;

/// Commands that change nothing, whatever their arguments are.
const ANY: &[&str] = &[
    ":",
    "[",
    "arch",
    "b2sum",
    "basename",
    "bzcat",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "comm",
    "continue",
    "break",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "exit",
    "expand",
    "expr",
    "factor",
    "false",
    "fgrep",
    "fmt",
    "fold",
    "free",
    "getconf",
    "grep",
    "groups",
    "head",
    "id",
    "join",
    "jq",
    "locale",
    "logname",
    "ls",
    "lsblk",
    "lscpu",
    "md5sum",
    "nl",
    "nproc",
    "numfmt",
    "od",
    "paste",
    "pgrep",
    "printenv",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "return",
    "rev",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "shift",
    "sleep",
    "stat",
    "sum",
    "tac",
    "tail",
    "test",
    "tr",
    "true",
    "tsort",
    "tty",
    "type",
    "uname",
    "unexpand",
    "uptime",
    "users",
    "wc",
    "which",
    "who",
    "whoami",
    "xzcat",
    "zcat",
];

/// Commands that change nothing but by these options.
const BUT_FOR: &[(&str, &[&str])] = &[
    ("base64", &["-o", "--output"]),
    ("column", &[]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("file", &["-C", "--compile"]),
    ("hexdump", &[]),
    ("printf", &["-v"]),
    ("rg", &["-z", "--pre", "--hostname-bin", "--search-zip"]),
    (
        "sort",
        &[
            "-o",
            "-T",
            "--output",
            "--compress-program",
            "--temporary-directory",
        ],
    ),
    ("tree", &["-o", "-R", "--output"]),
];

/// Readers of object files: they load a library that is named to them, and read options from `@file`.
const BINUTILS: &[&str] = &["nm", "objdump", "readelf", "size", "strings"];

/// Programs that may be asked for their version.
///
/// Those are not here that run or fetch what the folder names to tell it, as `cargo`, `go` and `yarn` do.
const VERSIONED: &[&str] = &[
    "bun", "clang", "cmake", "deno", "docker", "gcc", "java", "make", "node", "perl", "php", "pip",
    "pip3", "python", "python3", "ruby", "uv",
];

/// Whether a command of that name only reads.
pub(super) fn is_harmless(name: &str, arguments: &[Word]) -> bool {
    // Only the system's own programs are what their names say.
    let name = name
        .strip_prefix("/usr/bin/")
        .or_else(|| name.strip_prefix("/bin/"))
        .unwrap_or(name);
    if matches!(name, "test" | "[") {
        // With it a subscript is calculated, which may run commands.
        return texts(arguments)
            .is_some_and(|texts| !texts.iter().any(|text| matches!(*text, "-v" | "-R")))
            || !arguments.iter().any(|word| word.may_be_option());
    }
    if ANY.contains(&name) {
        return true;
    }
    if let Some((_, options)) = BUT_FOR.iter().find(|(known, _)| *known == name) {
        let sets = name == "printf" && !has_plain_format(arguments);
        return !sets && (options.is_empty() || without(arguments, options));
    }
    match name {
        name if BINUTILS.contains(&name) => texts(arguments).is_some_and(|texts| {
            !has_option(&texts, &["--plugin"]) && !texts.iter().any(|text| text.starts_with('@'))
        }),
        "git" => git::is_harmless(arguments),
        "find" => finds_only(arguments),
        "sed" => texts(arguments).is_some_and(|arguments| sed(&arguments)),
        "uniq" => uniq(arguments),
        "date" => texts(arguments).is_some_and(|arguments| date(&arguments)),
        "hostname" => arguments.is_empty(),
        name if VERSIONED.contains(&name) => {
            matches!(texts(arguments).as_deref(), Some(["--version" | "-V"]))
        }
        _ => false,
    }
}

/// The words, if all of them are known.
pub(super) fn texts(words: &[Word]) -> Option<Vec<&str>> {
    words.iter().map(|word| word.text.as_deref()).collect()
}

/// Whether none of the words is, or may be, one of the options.
fn without(words: &[Word], options: &[&str]) -> bool {
    words.iter().all(|word| match word.text.as_deref() {
        Some(text) => !has_option(&[text], options),
        None => !word.may_be_option(),
    })
}

/// Whether a word may be read as one of the options: long ones may be cut short, short ones stand together.
pub(super) fn has_option(words: &[&str], options: &[&str]) -> bool {
    words.iter().any(|word| {
        options.iter().any(
            |option| match (word.strip_prefix("--"), option.strip_prefix("--")) {
                (Some(word), Some(option)) => {
                    let name = word.split('=').next().unwrap_or(word);
                    !name.is_empty() && option.starts_with(name)
                }
                (None, None) => {
                    let short = option.trim_start_matches('-');
                    word.strip_prefix('-')
                        .is_some_and(|word| word.contains(short))
                }
                _ => false,
            },
        )
    })
}

/// Whether a format of `printf` is known and sets no variable, as `%n` does.
fn has_plain_format(arguments: &[Word]) -> bool {
    let Some(format) = arguments
        .iter()
        .find(|word| !matches!(word.text.as_deref(), Some("--")))
    else {
        return true;
    };
    let Some(format) = format.text.as_deref() else {
        return false;
    };
    // `\\045` is a percent sign as well.
    let has_codes = format.contains("\\x") || format.contains("\\u") || format.contains("\\U");
    let has_octal = format
        .split('\\')
        .skip(1)
        .any(|rest| rest.starts_with(|char: char| char.is_ascii_digit()));
    let text = format.replace("%%", "");
    let sets = text.split('%').skip(1).any(|rest| {
        let rest = rest.trim_start_matches(|char: char| !char.is_ascii_alphabetic());
        rest.trim_start_matches(['h', 'l', 'q', 'j', 'z', 't', 'L'])
            .starts_with('n')
    });
    !sets && !has_codes && !has_octal
}

/// Whether a search for files does nothing with what it finds.
pub(super) fn finds_only(arguments: &[Word]) -> bool {
    let acts = [
        "-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls",
    ];
    arguments.iter().all(|word| match word.text.as_deref() {
        Some(text) => !acts.contains(&text),
        // A pattern of files in the working directory may be one of those.
        None => !word.may_be_option(),
    })
}

/// Scripts of sed that print or replace, and nothing else.
fn sed(arguments: &[&str]) -> bool {
    let mut script = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "-rn" | "--quiet"
            | "--silent" | "--regexp-extended" => {}
            "-e" => {
                let Some(given) = words.next() else {
                    return false;
                };
                if !is_plain_script(given) {
                    return false;
                }
                script = Some(given);
            }
            word if word.starts_with('-') && word.len() > 1 => return false,
            word if script.is_none() => {
                if !is_plain_script(word) {
                    return false;
                }
                script = Some(words.as_slice().first().unwrap_or(&""));
            }
            _ => {}
        }
    }
    script.is_some()
}

fn is_plain_script(script: &str) -> bool {
    let rest =
        script.trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, ',' | '$'));
    if matches!(rest, "p" | "d" | "q" | "=") {
        return true;
    }
    let Some(rest) = rest.strip_prefix('s') else {
        return false;
    };
    let mut chars = rest.chars();
    let Some(border) = chars
        .next()
        .filter(|char| matches!(char, '/' | '|' | '#' | ',' | ':' | '@'))
    else {
        return false;
    };
    let mut borders = 0;
    while borders < 2 {
        match chars.next() {
            Some('\\') => {
                if chars.next().is_none() {
                    return false;
                }
            }
            // A border in brackets is none.
            Some('[' | '\n') | None => return false,
            Some(char) if char == border => borders += 1,
            Some(_) => {}
        }
    }
    chars.all(|flag| flag.is_ascii_digit() || matches!(flag, 'g' | 'p' | 'i' | 'I'))
}

/// With two files it writes the second.
fn uniq(arguments: &[Word]) -> bool {
    let Some(arguments) = texts(arguments) else {
        return false;
    };
    let is_option = |word: &&&str| word.starts_with('-') && word.len() > 1;
    // Options whose value stands apart are not told from files.
    arguments.iter().filter(|word| !is_option(word)).count() <= 1 && !arguments.contains(&"--")
}

/// With an operand that is no format it sets the clock.
fn date(arguments: &[&str]) -> bool {
    match arguments {
        [] => true,
        ["-d" | "--date" | "-r" | "--reference", _, rest @ ..] => date(rest),
        ["-u" | "--utc" | "--universal" | "-R", rest @ ..] => date(rest),
        [word, rest @ ..] => {
            let is_form = ["+", "-I", "--iso-8601", "--rfc-", "--date=", "--reference="];
            is_form.iter().any(|form| word.starts_with(form)) && date(rest)
        }
    }
}
