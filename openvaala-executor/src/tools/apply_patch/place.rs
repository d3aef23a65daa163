//! Which file a path of a patch means.

/// Makes a path absolute and plain: without `.`, and without `..` where it is relative.
///
/// Two spellings of one path become one, so that a patch can come back to a file. A relative path
/// must stay below `root`, since `..` beyond it is most often a wrong guess about the working
/// directory; who means another place writes it as an absolute path.
///
/// # Errors
///
/// What is wrong with the path, and the way out.
pub(super) fn locate(root: &str, path: &str) -> Result<String, String> {
    if path.contains('\0') {
        return Err("the path contains a NUL byte".to_owned());
    }
    if path == "~" || path.starts_with("~/") {
        return Err(format!(
            "`~` is not expanded; give an absolute path, or one relative to {root}"
        ));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part != ".." || path.starts_with('/') {
            parts.push(part);
        } else if parts.pop().is_none() {
            return Err(format!(
                "the path {path:?} names a file outside of {root}; give an absolute path if that is meant"
            ));
        }
    }
    let root = if path.starts_with('/') {
        ""
    } else {
        root.trim_end_matches('/')
    };
    Ok(format!("{root}/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn every_spelling_of_a_path_means_one_file() {
        let spellings = ["a/b", "./a/b", "a//b/", "x/../a/./b", "/w/a/b", "/w//a/./b"];
        for path in spellings {
            assert_eq!(locate("/w", path).as_deref(), Ok("/w/a/b"), "{path}");
        }
        assert_eq!(locate("/", "a").as_deref(), Ok("/a"));
        assert_eq!(locate("/w", "/x/../y").as_deref(), Ok("/x/../y"));
    }

    #[test]
    fn a_relative_path_stays_within_the_root() {
        for path in ["..", "../a", "a/../../a", "./..//w/a"] {
            let message = locate("/w", path).unwrap_err();
            assert!(message.contains("outside of /w"), "{path}: {message}");
        }
    }
}
