//! Folders as conversations name them.

use std::path::Path;

use crate::error::CliError;

/// A folder's canonical path; `None` is the current one.
pub(super) fn folder(given: Option<&Path>) -> Result<String, CliError> {
    let current;
    let folder = match given {
        Some(folder) => folder,
        None => {
            current = std::env::current_dir().map_err(|error| {
                CliError::user("the current folder cannot be worked in").because(error)
            })?;
            &current
        }
    };
    let shown = folder.display().to_string();
    let wrong = || CliError::usage(format!("{shown} cannot be worked in"));
    let canonical = std::fs::canonicalize(folder).map_err(|error| wrong().because(error))?;
    canonical
        .into_os_string()
        .into_string()
        .map_err(|_| wrong().because_text("its name is no valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_folder_is_named_by_its_canonical_path_and_must_be_there() {
        let here = std::env::current_dir().unwrap();
        let below = here.join("src").join("..");
        let named = folder(Some(&below)).unwrap();
        assert_eq!(
            (&named, &named),
            (&folder(Some(&here)).unwrap(), &folder(None).unwrap())
        );
        let said = folder(Some(Path::new("/no/such/folder")))
            .unwrap_err()
            .text();
        assert!(
            said.starts_with("error: /no/such/folder cannot be worked in\n"),
            "{said}"
        );
    }
}
