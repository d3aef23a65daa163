//! What holds for every patch and every file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use openvaala_executor::patch::{Action, Patch};
use openvaala_executor::tool::ToolContext;
use pretty_assertions::assert_eq;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use tokio::runtime::Builder;

use crate::all::support::Place;

/// A file by its lines, and what happens to it.
#[derive(Clone, Debug)]
struct Edit {
    bom: bool,
    lines: Vec<Line>,
    /// Added behind the last line.
    added: Vec<String>,
    /// Whether the last line has its ending.
    terminated: bool,
}

#[derive(Clone, Debug)]
struct Line {
    text: Vec<u8>,
    ending: &'static str,
    /// Added before it.
    added: Vec<String>,
    removed: bool,
    /// Whether a chunk ends with it.
    ends_chunk: bool,
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec!["", "a", "b", "  a", "a ", "\ta", "}", "*** End Patch", "@@ a", "+", "-a"])
            .prop_map(str::to_owned),
        1 => "[ -~äß漢🦀“–]{0,12}",
    ]
}

fn any_line() -> impl Strategy<Value = Line> {
    let text = prop_oneof![
        9 => any_text().prop_map(String::into_bytes),
        1 => select(vec![b"\xff".to_vec(), b"caf\xe9 ".to_vec(), b"\x00\xc3(".to_vec()]),
    ];
    let ending = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    let added = prop_oneof![3 => Just(vec![]), 1 => vec(any_text(), 1..3)];
    (
        text,
        ending,
        added,
        prop::bool::weighted(0.2),
        any::<bool>(),
    )
        .prop_map(|(text, ending, added, removed, ends_chunk)| Line {
            text,
            ending,
            added,
            removed,
            ends_chunk,
        })
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let lines = prop_oneof![
        3 => vec(any_line(), 0..12),
        1 => vec(any_line(), 0..12).prop_map(|mut lines| {
            lines.iter_mut().for_each(|line| line.ending = "\r\n");
            lines
        }),
    ];
    let added = vec(any_text(), 0..3);
    let parts = (any::<bool>(), lines, added, any::<bool>());
    parts
        .prop_map(|(bom, mut lines, added, terminated)| {
            // A last line without text and ending is no line at all.
            while !terminated && lines.last().is_some_and(|line| line.text.is_empty()) {
                lines.pop();
            }
            Edit {
                bom,
                terminated: terminated || lines.is_empty(),
                lines,
                added,
            }
        })
        .prop_filter("at least one line, old or new", |edit| {
            !edit.lines.is_empty() || !edit.added.is_empty()
        })
}

impl Edit {
    fn content(&self) -> Vec<u8> {
        let mut bytes = self.mark();
        for (index, line) in self.lines.iter().enumerate() {
            bytes.extend_from_slice(&line.text);
            bytes.extend_from_slice(self.ending_of(index).as_bytes());
        }
        bytes
    }

    fn mark(&self) -> Vec<u8> {
        if self.bom {
            "\u{feff}".into()
        } else {
            Vec::new()
        }
    }

    fn ending_of(&self, index: usize) -> &'static str {
        let is_open = !self.terminated && index + 1 == self.lines.len();
        if is_open {
            ""
        } else {
            self.lines[index].ending
        }
    }

    /// The patch that makes the edit: every chunk begins where the one before ended.
    fn patch(&self) -> String {
        let mut text = "*** Begin Patch\n*** Update File: file\n".to_owned();
        for line in &self.lines {
            for added in &line.added {
                text += &format!("+{added}\n");
            }
            let sign = if line.removed { '-' } else { ' ' };
            text += &format!("{sign}{}\n", String::from_utf8_lossy(&line.text));
            if line.ends_chunk {
                text += "@@\n";
            }
        }
        // A chunk needs an old line, so a marker behind the last line is taken back.
        if text.ends_with("\n@@\n") {
            text.truncate(text.len() - 3);
        }
        for added in &self.added {
            text += &format!("+{added}\n");
        }
        text + "*** End Patch\n"
    }

    /// What must come of it.
    fn expected(&self) -> Vec<u8> {
        let style = match self.lines.first() {
            Some(_) if !self.ending_of(0).is_empty() => self.ending_of(0),
            _ => "\n",
        };
        let mut lines: Vec<(&[u8], &str)> = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            lines.extend(line.added.iter().map(|text| (text.as_bytes(), style)));
            if !line.removed {
                lines.push((&line.text, self.ending_of(index)));
            }
        }
        lines.extend(self.added.iter().map(|text| (text.as_bytes(), style)));
        let count = lines.len();
        let mut bytes = self.mark();
        for (index, (text, ending)) in lines.into_iter().enumerate() {
            let is_open = ending.is_empty() && index + 1 < count;
            bytes.extend_from_slice(text);
            bytes.extend_from_slice(if is_open { style } else { ending }.as_bytes());
        }
        bytes
    }
}

