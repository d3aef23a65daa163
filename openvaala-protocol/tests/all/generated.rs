//! The committed files are what the types of today make.

use std::path::{Path, PathBuf};
use std::{env, fs};

use openvaala_protocol::schema::{json_schema, markdown, typescript};

const HOW: &str =
    "run UPDATE_GENERATED=1 cargo test -p openvaala-protocol --all-features generated";

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where a crate folder's `docs/protocol.md` lies; `None` where the crate stands without its workspace.
///
/// A packaged crate lies among others in a registry or in `target/package`, beside no manifest of a workspace.
fn document(crate_dir: &Path) -> Option<PathBuf> {
    let root = crate_dir.parent()?;
    let manifest = fs::read_to_string(root.join("Cargo.toml")).ok()?;
    let is_ours = manifest.contains("\"openvaala-protocol\"");
    is_ours.then(|| root.join("docs/protocol.md"))
}

/// Compares a file with what it should be, or writes it if that is asked for.
#[track_caller]
fn check(path: &Path, expected: &str) {
    if env::var_os("UPDATE_GENERATED").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, expected).unwrap();
        return;
    }
    let found = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{}: {error}; {HOW}", path.display()));
    if found == expected {
        return;
    }
    let same = found
        .lines()
        .zip(expected.lines())
        .take_while(|(a, b)| a == b)
        .count();
    panic!(
        "{} is not up to date from line {} on; {HOW}\n  there: {:?}\n  right: {:?}",
        path.display(),
        same + 1,
        found.lines().nth(same),
        expected.lines().nth(same),
    );
}

#[test]
fn generated_json_schema_is_up_to_date() {
    let text = serde_json::to_string_pretty(&json_schema()).unwrap() + "\n";
    check(&crate_dir().join("schema/openvaala.schema.json"), &text);
}

#[test]
fn generated_typescript_is_up_to_date() {
    check(&crate_dir().join("schema/openvaala.ts"), &typescript());
}

#[test]
fn generated_document_is_up_to_date() {
    // Alone, as a package, the crate has no document to compare with; the next test holds that apart.
    if let Some(path) = document(crate_dir()) {
        check(&path, &markdown());
    }
}

#[test]
fn the_document_is_looked_for_only_beside_the_own_workspace() {
    let scratch = env::temp_dir().join(format!("openvaala-protocol-{}", std::process::id()));
    let alone = scratch.join("registry/openvaala-protocol-0.1.0");
    let member = scratch.join("workspace/openvaala-protocol");
    fs::create_dir_all(&alone).unwrap();
    fs::create_dir_all(&member).unwrap();
    let manifest = "[workspace]\nmembers = [\"openvaala-protocol\"]\n";
    fs::write(scratch.join("workspace/Cargo.toml"), manifest).unwrap();
    let found = [document(&alone), document(&member)];
    fs::remove_dir_all(&scratch).unwrap();
    // A workspace without the document is no reason to skip: reading it fails then.
    assert_eq!(
        found,
        [None, Some(scratch.join("workspace/docs/protocol.md"))]
    );
}
