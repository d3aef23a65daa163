//! The corpus of patches in `tests/fixtures/patches`; its README tells the format.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;

use openvaala_executor::tool::ToolContext;
use pretty_assertions::Comparison;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::all::support::{Place, text};

/// A file system as text: path to kind, mode and content.
type Tree = BTreeMap<String, String>;

#[tokio::test]
async fn every_case_of_the_corpus_ends_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/patches");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    assert!(paths.len() >= 60, "only {} cases", paths.len());
    let mut failures = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let case = Case::parse(&name, &fs::read_to_string(&path).unwrap());
        let (actual, expected) = case.run().await;
        if actual != expected {
            failures.push(format!("{name}:\n{}", Comparison::new(&actual, &expected)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What a call said, and the files after it.
type End = (Result<String, String>, Tree);

struct Case {
    name: String,
    sections: Vec<Section>,
}

struct Section {
    /// `file a.txt mode=755`, split.
    words: Vec<String>,
    body: String,
}

impl Case {
    fn parse(name: &str, text: &str) -> Self {
        let mut sections: Vec<Section> = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some(header) = line.strip_prefix("=== ") {
                sections.push(Section {
                    words: header.split_whitespace().map(str::to_owned).collect(),
                    body: String::new(),
                });
            } else if let Some(section) = sections.last_mut() {
                section.body.push_str(line);
            } else {
                assert!(line.starts_with('#'), "{name}: {line:?} is in no section");
            }
        }
        Self {
            name: name.to_owned(),
            sections,
        }
    }

    fn section(&self, kind: &str) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| section.words[0] == kind)
    }

    async fn run(&self) -> (End, End) {
        let place = Place::open().await;
        let root = place.path().to_str().unwrap().to_owned();
        let plain_mode = mode_of_a_new_file();
        for section in &self.sections {
            section.make(place.path());
        }
        let mut tree = read_tree(place.path());
        for section in self
            .sections
            .iter()
            .filter(|section| section.words[0] == "after")
        {
            section.apply_to(&mut tree, plain_mode);
        }
        let filled = |text: &str| text.replace("{root}", &root);
        let expected = match (self.section("result"), self.section("error")) {
            (Some(section), None) => Ok(filled(section.body.trim_end())),
            (None, Some(section)) => Err(filled(section.body.trim_end())),
            _ => panic!("{}: one result or one error", self.name),
        };
        let arguments = match (self.section("patch"), self.section("arguments")) {
            (Some(section), None) => {
                let patch = String::from_utf8(section.bytes()).unwrap();
                json!({ "patch": filled(&patch) }).to_string()
            }
            (None, Some(section)) => filled(section.body.trim_end()),
            _ => panic!("{}: one patch or its arguments", self.name),
        };
        let context = ToolContext::unattended("call");
        let output = place.tool("apply_patch").call(context, &arguments).await;
        let said = output
            .map(|output| text(&output))
            .map_err(|error| error.to_string());
        ((said, read_tree(place.path())), (expected, tree))
    }
}

impl Section {
    /// The body, in a section marked `raw` without its line breaks and with escapes.
    fn bytes(&self) -> Vec<u8> {
        match self.words.iter().any(|word| word == "raw") {
            true => unescape(&self.body.replace('\n', "")),
            false => self.body.clone().into_bytes(),
        }
    }

    fn mode(&self) -> Option<u32> {
        let mode = self
            .words
            .iter()
            .find_map(|word| word.strip_prefix("mode="))?;
        Some(u32::from_str_radix(mode, 8).unwrap())
    }

    /// Makes what the case begins with.
    fn make(&self, root: &Path) {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match words[..] {
            ["dir", name] => fs::create_dir_all(root.join(name)).unwrap(),
            ["fifo", name] => {
                mknodat(CWD, root.join(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
            }
            ["file", name, ..] => {
                let path = root.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, self.bytes()).unwrap();
                if let Some(mode) = self.mode() {
                    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                }
            }
            ["hardlink", name, "->", target] => {
                fs::hard_link(root.join(target), root.join(name)).unwrap();
            }
            ["link", name, "->", target] => symlink(target, root.join(name)).unwrap(),
            ["after" | "arguments" | "error" | "patch" | "result", ..] => {}
            _ => panic!("unknown section {words:?}"),
        }
    }

    /// Puts what the case says of the end into a tree.
    fn apply_to(&self, tree: &mut Tree, plain_mode: u32) {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match words[..] {
            ["after", "dir", name] => {
                tree.insert(name.to_owned(), "directory".to_owned());
            }
            ["after", "file", name, ..] => {
                // A file that was there keeps its mode, so the case need not say it.
                let before = tree.get(name).and_then(|file| file.split(' ').next());
                let before = before.and_then(|mode| u32::from_str_radix(mode, 8).ok());
                let mode = self.mode().or(before).unwrap_or(plain_mode);
                tree.insert(name.to_owned(), shown(mode, &self.bytes()));
            }
            ["after", "gone", name] => {
                tree.remove(name).unwrap();
            }
            _ => panic!("unknown section {words:?}"),
        }
    }
}

fn shown(mode: u32, content: &[u8]) -> String {
    format!("{:o} {}", mode & 0o7777, content.escape_ascii())
}

fn mode_of_a_new_file() -> u32 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    fs::write(&path, "").unwrap();
    fs::metadata(&path).unwrap().permissions().mode()
}

fn read_tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let shown = if kind.is_dir() {
                folders.push(path.clone());
                "directory".to_owned()
            } else if kind.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if kind.is_fifo() {
                "fifo".to_owned()
            } else {
                let mode = entry.metadata().unwrap().permissions().mode();
                shown(mode, &fs::read(&path).unwrap())
            };
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            tree.insert(name.to_owned(), shown);
        }
    }
    tree
}

/// `\n`, `\r`, `\t`, `\\` and `\xNN`.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next().unwrap() {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'\\' => b'\\',
            b'x' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => panic!("unknown escape \\{}", char::from(other)),
        });
    }
    bytes
}
