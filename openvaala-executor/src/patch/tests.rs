use pretty_assertions::assert_eq;

use super::*;

fn chunk(line: usize, anchors: &[&str], lines: Vec<ChunkLine>) -> Chunk {
    Chunk {
        line,
        anchors: anchors.iter().map(|anchor| (*anchor).to_owned()).collect(),
        lines,
        at_end: false,
    }
}

fn kept(text: &str) -> ChunkLine {
    ChunkLine::Context(text.to_owned())
}

fn removed(text: &str) -> ChunkLine {
    ChunkLine::Remove(text.to_owned())
}

fn added(text: &str) -> ChunkLine {
    ChunkLine::Add(text.to_owned())
}

fn operation(line: usize, path: &str, action: Action) -> Operation {
    Operation {
        line,
        path: path.to_owned(),
        action,
    }
}

const WHOLE: &str = "\
*** Begin Patch
*** Environment ID: box
*** Add File: new file.txt
+one
+

*** Delete File: old.txt
*** Update File: a.rs
*** Move to: b.rs

@@ mod tests {
@@ -1,2 +1,3 @@ fn f()
 kept

--- removed
+++ added
@@
-x
*** End of File
*** End Patch";

#[test]
fn everything_that_a_patch_can_say_is_read() {
    let first = vec![
        kept("kept"),
        kept(""),
        removed("-- removed"),
        added("++ added"),
    ];
    let update = Update {
        move_to: Some("b.rs".to_owned()),
        chunks: vec![
            chunk(11, &["mod tests {"], first),
            Chunk {
                at_end: true,
                ..chunk(17, &[], vec![removed("x")])
            },
        ],
    };
    let expected = Patch {
        environment: Some("box".to_owned()),
        operations: vec![
            operation(3, "new file.txt", Action::Add("one\n\n".to_owned())),
            operation(7, "old.txt", Action::Delete),
            operation(8, "a.rs", Action::Update(update)),
        ],
    };
    assert_eq!(Patch::parse(WHOLE), Ok(expected));
}

#[test]
fn every_beginning_of_a_patch_is_malformed() {
    let ends = WHOLE.char_indices().map(|(at, _)| at);
    for end in ends {
        let cut = &WHOLE[..end];
        let result = Patch::parse(cut);
        assert!(
            matches!(result, Err(PatchError::Malformed { .. })),
            "{cut:?}: {result:?}"
        );
    }
}

#[test]
fn wrappers_are_taken_off_within_each_other() {
    let plain = "*** Begin Patch\n*** Delete File: \"a\"\n*** End Patch";
    let json = |value: serde_json::Value| value.to_string();
    let heredoc = format!("apply_patch <<'EOF'\n{plain}\nEOF");
    let wrapped = [
        format!(" \u{feff}\n{plain}\n"),
        format!("```\n{plain}\n```"),
        format!("```diff\r\n{plain}\n```\n"),
        format!("<<-EOF\n{plain}\nEOF"),
        format!("applypatch \"{plain}\""),
        format!("apply_patch\n{plain}"),
        format!("```bash\n{heredoc}\n```"),
        json(serde_json::json!(plain)),
        json(serde_json::json!({ "patch": plain })),
        json(serde_json::json!({ "input": { "patch": heredoc } })),
        json(serde_json::json!({ "cmd": ["bash", "-lc", heredoc] })),
        json(serde_json::json!(json(
            serde_json::json!({ "command": heredoc })
        ))),
    ];
    for text in wrapped {
        assert_eq!(unwrap(&text), plain, "{text:?}");
    }
}

#[test]
fn what_is_no_wrapper_is_left_alone() {
    let texts = [
        "",
        "```",
        "<<",
        "<<\n",
        "<<EOF\nEOF",
        "apply_patch",
        "apply_patched <<EOF\nx\nEOF",
        "'",
        "{\"file\":\"a\"}",
        "[]",
        "{",
        "cd a && apply_patch <<EOF\nx\nEOF",
        "\"\"\"",
    ];
    for text in texts {
        assert_eq!(unwrap(text), text.trim());
    }
}

/// The rejection of an update, and the line of the patch.
fn rejection(changes: &str, content: &str) -> (Rejection, usize) {
    let text = format!("*** Begin Patch\n*** Update File: a\n{changes}\n*** End Patch");
    let patch = Patch::parse(&text).unwrap();
    let Action::Update(update) = &patch.operations[0].action else {
        panic!("{patch:?}")
    };
    match update.apply("a", content.as_bytes()) {
        Err(PatchError::Rejected {
            rejection, line, ..
        }) => (rejection, line),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_caller_can_branch_on_how_a_patch_does_not_fit() {
    let found = [
        rejection("@@ x\n-one", "one\ntwo\n"),
        rejection("-three", "one\ntwo\n"),
        rejection("-two\n@@\n-one", "one\ntwo\n"),
        rejection("-two\n@@ one\n+x", "one\ntwo\n"),
        rejection("-one\n*** End of File", "one\ntwo\n"),
    ];
    let expected = [
        (Rejection::AnchorNotFound, 3),
        (Rejection::LinesNotFound, 3),
        (Rejection::WrongPlace, 4),
        (Rejection::WrongPlace, 4),
        (Rejection::WrongPlace, 3),
    ];
    assert_eq!(found, expected);
}
