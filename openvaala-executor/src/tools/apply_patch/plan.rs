//! What a patch does to which files, found out before any file is touched.

use bytes::Bytes;

use super::place::locate;
use super::unchanged;
use crate::error::ExecutorError;
use crate::file::{Expected, FileChange, FileKind, Files};
use crate::output::grouped;
use crate::patch::{Action, Operation, Patch, PatchError, Rejection, Update};
use crate::tool::ToolError;
use crate::tools::read_file::near;

/// The largest file that is patched, in bytes.
const LARGEST: usize = 16 * 1024 * 1024;

/// The files of a patch as they are after it, in the order in which it names them.
#[derive(Debug)]
pub(super) struct Plan {
    files: Vec<Planned>,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Planned {
    /// The absolute path.
    place: String,
    /// The path as the patch writes it.
    shown: String,
    before: Before,
    now: Now,
    /// The letter in the report; none if the file is not told of.
    letter: Option<char>,
    permissions_of: Option<String>,
}

#[derive(Debug)]
enum Before {
    Missing,
    Read(Bytes),
    /// It exists, and what is in it does not matter.
    Unread,
}

#[derive(Debug)]
enum Now {
    Missing,
    Content(Bytes),
    Untouched,
}

impl Plan {
    pub(super) async fn make(files: &dyn Files, patch: &Patch) -> Result<Self, ToolError> {
        let mut plan = Self {
            files: Vec::new(),
            notes: Vec::new(),
        };
        if let Some(environment) = &patch.environment {
            plan.notes.push(format!(
                "note: the patch names the environment {environment:?}, but the executor of the \
                 call counts"
            ));
        }
        for operation in &patch.operations {
            let step = Step { files, operation };
            match &operation.action {
                Action::Add(content) => plan.add(step, content).await?,
                Action::Delete => plan.delete(step).await?,
                Action::Update(update) => plan.update(step, update).await?,
            }
        }
        Ok(plan)
    }

    /// The changes, and what to say when they are made.
    pub(super) fn into_parts(self) -> (Vec<FileChange>, String) {
        let mut report = "Success. Updated the following files:".to_owned();
        let mut is_empty = true;
        for letter in ['A', 'M', 'D'] {
            for file in self.files.iter().filter(|file| file.letter == Some(letter)) {
                report += &format!("\n{letter} {}", file.shown);
                is_empty = false;
            }
        }
        if is_empty {
            report = "Success. No files were modified.".to_owned();
        }
        for note in self.notes {
            report = report + "\n" + &note;
        }
        let changes = self.files.into_iter().filter_map(Planned::into_change);
        (changes.collect(), report)
    }

    async fn add(&mut self, step: Step<'_>, content: &str) -> Result<(), ToolError> {
        let index = self.look_at(&step, &step.operation.path).await?;
        let file = &mut self.files[index];
        file.now = Now::Content(Bytes::copy_from_slice(content.as_bytes()));
        file.letter = Some('A');
        Ok(())
    }

    async fn delete(&mut self, step: Step<'_>) -> Result<(), ToolError> {
        let index = self.look_at(&step, &step.operation.path).await?;
        let file = &mut self.files[index];
        if !file.exists() {
            let (place, is_gone) = (file.place.clone(), matches!(file.now, Now::Missing));
            return Err(step.no_file(&place, is_gone).await);
        }
        file.now = Now::Missing;
        file.letter = match file.before {
            Before::Missing => None,
            Before::Read(_) | Before::Unread => Some('D'),
        };
        Ok(())
    }

    async fn update(&mut self, step: Step<'_>, update: &Update) -> Result<(), ToolError> {
        let path = &step.operation.path;
        let index = self.look_at(&step, path).await?;
        let old = self.content(&step, index).await?;
        let applied = update
            .apply(path, &old)
            .map_err(|error| unchanged(&error))?;
        self.notes.extend(applied.notes);
        let is_same = applied.content == old;
        let new = Bytes::from(applied.content);
        let target = match &update.move_to {
            Some(target) => self.look_at(&step, target).await?,
            None => index,
        };
        if target == index {
            if is_same {
                self.notes
                    .push(format!("note: the patch leaves {path} as it was"));
                return Ok(());
            }
            let file = &mut self.files[index];
            file.now = Now::Content(new);
            file.letter = file.letter.filter(|letter| *letter == 'A').or(Some('M'));
            return Ok(());
        }
        let source = &mut self.files[index];
        let place = source.place.clone();
        let permissions_of = match source.before {
            Before::Missing => None,
            Before::Read(_) | Before::Unread => source.permissions_of.take().or(Some(place)),
        };
        (source.now, source.letter) = (Now::Missing, None);
        let target = &mut self.files[target];
        (target.now, target.letter) = (Now::Content(new), Some('M'));
        target.permissions_of = permissions_of;
        Ok(())
    }

