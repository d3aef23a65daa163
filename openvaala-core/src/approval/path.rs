//! Paths as rules see them: absolute, without a look at any disk.

/// A path from a folder on, without `.` and `..`; links are not followed.
pub(super) fn absolute(folder: &str, path: &str) -> String {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether a path lies in a folder, both absolute.
#[cfg(feature = "tools")]
pub(super) fn is_within(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(all(test, feature = "tools"))]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_path_that_climbs_out_of_a_folder_is_not_within_it() {
        let inside = |path: &str| is_within(&absolute("/w/a", path), "/w/a");
        let found = [
            "b",
            "./b/../c",
            "../b",
            "/w/ab",
            "/w/a/b",
            "b/../../c",
            "/",
            "",
            "../a/x",
        ]
        .map(inside);
        assert_eq!(
            found,
            [true, true, false, false, true, false, false, false, true]
        );
    }
}
