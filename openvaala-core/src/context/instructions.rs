//! AGENTS.md files: what a folder tells the agents that work in it.

use std::sync::Arc;

use futures::future::join_all;
use openvaala_executor::file::Files;
use openvaala_executor::{ExecutorError, Workspace};
use openvaala_protocol::item::Instructions;

/// The name of the file.
const FILE: &str = "AGENTS.md";
/// The most bytes that all files of a location may bring into a conversation; the nearest ones are kept.
const BUDGET: usize = 32 << 10;
/// How many folders above the working directory are looked at.
const MAX_ABOVE: usize = 32;

/// Reads the AGENTS.md files of the work locations: from the root of the repository that a working directory lies in
/// down to that directory, so that the nearest one has the last word.
///
/// Without a repository only the working directory itself is looked at. All files of a location together bring at
/// most 32 KiB: the nearest are read whole, those further up are cut. What can't be read is left out. `global` is for all
/// conversations: it comes first, as the farthest, and gets what room the others leave.
pub(crate) async fn read_instructions(
    workspaces: &[Arc<dyn Workspace>],
    global: Option<&Instructions>,
) -> Vec<Instructions> {
    let several = workspaces.len() > 1;
    let read = workspaces.iter().map(|workspace| async move {
        let mut found = read_location(workspace.files(), workspace.root()).await;
        if several {
            for instructions in &mut found {
                instructions.path = format!("{}:{}", workspace.executor(), instructions.path);
            }
        }
        found
    });
    let mut found: Vec<Instructions> = join_all(read).await.into_iter().flatten().collect();
    if let Some(global) = global.filter(|global| !global.text.trim().is_empty()) {
        let near: usize = found.iter().map(|near| near.text.len()).sum();
        found.insert(0, within(global.clone(), BUDGET.saturating_sub(near)));
    }
    found
}

/// The instructions cut to that many bytes; `bytes` still says how long they are as a whole.
fn within(mut instructions: Instructions, room: usize) -> Instructions {
    let text = &mut instructions.text;
    text.truncate(text.floor_char_boundary(room));
    instructions
}

async fn read_location(files: &dyn Files, root: &str) -> Vec<Instructions> {
    let above: Vec<&str> = folders(root).take(MAX_ABOVE).collect();
    let is_repository = join_all(above.iter().map(|folder| async {
        let path = join(folder, ".git");
        files.metadata(&path).await.is_ok()
    }));
    let top = is_repository.await.into_iter().position(|found| found);
    let inside = &above[..=top.unwrap_or(0).min(above.len().saturating_sub(1))];
    let contents = join_all(inside.iter().map(|folder| read_file(files, folder))).await;
    let mut room = BUDGET;
    let mut found: Vec<Instructions> = contents
        .into_iter()
        .flatten()
        .map(|file| file.within(&mut room))
        .collect();
    found.reverse();
    found
}

/// The folder and those above it, nearest first.
fn folders(root: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(root), |folder| {
        let (above, name) = folder.trim_end_matches('/').rsplit_once('/')?;
        (!name.is_empty()).then_some(if above.is_empty() { "/" } else { above })
    })
}

fn join(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// A file as it was read: its beginning, and how long it is as a whole.
struct Read {
    path: String,
    text: String,
    bytes: u64,
}

async fn read_file(files: &dyn Files, folder: &str) -> Option<Read> {
    let path = join(folder, FILE);
    let content = match files.read(&path, 0, BUDGET + 1).await {
        Ok(content) => content,
        Err(ExecutorError::NotFound { .. }) => return None,
        Err(error) => {
            tracing::warn!(%path, %error, "instructions are left out");
            return None;
        }
    };
    let bytes = if content.len() > BUDGET {
        let metadata = files.metadata(&path).await.ok()?;
        metadata.len.max(content.len() as u64)
    } else {
        content.len() as u64
    };
    let text = String::from_utf8_lossy(&content).into_owned();
    (!text.trim().is_empty()).then_some(Read { path, text, bytes })
}

impl Read {
    fn within(self, room: &mut usize) -> Instructions {
        let Self {
            path,
            mut text,
            bytes,
        } = self;
        text.truncate(text.floor_char_boundary(*room));
        *room -= text.len();
        Instructions::new(path, text, bytes)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_folders_above_go_up_to_the_root() {
        let all = |root| folders(root).collect::<Vec<_>>();
        assert_eq!(all("/a/b/c"), ["/a/b/c", "/a/b", "/a", "/"]);
        assert_eq!(all("/a/"), ["/a/", "/"]);
        assert_eq!(all("/"), ["/"]);
    }

    #[test]
    fn the_budget_is_spent_on_the_nearest_first_and_cuts_no_character() {
        let mut room = 5;
        let read = |text: &str| Read {
            path: "p".to_owned(),
            text: text.to_owned(),
            bytes: text.len() as u64,
        };
        let near = read("abc").within(&mut room);
        let far = read("d你").within(&mut room);
        let farther = read("e").within(&mut room);
        assert_eq!(
            [near, far, farther],
            [
                Instructions::new("p".to_owned(), "abc".to_owned(), 3),
                Instructions::new("p".to_owned(), "d".to_owned(), 4),
                Instructions::new("p".to_owned(), "e".to_owned(), 1),
            ]
        );
    }
}
