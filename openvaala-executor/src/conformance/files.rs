//! Reading files.

use super::{Target, ok, refused, within};
use crate::error::ExecutorError;
use crate::file::{DirEntry, FileKind, FileMetadata};

/// Metadata tells a file from a directory, and follows links.
pub async fn metadata_tells_kind_and_length(target: Target) {
    let workspace = target
        .prepared("printf hello >file; mkdir folder; ln -s file link")
        .await;
    let files = workspace.files();
    let file = FileMetadata::new(FileKind::File, 5);
    assert_eq!(ok(within(files.metadata("file")).await), file);
    assert_eq!(ok(within(files.metadata("link")).await), file);
    assert_eq!(
        ok(within(files.metadata("folder")).await).kind,
        FileKind::Directory
    );
    assert_eq!(
        ok(within(files.metadata(".")).await).kind,
        FileKind::Directory
    );
}

/// A read begins at its offset and ends at its limit or at the end of the file.
pub async fn read_gives_a_range_of_bytes(target: Target) {
    let workspace = target.prepared("printf 0123456789 >file").await;
    let absolute = format!("{}/file", target.root);
    let ranges = [
        (0, 100, "0123456789"),
        (0, 4, "0123"),
        (7, 2, "78"),
        (8, 9, "89"),
        (10, 1, ""),
    ];
    for (offset, limit, expected) in ranges {
        for path in ["file", "./file", &absolute] {
            let bytes = ok(within(workspace.files().read(path, offset, limit)).await);
            assert_eq!(bytes, expected, "{path} from {offset}, at most {limit}");
        }
    }
    assert_eq!(ok(within(workspace.files().read("file", 99, 1)).await), "");
}

/// A directory can't be read as a file, nor a file listed as a directory.
pub async fn read_refuses_what_is_no_file(target: Target) {
    let workspace = target.prepared("mkdir folder; echo >file").await;
    let error = refused(within(workspace.files().read("folder", 0, 10)).await);
    assert!(
        matches!(error, ExecutorError::IsADirectory { .. }),
        "{error:?}"
    );
    let error = refused(within(workspace.files().list("file")).await);
    assert!(
        matches!(error, ExecutorError::NotADirectory { .. }),
        "{error:?}"
    );
}

/// An error about a path shows where the executor looked.
pub async fn a_missing_file_is_named_as_resolved(target: Target) {
    let workspace = target.prepared("ln -s nowhere link").await;
    for name in ["missing", "link", "missing/file"] {
        let resolved = format!("{}/{name}", target.root);
        let errors = [
            refused(within(workspace.files().metadata(name)).await),
            refused(within(workspace.files().read(name, 0, 10)).await),
            refused(within(workspace.files().list(name)).await),
        ];
        for error in errors {
            let named = matches!(&error, ExecutorError::NotFound { path } if *path == resolved);
            assert!(named, "{error:?}");
        }
    }
}

/// A listing has each name once, sorted, with its kind.
pub async fn list_is_sorted_by_name(target: Target) {
    let workspace = target
        .prepared("echo >b; echo >a; mkdir c; ln -s a d; echo >.hidden")
        .await;
    let expected = [
        (".hidden", FileKind::File),
        ("a", FileKind::File),
        ("b", FileKind::File),
        ("c", FileKind::Directory),
        ("d", FileKind::Symlink),
    ];
    let expected = expected.map(|(name, kind)| DirEntry::new(name.to_owned(), kind));
    assert_eq!(ok(within(workspace.files().list(".")).await), expected);
    assert_eq!(ok(within(workspace.files().list("c")).await), []);
}

/// A tilde is refused with a reason and never taken for a name.
pub async fn a_home_directory_is_not_expanded(target: Target) {
    let workspace = target.open().await;
    let error = refused(within(workspace.files().read("~/file", 0, 10)).await);
    assert!(
        matches!(error, ExecutorError::InvalidPath { .. }),
        "{error:?}"
    );
}