    /// Finds a file among those of the plan, or in the file system.
    async fn look_at(&mut self, step: &Step<'_>, path: &str) -> Result<usize, ToolError> {
        let place = locate(step.files.root(), path)
            .map_err(|problem| step.rejected(Rejection::BadPath, problem))?;
        if let Some(index) = self.files.iter().position(|file| file.place == place) {
            return Ok(index);
        }
        let before = match step.files.metadata(&place).await {
            Ok(metadata) => match metadata.kind {
                FileKind::File => Before::Unread,
                kind => {
                    let problem = format!("{place} is a {kind}, not a regular file");
                    return Err(step.rejected(Rejection::BadFile, problem));
                }
            },
            Err(ExecutorError::NotFound { .. }) => Before::Missing,
            Err(ExecutorError::NotADirectory { .. }) => {
                let problem = format!("{place} can't be there, since a file stands above it");
                return Err(step.rejected(Rejection::BadPath, problem));
            }
            Err(error) => {
                let problem = ToolError::from(error).to_string();
                return Err(step.rejected(Rejection::BadPath, problem));
            }
        };
        self.files.push(Planned {
            place,
            shown: path.to_owned(),
            before,
            now: Now::Untouched,
            letter: None,
            permissions_of: None,
        });
        Ok(self.files.len() - 1)
    }

    /// The content of a file as the patch has left it by now.
    async fn content(&mut self, step: &Step<'_>, index: usize) -> Result<Bytes, ToolError> {
        let file = &mut self.files[index];
        let place = file.place.clone();
        match (&file.now, &file.before) {
            (Now::Content(content), _) | (Now::Untouched, Before::Read(content)) => {
                return Ok(content.clone());
            }
            (Now::Missing, _) => return Err(step.no_file(&place, true).await),
            (Now::Untouched, Before::Missing) => return Err(step.no_file(&place, false).await),
            (Now::Untouched, Before::Unread) => {}
        }
        let read = step.files.read(&place, 0, LARGEST + 1).await;
        let content = read.map_err(|error| {
            let problem = ToolError::from(error).to_string();
            step.rejected(Rejection::BadFile, problem)
        })?;
        if content.len() > LARGEST {
            let problem = format!(
                "the file has more than {} bytes, the most that can be patched; change it with \
                 bash, for example with `sed -i`",
                grouped(LARGEST)
            );
            return Err(step.rejected(Rejection::BadFile, problem));
        }
        file.before = Before::Read(content.clone());
        Ok(content)
    }
}

impl Planned {
    fn exists(&self) -> bool {
        match (&self.now, &self.before) {
            (Now::Content(_), _) => true,
            (Now::Missing, _) | (Now::Untouched, Before::Missing) => false,
            (Now::Untouched, _) => true,
        }
    }

    fn into_change(self) -> Option<FileChange> {
        let expected = match self.before {
            Before::Missing => Expected::Nothing,
            Before::Read(content) => Expected::Content(content),
            Before::Unread => Expected::Anything,
        };
        let mut change = match self.now {
            Now::Untouched => return None,
            Now::Missing if matches!(expected, Expected::Nothing) => return None,
            Now::Missing => FileChange::remove(self.place),
            Now::Content(content) => FileChange::write(self.place, content),
        };
        change.permissions_of = self.permissions_of;
        Some(change.expecting(expected))
    }
}

/// One operation of the patch, and where it happens.
#[derive(Clone, Copy)]
struct Step<'a> {
    files: &'a dyn Files,
    operation: &'a Operation,
}

impl Step<'_> {
    fn rejected(&self, rejection: Rejection, problem: String) -> ToolError {
        unchanged(&PatchError::Rejected {
            path: self.operation.path.clone(),
            line: self.operation.line,
            rejection,
            problem,
        })
    }

    /// `is_gone`: the patch itself has removed the file.
    async fn no_file(&self, place: &str, is_gone: bool) -> ToolError {
        let why = if is_gone {
            " any more, since the patch removes it".to_owned()
        } else {
            near::hint(self.files, place).await
        };
        self.rejected(Rejection::NoFile, format!("there is no file {place}{why}"))
    }
}
