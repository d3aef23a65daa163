//! Where the binary under test is.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The variable that names the binary; `tests/run` sets it.
pub const VARIABLE: &str = "OPENVAALA_BIN";

/// The `openvaala` binary: the one that [`VARIABLE`] names, else one that is built now, once a process.
///
/// # Panics
/// If it is not there or cannot be built.
pub fn openvaala() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let binary = env::var_os(VARIABLE).map_or_else(build, PathBuf::from);
        assert!(
            binary.is_file(),
            "there is no binary at {} (see {VARIABLE})",
            binary.display()
        );
        binary
    })
}

/// The folder of the workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder
        .parent()
        .expect("the crate lies in the workspace")
}

/// The target directory that this test was built into.
#[must_use]
pub fn target() -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    // <target>/<profile>/deps/<test>
    let target = test.ancestors().nth(3);
    target
        .expect("a test lies in a target directory")
        .to_owned()
}

fn build() -> PathBuf {
    eprintln!("{VARIABLE} is not set: building the binary with `cargo build --profile ci`");
    let target = target();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--profile",
            "ci",
            "-p",
            "openvaala-cli",
            "--target-dir",
        ])
        .arg(&target)
        .current_dir(workspace())
        .status();
    let built = built.expect("cargo can be started");
    assert!(built.success(), "the binary cannot be built: {built}");
    target.join("ci/openvaala")
}
