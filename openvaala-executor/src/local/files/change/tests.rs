use std::os::unix::fs::symlink;

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;
use crate::file::Expected;

/// A directory with some files, each with its name as content.
fn place(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::write(folder.path().join(name), name).unwrap();
    }
    folder
}

fn root(folder: &TempDir) -> String {
    folder.path().to_str().unwrap().to_owned()
}

fn write_to(path: &str, content: &'static str) -> FileChange {
    FileChange::write(path.to_owned(), content.into())
}

fn remove(path: &str) -> FileChange {
    FileChange::remove(path.to_owned())
}

fn names_and_contents(folder: &TempDir) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries
        .map(|path| {
            let content = fs::read_to_string(&path).unwrap_or_else(|_| "(directory)".to_owned());
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                content,
            )
        })
        .collect();
    all.sort();
    all
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    pairs.iter().map(owned).collect()
}

/// Stages changes, meddles with the files, and goes on.
fn meddled(
    folder: &TempDir,
    changes: Vec<FileChange>,
    meddle: impl FnOnce(&Path),
) -> Result<(), ExecutorError> {
    let root = root(folder);
    let find = |change| Target::find(&root, change).unwrap();
    let targets: Vec<Target> = changes.into_iter().map(find).collect();
    let mut transaction = Transaction::default();
    transaction.stage(&root, &targets).unwrap();
    meddle(folder.path());
    // As in the midst of a commit, when the first look is over.
    for (index, target) in targets.iter().enumerate() {
        let staged = transaction.staged[index].take();
        let replaced = target.check().and_then(|()| {
            let replaced = transaction.replace(index, target, staged.as_deref());
            replaced.map_err(|error| ExecutorError::from_io("write", &target.path, error))
        });
        if let Err(error) = replaced {
            transaction.staged[index] = staged;
            return Err(transaction.undo(error, &targets));
        }
    }
    transaction.finish();
    Ok(())
}

#[test]
fn a_failure_on_the_way_undoes_what_was_done() {
    let folder = place(&["a", "b", "c", "z"]);
    let before = fs::metadata(folder.path().join("a")).unwrap();
    let changes = vec![
        write_to("a", "new"),
        write_to("x/y/new", "new"),
        remove("b"),
        write_to("c", "new").expecting(Expected::Content("c".into())),
        write_to("z", "new"),
    ];
    let meddle = |root: &Path| fs::write(root.join("c"), "C").unwrap();
    let error = meddled(&folder, changes, meddle).unwrap_err();
    let path = format!("{}/c", root(&folder));
    assert!(
        matches!(&error, ExecutorError::Changed { path: p } if *p == path),
        "{error:?}"
    );
    let expected = [("a", "a"), ("b", "b"), ("c", "C"), ("z", "z")];
    assert_eq!(names_and_contents(&folder), pairs(&expected));
    let after = fs::metadata(folder.path().join("a")).unwrap();
    assert_eq!(
        (after.ino(), after.nlink()),
        (before.ino(), 1),
        "it is the very same file"
    );
}

#[test]
fn every_meddling_is_noticed() {
    type Meddle = fn(&Path);
    let cases: [(FileChange, Meddle); 6] = [
        (write_to("a", "new"), |root| {
            fs::remove_file(root.join("a")).unwrap()
        }),
        (write_to("a", "new"), |root| {
            fs::write(root.join("a"), "longer").unwrap()
        }),
        (write_to("new", "new"), |root| {
            fs::write(root.join("new"), "x").unwrap()
        }),
        (remove("a"), |root| {
            fs::write(root.join("a"), "longer").unwrap()
        }),
        (write_to("a", "new"), |root| {
            fs::remove_file(root.join("a")).unwrap();
            symlink("b", root.join("a")).unwrap();
        }),
        (write_to("a", "new"), |root| {
            fs::remove_file(root.join("a")).unwrap();
            fs::create_dir(root.join("a")).unwrap();
        }),
    ];
    for (index, (change, meddle)) in cases.into_iter().enumerate() {
        let folder = place(&["a", "b"]);
        let error = meddled(&folder, vec![write_to("b", "new"), change], meddle).unwrap_err();
        assert!(
            matches!(error, ExecutorError::Changed { .. }),
            "{index}: {error:?}"
        );
        let left = names_and_contents(&folder);
        assert!(
            left.contains(&("b".to_owned(), "b".to_owned())),
            "{index}: {left:?}"
        );
        let temporary = left.iter().find(|(name, _)| name.starts_with(".openvaala"));
        assert_eq!(temporary, None, "{index}");
    }
}

#[test]
fn what_could_not_be_undone_is_told() {
    let folder = place(&["a", "b"]);
    let root = root(&folder);
    let changes = [write_to("a", "new"), write_to("b", "new")];
    let targets = changes.map(|change| Target::find(&root, change).unwrap());
    let mut transaction = Transaction::default();
    transaction.stage(&root, &targets).unwrap();
    let staged = transaction.staged[0].take();
    transaction
        .replace(0, &targets[0], staged.as_deref())
        .unwrap();
    fs::remove_file(transaction.done[0].backup.as_ref().unwrap()).unwrap();
    let cause = ExecutorError::Changed {
        path: "b".to_owned(),
    };
    let error = transaction.undo(cause, &targets);
    assert_eq!(
        error.to_string(),
        format!(
            "the change failed on the way, and undoing it failed too; changed: {root}/a; not \
             changed: {root}/b"
        )
    );
    assert_eq!(
        names_and_contents(&folder),
        pairs(&[("a", "new"), ("b", "b")])
    );
}

#[test]
fn a_new_file_has_the_permissions_of_any_new_file() {
    let folder = place(&["plain"]);
    change(&root(&folder), vec![write_to("new", "new")]).unwrap();
    let mode = |name| {
        fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!(mode("new"), mode("plain"));
}

#[test]
fn names_of_any_length_are_written() {
    let folder = place(&[]);
    let name = "n".repeat(255);
    change(&root(&folder), vec![write_to(&name, "1")]).unwrap();
    change(&root(&folder), vec![write_to(&name, "2")]).unwrap();
    assert_eq!(names_and_contents(&folder), pairs(&[(&name, "2")]));
}