/// Lines of which many make a patch.
fn any_patch_line() -> impl Strategy<Value = String> {
    let headers = select(vec![
        "*** Add File: a",
        "*** Add File: b/c",
        "*** Delete File: a",
        "*** Delete File: b",
        "*** Update File: a",
        "*** Update File: b",
        "*** Move to: c",
        "*** Move to: a",
        "*** End of File",
        "*** Begin Patch",
        "*** End Patch",
        "*** Environment ID: x",
        "@@",
        "@@ one",
        "@@ two",
        "",
    ]);
    let texts = select(vec!["", "one", "two", " one", "three", "\u{feff}one", "\r"]);
    prop_oneof![
        2 => headers.prop_map(str::to_owned),
        3 => (select(vec![" ", "+", "-"]), texts).prop_map(|(sign, text)| format!("{sign}{text}")),
        1 => any::<String>().prop_map(|text| text.replace('\n', "")),
    ]
}

fn any_patch() -> impl Strategy<Value = String> {
    let lines = vec(any_patch_line(), 0..14);
    let header = select(vec!["*** Update File: a\n", "*** Add File: d\n", ""]);
    let parts = (header, lines);
    parts.prop_map(|(header, lines)| {
        let body: String = lines.into_iter().map(|line| line + "\n").collect();
        format!("*** Begin Patch\n{header}{body}*** End Patch")
    })
}

fn any_content() -> impl Strategy<Value = Vec<u8>> {
    let line = select(vec![
        "one",
        "two",
        "",
        " one",
        "three",
        "one\r",
        "\u{feff}one",
    ]);
    prop_oneof![
        3 => vec(line, 0..8).prop_map(|lines| lines.join("\n").into_bytes()),
        1 => vec(any::<u8>(), 0..40),
    ]
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

type Tree = BTreeMap<String, Vec<u8>>;

fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if path.is_dir() {
                folders.push(path);
                tree.insert(name + "/", Vec::new());
            } else {
                tree.insert(name, fs::read(path).unwrap());
            }
        }
    }
    tree
}

/// Applies a patch to the files `a` and `b`; tells whether it worked, and the files around it.
fn run(patch: &str, a: &[u8], b: &[u8]) -> (bool, Tree, Tree) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let place = Place::open().await;
        fs::write(place.path().join("a"), a).unwrap();
        fs::write(place.path().join("b"), b).unwrap();
        let before = tree(place.path());
        let arguments = json!({ "patch": patch }).to_string();
        let context = ToolContext::unattended("call");
        let result = place.tool("apply_patch").call(context, &arguments).await;
        (result.is_ok(), before, tree(place.path()))
    })
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn an_edit_written_as_a_patch_is_made_to_the_byte(edit in any_edit()) {
        let text = edit.patch();
        let patch = Patch::parse(&text).unwrap();
        let [operation] = &patch.operations[..] else { panic!("{patch:?}") };
        let Action::Update(update) = &operation.action else { panic!("{patch:?}") };
        let applied = update.apply("file", &edit.content()).unwrap();
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        assert_eq!(shown(&applied.content), shown(&edit.expected()), "{}", text);
    }

    #[test]
    fn no_text_and_no_file_make_a_panic(
        text in prop_oneof![any_patch(), any::<String>()],
        content in any_content(),
    ) {
        let Ok(patch) = Patch::parse(&text) else { return Ok(()) };
        for operation in &patch.operations {
            if let Action::Update(update) = &operation.action
                && let Ok(applied) = update.apply(&operation.path, &content)
            {
                let adds = text.len() + 2 * content.len() + 2 * text.lines().count();
                prop_assert!(applied.content.len() <= content.len() + adds);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn a_failed_patch_changes_no_byte_of_any_file(
        patch in any_patch(),
        a in any_content(),
        b in any_content(),
    ) {
        let (worked, before, after) = run(&patch, &a, &b);
        if !worked {
            assert_eq!(after, before);
        }
        let left = after.keys().find(|name| name.contains(".openvaala"));
        assert_eq!(left, None);
    }
}
