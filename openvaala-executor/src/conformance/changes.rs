//! Changing files.

use bytes::Bytes;

use super::{Target, ok, refused, run, within};
use crate::error::ExecutorError;
use crate::file::{Expected, FileChange, Files};
use crate::process::Command;
use crate::workspace::Workspace;

fn write(path: &str, content: &'static str) -> FileChange {
    FileChange::write(path.to_owned(), Bytes::from_static(content.as_bytes()))
}

fn remove(path: &str) -> FileChange {
    FileChange::remove(path.to_owned())
}

async fn change(workspace: &dyn Workspace, changes: Vec<FileChange>) -> Result<(), ExecutorError> {
    within(workspace.files().change(changes)).await
}

async fn content(files: &dyn Files, path: &str) -> Bytes {
    ok(within(files.read(path, 0, 1000)).await)
}

/// What a command says of the directory.
async fn said(workspace: &dyn Workspace, line: &str) -> String {
    run(workspace, Command::new(line)).await.stdout
}

/// Files are made with their directories, replaced and removed, by one call.
pub async fn a_change_writes_and_removes_files(target: Target) {
    let workspace = target.prepared("printf old >old; printf gone >gone").await;
    let absolute = format!("{}/absolute", target.root);
    let changes = vec![
        remove("gone"),
        write("old", "new"),
        write("a/b/made", "made"),
        write(&absolute, ""),
    ];
    ok(change(&*workspace, changes).await);
    let files = workspace.files();
    for (path, expected) in [("old", "new"), ("a/b/made", "made"), ("absolute", "")] {
        assert_eq!(content(files, path).await, expected, "{path}");
    }
    let error = refused(within(files.metadata("gone")).await);
    assert!(matches!(error, ExecutorError::NotFound { .. }), "{error:?}");
    assert_eq!(
        said(&*workspace, "ls -A").await,
        "a\nabsolute\nold\n",
        "nothing else is left"
    );
    assert_eq!(files.root(), target.root);
}

/// When one change is refused, none is made, and nothing is left behind.
pub async fn a_refused_change_changes_nothing(target: Target) {
    let workspace = target
        .prepared("printf a >a; printf b >b; mkdir folder; mkfifo pipe; ln -s nowhere link")
        .await;
    let refusals = [
        write("b", "new").expecting(Expected::Content(Bytes::from_static(b"other"))),
        write("b", "new").expecting(Expected::Content(Bytes::from_static(b"b and more"))),
        write("b", "new").expecting(Expected::Nothing),
        write("missing", "new").expecting(Expected::Content(Bytes::new())),
        write("folder", "new"),
        write("pipe", "new"),
        write("link", "new"),
        write("b/below", "new"),
        write("./a", "twice"),
        write("~/b", "new"),
        remove("missing"),
        remove("folder"),
        remove("pipe"),
    ];
    for refusal in refusals {
        let changes = vec![write("a", "new"), write("x/y", "new"), refusal.clone()];
        refused(change(&*workspace, changes).await);
        let left = said(&*workspace, "ls -A; cat a b").await;
        assert_eq!(left, "a\nb\nfolder\nlink\npipe\nab", "{refusal:?}");
    }
}

/// A file that is not as expected is told apart from one that can't be changed.
pub async fn a_change_says_why_it_is_refused(target: Target) {
    let workspace = target
        .prepared("printf a >a; printf b >b; ln b hard; mkdir folder; mkfifo pipe")
        .await;
    let error =
        |change: FileChange| async { refused(self::change(&*workspace, vec![change]).await) };
    let path = |name: &str| format!("{}/{name}", target.root);

    let expected = Expected::Content(Bytes::from_static(b"b"));
    let changed = error(write("a", "new").expecting(expected)).await;
    let named = matches!(&changed, ExecutorError::Changed { path: p } if *p == path("a"));
    assert!(named, "{changed:?}");
    let linked = error(write("hard", "new")).await;
    let named =
        matches!(&linked, ExecutorError::HardLinked { path: p, links: 2 } if *p == path("hard"));
    assert!(named, "{linked:?}");
    let folder = error(remove("folder")).await;
    let named = matches!(&folder, ExecutorError::IsADirectory { path: p } if *p == path("folder"));
    assert!(named, "{folder:?}");
    let pipe = error(write("pipe", "new")).await;
    let named = matches!(&pipe, ExecutorError::NotRegular { path: p, .. } if *p == path("pipe"));
    assert!(named, "{pipe:?}");
    let missing = error(remove("missing")).await;
    let named = matches!(&missing, ExecutorError::NotFound { path: p } if *p == path("missing"));
    assert!(named, "{missing:?}");
}

/// What is as expected is changed.
pub async fn a_change_finds_what_it_expects(target: Target) {
    let workspace = target.prepared("printf a >a; printf b >b").await;
    let is = |text: &'static str| Expected::Content(Bytes::from_static(text.as_bytes()));
    let changes = vec![
        write("a", "new").expecting(is("a")),
        remove("b").expecting(is("b")),
        write("c", "new").expecting(Expected::Nothing),
    ];
    ok(change(&*workspace, changes).await);
    assert_eq!(said(&*workspace, "ls -A; cat a c").await, "a\nc\nnewnew");
}

/// Links are written through, and removed themselves.
pub async fn a_change_keeps_links(target: Target) {
    let workspace = target
        .prepared("mkdir d; printf a >d/a; ln -s d/a link; ln -s d/a other; ln -s d e")
        .await;
    let changes = vec![write("link", "new"), remove("other"), write("e/b", "b")];
    ok(change(&*workspace, changes).await);
    let line = "ls -A; readlink link; cat d/a d/b";
    assert_eq!(said(&*workspace, line).await, "d\ne\nlink\nd/a\nnewb");
}

/// A file keeps its permissions; another one can take them over.
pub async fn a_change_keeps_permissions(target: Target) {
    let workspace = target
        .prepared("printf a >a; chmod 750 a; printf b >b; chmod 600 b")
        .await;
    let moved = write("c", "new").with_permissions_of("a".to_owned());
    ok(change(&*workspace, vec![write("b", "new"), moved, remove("a")]).await);
    let line = "ls -l b c | cut -c1-10";
    assert_eq!(said(&*workspace, line).await, "-rw-------\n-rwxr-x---\n");
}
