//! Paths as callers give them, made absolute.

use std::path::{Path, PathBuf};

use crate::error::ExecutorError;

/// Makes a path absolute: relative ones stand below `root`. Symbolic links and `..` are left to
/// the file system, since only it knows where they lead.
pub(crate) fn resolve(root: &str, path: &str) -> Result<String, ExecutorError> {
    let invalid = |reason: String| {
        Err(ExecutorError::InvalidPath {
            path: path.to_owned(),
            reason,
        })
    };
    if path.is_empty() {
        return invalid(format!("it is empty; `.` is {root}"));
    }
    if path.contains('\0') {
        return invalid("it contains a NUL byte".to_owned());
    }
    if path == "~" || path.starts_with("~/") {
        return invalid(format!(
            "`~` is not expanded; give an absolute path, or one relative to {root}"
        ));
    }
    let plain: PathBuf = Path::new(root).join(path).components().collect();
    Ok(plain.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn relative_paths_stand_below_the_root() {
        let resolved = ["a/b", "./a//b/", ".", "/etc/x", "../y", "~x"]
            .map(|path| resolve("/home", path).unwrap());
        assert_eq!(
            resolved,
            [
                "/home/a/b",
                "/home/a/b",
                "/home",
                "/etc/x",
                "/home/../y",
                "/home/~x"
            ]
        );
    }

    #[test]
    fn a_path_that_only_a_shell_understands_says_so() {
        let messages =
            ["", "a\0b", "~", "~/x"].map(|path| resolve("/home", path).unwrap_err().to_string());
        assert_eq!(
            messages,
            [
                r#"the path "" can't be used: it is empty; `.` is /home"#,
                r#"the path "a\0b" can't be used: it contains a NUL byte"#,
                r#"the path "~" can't be used: `~` is not expanded; give an absolute path, or one relative to /home"#,
                r#"the path "~/x" can't be used: `~` is not expanded; give an absolute path, or one relative to /home"#,
            ]
        );
    }
}
