//! The exclusive lock of a data directory.
//!
//! The lock is the kernel's, on the directory and on the lock file: it ends with its process, however that ends, and no process id is ever
//! judged. The lock on the directory holds also when somebody deletes the lock file. What the lock file says is information only.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Holder, Result};
use crate::file::layout::present;
use crate::file::scan::{read_exact_at, write_all};
use crate::fs::{Fs, FsFile, Open};

const LOCK_FILE: &str = "openvaala.lock";
const FORMAT_FILE: &str = "openvaala.format";
const FORMAT: u64 = 1;
const MAX_INFORMATION: u64 = 64 * 1024;
const ATTEMPTS: usize = 16;

/// The lock; dropping it gives the directory back.
#[derive(Debug)]
pub(super) struct Lock {
    _directory: Option<Box<dyn FsFile>>,
    file: Box<dyn FsFile>,
    path: PathBuf,
    information: Information,
}

impl Lock {
    /// Creates the directory if needed and takes its lock.
    pub(super) fn take(fs: &dyn Fs, root: &Path, started_at: Option<i64>) -> Result<Self> {
        create_root(fs, root)?;
        let path = root.join(LOCK_FILE);
        let directory = lock_directory(fs, root, &path)?;
        let file = lock_file(fs, root, &path)?;
        check_format(fs, root)?;
        let mut lock = Self {
            _directory: directory,
            file,
            path,
            information: Information {
                pid: rustix::process::getpid()
                    .as_raw_nonzero()
                    .get()
                    .unsigned_abs(),
                host: host(),
                started_at,
                address: None,
            },
        };
        lock.write()?;
        Ok(lock)
    }

    /// Writes the address of the server into the lock file.
    pub(super) fn announce(&mut self, address: String) -> Result<()> {
        self.information.address = Some(address);
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        let mut text =
            serde_json::to_vec(&self.information).map_err(|source| Error::Encode { source })?;
        text.push(b'\n');
        self.file
            .truncate(0)
            .and_then(|()| write_all(&mut *self.file, &text))
            .map_err(|source| Error::io("write", &self.path, source))
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct Information {
    pid: u32,
    host: Option<String>,
    started_at: Option<i64>,
    address: Option<String>,
}

fn host() -> Option<String> {
    let name = rustix::system::uname();
    name.nodename().to_str().ok().map(str::to_owned)
}

fn create_root(fs: &dyn Fs, root: &Path) -> Result<()> {
    let failed = |source| Error::io("create", root, source);
    let mut missing = Vec::new();
    let mut directory = Some(root);
    while let Some(path) = directory.filter(|path| !path.as_os_str().is_empty()) {
        if present(fs.metadata(path)).map_err(failed)?.is_some() {
            break;
        }
        missing.push(path);
        directory = path.parent();
    }
    for path in missing.into_iter().rev() {
        match fs.create_dir(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
        fs.sync_dir(parent.unwrap_or_else(|| Path::new(".")))
            .map_err(failed)?;
    }
    Ok(())
}

fn lock_directory(fs: &dyn Fs, root: &Path, path: &Path) -> Result<Option<Box<dyn FsFile>>> {
    let directory = fs
        .open(root, Open::Directory)
        .map_err(|source| Error::io("open", root, source))?;
    match directory.try_lock() {
        Ok(true) => Ok(Some(directory)),
        Ok(false) => Err(locked(fs, root, path)),
        Err(error) => {
            // Some network file systems lock files only; the lock file has to do there.
            tracing::debug!(root = %root.display(), %error, "the directory can't be locked itself");
            Ok(None)
        }
    }
}

fn lock_file(fs: &dyn Fs, root: &Path, path: &Path) -> Result<Box<dyn FsFile>> {
    let failed = |operation| move |source| Error::io(operation, path, source);
    for _ in 0..ATTEMPTS {
        let file = fs
            .open(path, Open::AppendOrCreate)
            .map_err(failed("open"))?;
        if !file.try_lock().map_err(failed("lock"))? {
            return Err(locked(fs, root, path));
        }
        // The file may have been replaced between opening and locking: then the lock is on nobody's file.
        let ours = file.metadata().map_err(failed("open"))?.inode;
        let there = present(fs.metadata(path)).map_err(failed("open"))?;
        if there.is_some_and(|there| there.inode == ours) {
            return Ok(file);
        }
    }
    Err(locked(fs, root, path))
}

fn locked(fs: &dyn Fs, root: &Path, path: &Path) -> Error {
    let text = read_small(fs, path).unwrap_or_default();
    let information = serde_json::from_slice::<Information>(&text).ok();
    Error::Locked {
        path: root.to_owned(),
        holder: information.map(|it| Holder {
            pid: it.pid,
            address: it.address,
            host: it.host,
            started_at: it.started_at,
        }),
    }
}

/// Refuses a directory that a newer version has written; marks a new one.
fn check_format(fs: &dyn Fs, root: &Path) -> Result<()> {
    let path = root.join(FORMAT_FILE);
    let failed = |source| Error::io("read", &path, source);
    let text = present(read_small(fs, &path))
        .map_err(failed)?
        .unwrap_or_default();
    if text.is_empty() {
        let write = || {
            let mut file = fs.open(&path, Open::AppendOrCreate)?;
            write_all(&mut *file, format!("{FORMAT}\n").as_bytes())?;
            file.sync_data()?;
            fs.sync_dir(root)
        };
        return write().map_err(|source| Error::io("write", &path, source));
    }
    let number = str::from_utf8(&text)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    match number {
        Some(FORMAT) => Ok(()),
        Some(found) => Err(Error::NewerFormat {
            path: root.to_owned(),
            found,
            supported: FORMAT,
        }),
        None => Err(Error::Damaged {
            path,
            offset: 0,
            reason: format!("it should hold the number {FORMAT}"),
        }),
    }
}

fn read_small(fs: &dyn Fs, path: &Path) -> io::Result<Vec<u8>> {
    let file = fs.open(path, Open::Read)?;
    let mut text = vec![0; file.metadata()?.length.min(MAX_INFORMATION) as usize];
    read_exact_at(&*file, &mut text, 0)?;
    Ok(text)
}
