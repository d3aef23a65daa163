//! `executor/…`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openvaala_core::RuntimeError;
use openvaala_core::executor::file::{DirEntry, FileKind, Files};
use openvaala_core::executor::{Executor, ExecutorError, Workspace};
use openvaala_protocol::id::ExecutorId;
use openvaala_protocol::rpc::params::executor::{
    BrowseParams, BrowseResult, CompleteParams, CompleteResult, Executor as Listed, Folder,
    ListResult, TestParams, TestResult,
};
use openvaala_protocol::rpc::{ErrorCode, RpcError};
use tokio::time::{Instant, timeout};

use super::conversation::page_limit;
use super::error::{rpc_error, with_causes};
use crate::context::Context;

/// The most that one answer lists.
const MAX_PAGE: u32 = 1_000;
/// How many completions are given if nobody says otherwise.
const COMPLETIONS: u32 = 100;
/// How long a file system may take to answer.
const LIMIT: Duration = Duration::from_secs(10);

pub(crate) fn list(context: &Context) -> ListResult {
    let definitions = context.runtime.definitions();
    let executors = definitions.executors.iter().map(|(id, executor)| Listed {
        id: id.clone(),
        kind: executor.kind().to_owned(),
    });
    ListResult {
        executors: executors.collect(),
    }
}

pub(crate) async fn test(context: &Context, params: TestParams) -> Result<TestResult, RpcError> {
    let executor = find(context, params.executor)?;
    let root = params.root.unwrap_or_else(|| working_dir(context));
    let started = Instant::now();
    let opened = timeout(LIMIT, executor.open(&root)).await;
    let (ok, message) = match opened {
        Ok(Ok(workspace)) => {
            let environment = workspace.environment();
            let (os, arch) = (&environment.os, &environment.arch);
            let message = format!("{os} on {arch}, shell {}", environment.shell);
            workspace.close().await;
            (true, message)
        }
        Ok(Err(error)) => (false, with_causes(&error)),
        Err(_) => (false, format!("no answer within {} s", LIMIT.as_secs())),
    };
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(TestResult {
        ok,
        message,
        millis,
    })
}

pub(crate) async fn browse(
    context: &Context,
    params: BrowseParams,
) -> Result<BrowseResult, RpcError> {
    let executor = find(context, params.executor)?;
    let path = params.path.unwrap_or_else(|| working_dir(context));
    let limit = page_limit(params.limit, MAX_PAGE, context);
    let look = look(executor.as_ref(), &path, |_| true, false, limit);
    let looked = in_time(&path, look).await?;
    let folders = looked.found.into_iter().map(|(name, _)| Folder {
        path: below(&looked.root, &name),
        hidden: name.starts_with('.'),
        name,
    });
    let parent = Path::new(&looked.root).parent();
    Ok(BrowseResult {
        folders: folders.collect(),
        parent: parent.map(|parent| parent.to_string_lossy().into_owned()),
        more: looked.more,
        path: looked.root,
    })
}

pub(crate) async fn complete(
    context: &Context,
    params: CompleteParams,
) -> Result<CompleteResult, RpcError> {
    let executor = find(context, params.executor)?;
    let Some((folder, begun)) = params.path.rsplit_once('/') else {
        let message = format!("path: {:?} is not absolute: begin it with /", params.path);
        return Err(RpcError::new(ErrorCode::InvalidParams, message));
    };
    let root = if folder.is_empty() { "/" } else { folder };
    let fits =
        |name: &str| name.starts_with(begun) && (begun.starts_with('.') || !name.starts_with('.'));
    let limit = page_limit(params.limit, COMPLETIONS, context);
    let look = look(executor.as_ref(), root, fits, params.files, limit);
    let looked = match timeout(LIMIT, look).await {
        Ok(Err(ExecutorError::NotFound { .. } | ExecutorError::NotADirectory { .. })) => {
            Looked::default()
        }
        looked => answered(root, looked)?,
    };
    let paths = looked.found.into_iter().map(|(name, is_folder)| {
        let end = if is_folder { "/" } else { "" };
        // As it was typed, so that it goes on from there.
        format!("{folder}/{name}{end}")
    });
    Ok(CompleteResult {
        paths: paths.collect(),
        more: looked.more,
    })
}

/// What is in a folder.
#[derive(Debug, Default)]
struct Looked {
    root: String,
    /// Names, and whether each is that of a folder.
    found: Vec<(String, bool)>,
    more: bool,
}

/// Looks into a folder, one level deep; gives folders, and with `files` all else too.
async fn look(
    executor: &dyn Executor,
    path: &str,
    fits: impl Fn(&str) -> bool,
    files: bool,
    limit: usize,
) -> Result<Looked, ExecutorError> {
    let workspace = executor.open(path).await?;
    let looked = look_into(workspace.as_ref(), fits, files, limit).await;
    workspace.close().await;
    looked
}

async fn look_into(
    workspace: &dyn Workspace,
    fits: impl Fn(&str) -> bool,
    files: bool,
    limit: usize,
) -> Result<Looked, ExecutorError> {
    let mut looked = Looked {
        root: workspace.root().to_owned(),
        ..Looked::default()
    };
    for entry in workspace.files().list(".").await? {
        if !fits(&entry.name) {
            continue;
        }
        let is_folder = is_folder(workspace.files(), &entry).await;
        if !is_folder && !files {
            continue;
        }
        if looked.found.len() == limit {
            looked.more = true;
            break;
        }
        looked.found.push((entry.name, is_folder));
    }
    Ok(looked)
}

async fn is_folder(files: &dyn Files, entry: &DirEntry) -> bool {
    match entry.kind {
        FileKind::Directory => true,
        FileKind::Symlink => {
            let path = below(files.root(), &entry.name);
            let metadata = files.metadata(&path).await;
            metadata.is_ok_and(|metadata| metadata.kind == FileKind::Directory)
        }
        _ => false,
    }
}

fn below(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

async fn in_time(
    path: &str,
    look: impl Future<Output = Result<Looked, ExecutorError>>,
) -> Result<Looked, RpcError> {
    answered(path, timeout(LIMIT, look).await)
}

fn answered(
    path: &str,
    looked: Result<Result<Looked, ExecutorError>, tokio::time::error::Elapsed>,
) -> Result<Looked, RpcError> {
    match looked {
        Ok(looked) => looked.map_err(|error| rpc_error(&error.into())),
        Err(_) => {
            let message = format!("{path} was not read within {} s", LIMIT.as_secs());
            Err(RpcError::new(ErrorCode::Runtime, message))
        }
    }
}

fn find(context: &Context, id: ExecutorId) -> Result<Arc<dyn Executor>, RpcError> {
    let definitions = context.runtime.definitions();
    let found = definitions.executors.get(&id).cloned();
    found.ok_or_else(|| {
        let known = definitions.executors.keys().cloned().collect();
        rpc_error(&RuntimeError::UnknownExecutor { id, known })
    })
}

fn working_dir(context: &Context) -> String {
    let folder = &context.facts.working_dir;
    folder.to_string_lossy().into_owned()
}
