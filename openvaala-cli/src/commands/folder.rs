//! Folders as conversations name them.

use std::path::Path;

use crate::error::CliError;
use crate::remote::RemoteServer;

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

/// A folder of the server's machine. If none is given it is the current one here, and `None`, the server's own, elsewhere.
pub(super) fn folder_of(
    remote: Option<&RemoteServer>,
    given: Option<&Path>,
) -> Result<Option<String>, CliError> {
    let Some(remote) = remote else {
        return folder(given).map(Some);
    };
    match given.map(|folder| (folder.is_absolute(), folder.to_str())) {
        None => Ok(None),
        Some((true, Some(folder))) => Ok(Some(folder.to_owned())),
        Some(_) => {
            let message = format!("a folder of the server at {} is meant", remote.url());
            Err(CliError::usage(message).hint("give its whole path, beginning with /"))
        }
    }
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
