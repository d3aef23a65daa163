//! Documents that must say what is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use openvaala_tests::binary::workspace;
use pretty_assertions::assert_eq;

/// The two commands of the first screen.
const COMMANDS: [&str; 2] = [
    r#"cargo run --release -- exec "look around this folder and tell me what it is""#,
    "tests/run",
];

fn read(path: &str) -> String {
    let path = workspace().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The code blocks of a Markdown text: language and text.
fn code_blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, code))) => {
                code.push_str(line);
                code.push('\n');
            }
            (None, None) => {}
        }
    }
    assert_eq!(open, None, "a code block is not closed");
    blocks
}

/// The commands in the code blocks of a Markdown text.
fn commands(text: &str) -> Vec<String> {
    let lines = code_blocks(text)
        .into_iter()
        .flat_map(|(_, code)| code.lines().map(str::to_owned).collect::<Vec<_>>());
    let is_command = |line: &String| {
        ["cargo ", "openvaala ", "tests/", "./", "$ "]
            .iter()
            .any(|begin| line.starts_with(begin))
    };
    lines.filter(is_command).collect()
}

#[test]
fn the_first_screen_of_the_readme_has_the_two_commands_that_exist() {
    let readme = read("README.md");
    let (first_screen, _) = readme.split_once("\n## ").expect("there are headings");
    assert_eq!(commands(first_screen), COMMANDS);
    let place = |command: &str| {
        readme
            .lines()
            .position(|line| line.contains(command))
            .expect("the command is there")
    };
    for command in COMMANDS {
        assert!(place(command) < 60, "{command} is not on the first screen");
    }
    assert!(is_executable(&workspace().join("tests/run")));
    // `cargo run` without a package runs the command line.
    assert!(read("Cargo.toml").contains(r#"default-members = ["openvaala-cli"]"#));
}

#[test]
fn the_chinese_readme_has_the_same_code() {
    let (english, chinese) = (read("README.md"), read("README.zh-CN.md"));
    assert_eq!(code_blocks(&chinese), code_blocks(&english));
    let headings = |text: &str| text.lines().filter(|line| line.starts_with('#')).count();
    assert_eq!(headings(&chinese), headings(&english));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for file in project_files()
        .iter()
        .filter(|path| has_extension(path, &["md"]) && !is_template(path))
    {
        let text = fs::read_to_string(file).unwrap();
        for target in link_targets(&text) {
            let target = target.split('#').next().unwrap_or_default();
            let outside =
                target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            if !outside && !file.parent().unwrap().join(target).exists() {
                broken.push(format!("{}: {target}", file.display()));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

/// Whether a text is compiled into a program, which writes it elsewhere.
fn is_template(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "src")
}

fn link_targets(text: &str) -> Vec<String> {
    let code: BTreeSet<String> = code_blocks(text)
        .into_iter()
        .map(|(_, code)| code)
        .collect();
    let mut prose = text.to_owned();
    for block in code.iter().filter(|block| !block.is_empty()) {
        prose = prose.replace(block.as_str(), "");
    }
    let pieces = prose.split("](").skip(1);
    pieces
        .filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
        .collect()
}

#[test]
fn every_case_that_a_test_proves_is_in_the_list_and_the_other_way_round() {
    let mut proved: BTreeMap<String, String> = BTreeMap::new();
    for file in project_files()
        .iter()
        .filter(|path| has_extension(path, &["rs"]))
    {
        let text = fs::read_to_string(file).unwrap();
        for name in test_names(&text) {
            for id in case_ids(&name) {
                proved
                    .entry(id)
                    .or_insert_with(|| format!("{}: {name}", file.display()));
            }
        }
    }
    let list = read("tests/cases.md");
    let rows = list
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let listed: BTreeSet<String> = rows.map(|(id, _)| id.to_owned()).collect();
    let missing: BTreeMap<_, _> = proved
        .iter()
        .filter(|(id, _)| !listed.contains(*id))
        .collect();
    assert_eq!(missing, BTreeMap::new(), "not in tests/cases.md");
    let unproved: Vec<_> = listed
        .iter()
        .filter(|id| !proved.contains_key(*id))
        .collect();
    assert_eq!(
        unproved,
        Vec::<&String>::new(),
        "in tests/cases.md, but in the name of no test"
    );
}

/// The functions of a file whose name begins with a case id.
fn test_names(text: &str) -> Vec<String> {
    let after = text.split("fn ").skip(1);
    let names = after.map(|rest| {
        rest.chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect::<String>()
    });
    names.filter(|name| !case_ids(name).is_empty()).collect()
}

/// The ids at the beginning of a name: `r_05_x_11_what_it_proves` has two.
fn case_ids(name: &str) -> Vec<String> {
    let words: Vec<&str> = name.split('_').collect();
    let is_id = |pair: &[&str]| {
        let digits = if pair[0] == "u" { 3 } else { 2 };
        "rxpslmu".contains(pair[0])
            && pair[0].len() == 1
            && pair[1].len() >= digits
            && pair[1].bytes().all(|byte| byte.is_ascii_digit())
    };
    words
        .chunks_exact(2)
        .take_while(|pair| is_id(pair))
        .map(|pair| pair.join("_"))
        .collect()
}

#[test]
fn case_ids_are_read_from_the_beginning_of_a_name() {
    assert_eq!(case_ids("r_05_x_11_a_torn_line_is_cut"), ["r_05", "x_11"]);
    assert_eq!(case_ids("u_019_an_open_call"), ["u_019"]);
    assert_eq!(case_ids("s_134_slow_heads"), ["s_134"]);
    assert_eq!(case_ids("a_01_b"), [""; 0]);
    assert_eq!(case_ids("reads_r_05"), [""; 0]);
}

#[test]
fn no_file_names_a_place_of_the_machine_it_was_written_on() {
    let mut places = vec![workspace().to_owned()];
    let above = workspace()
        .parent()
        .filter(|folder| !EVERYWHERE.iter().any(|known| *folder == Path::new(known)));
    // What lies beside the workspace, unless it lies in a folder that every system has.
    let beside = above.and_then(|folder| fs::read_dir(folder).ok());
    places.extend(
        beside
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path()),
    );
    let places: Vec<&str> = places.iter().filter_map(|place| place.to_str()).collect();
    let mut found = Vec::new();
    for file in project_files() {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        for (number, line) in (1..).zip(text.lines()) {
            if places.iter().any(|place| names_place(line, place)) {
                found.push(format!("{}:{number}: {line}", file.display()));
            }
        }
    }
    assert_eq!(found, [""; 0]);
}

/// Folders that every system has.
const EVERYWHERE: [&str; 12] = [
    "/",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/srv",
    "/tmp",
    "/usr/local",
    "/usr/src",
    "/var",
    "/var/tmp",
];

/// Whether a line has that path, and not just a longer one that ends like it.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + place.len()..]);
        let is_name =
            |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "._-~}".contains(c));
        !is_name(before.chars().next_back()) && !is_name(after.chars().next())
    })
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .is_some_and(|extension| extensions.iter().any(|known| extension == *known))
}

/// All files of the project: those that git tracks or would track.
fn project_files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(workspace())
        .output();
    let files = match listed {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8(output.stdout).unwrap();
            names
                .split_terminator('\0')
                .map(|name| workspace().join(name))
                .collect()
        }
        // An unpacked archive has no git.
        _ => walk(workspace()),
    };
    let files: Vec<PathBuf> = files.into_iter().filter(|path| path.is_file()).collect();
    assert!(files.len() > 50, "only {} files", files.len());
    files
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "node_modules", ".git", ".venv"].contains(&name.as_str()) {
            files.extend(walk(&path));
        } else if path.is_file() {
            files.push(path);
        }
    }
    files
}
