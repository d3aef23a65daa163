//! What the corpus can't tell: sizes, cancels, what is sent to the model.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use openvaala_executor::tool::{Cancel, NoOutput, ToolContext, ToolError, ToolOutput};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::all::support::Place;

fn patch(lines: &[&str]) -> serde_json::Value {
    json!({ "patch": format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n")) })
}

#[tokio::test]
async fn what_is_sent_to_the_model_is_short() {
    let place = Place::open().await;
    let tool = place.tool("apply_patch");
    let spec = tool.spec();
    assert!(
        spec.description.len() <= 900,
        "{} bytes",
        spec.description.len()
    );
    assert_eq!(
        spec.parameters.get(),
        r#"{"properties":{"patch":{"type":"string"}},"required":["patch"],"type":"object"}"#
    );
}

#[tokio::test]
async fn the_example_in_the_description_is_a_patch() {
    let place = Place::open().await;
    let description = place.tool("apply_patch").spec().description.clone();
    let begin = description.find("*** Begin Patch").unwrap();
    let end = description.find("*** End Patch").unwrap() + "*** End Patch".len();
    fs::create_dir(place.path().join("src")).unwrap();
    let code = place.path().join("src/a.py");
    fs::write(&code, "def greet():\n    name = ask()\n    print(\"Hi\")\n").unwrap();
    fs::write(place.path().join("old.txt"), "old\n").unwrap();
    let arguments = json!({ "patch": description[begin..end] });
    let output = place.call("apply_patch", arguments).await.unwrap();
    let report = "Success. Updated the following files:\nA b.txt\nM src/a.py\nD old.txt";
    assert_eq!(output, ToolOutput::text(report));
    let expected = "def greet():\n    name = ask()\n    print(\"Hello\")\n";
    assert_eq!(fs::read_to_string(code).unwrap(), expected);
}

#[tokio::test]
async fn a_path_may_have_spaces() {
    let place = Place::open().await;
    place
        .call("apply_patch", patch(&["*** Add File: a b/c d.txt", "+one"]))
        .await
        .unwrap();
    assert_eq!(
        fs::read_to_string(place.path().join("a b/c d.txt")).unwrap(),
        "one\n"
    );
}

#[tokio::test]
async fn a_file_of_16_mib_is_patched_and_one_byte_more_is_too_much() {
    let place = Place::open().await;
    let path = place.path().join("big");
    let mut content = b"one\n".to_vec();
    content.resize(16 * 1024 * 1024, b'x');
    fs::write(&path, &content).unwrap();
    let change = patch(&["*** Update File: big", "-one", "+two"]);
    place.call("apply_patch", change.clone()).await.unwrap();
    content[..3].copy_from_slice(b"two");
    assert!(
        fs::read(&path).unwrap() == content,
        "only the first line must change"
    );

    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"x").unwrap();
    let error = place
        .call("apply_patch", change)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "the patch does not fit big (line 2 of the patch): the file has more than 16,777,216 \
         bytes, the most that can be patched; change it with bash, for example with `sed -i`\n\
         No file was changed."
    );
    place
        .call("apply_patch", patch(&["*** Delete File: big"]))
        .await
        .unwrap();
    assert!(!path.exists(), "what is deleted may be of any size");
}

#[tokio::test]
async fn a_cancelled_patch_changes_nothing() {
    let place = Place::open().await;
    let (handle, cancel) = Cancel::new();
    handle.cancel();
    let context = ToolContext::new("call".to_owned(), cancel, Arc::new(NoOutput));
    let arguments = patch(&["*** Add File: a", "+one"]).to_string();
    let result = place.tool("apply_patch").call(context, &arguments).await;
    assert!(matches!(result, Err(ToolError::Cancelled)), "{result:?}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}
