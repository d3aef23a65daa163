//! Private files: written whole or not at all, and not trusted when others could have written them.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// How old a temporary file must be to count as left behind by a process that was killed.
const STALE: Duration = Duration::from_secs(60);

/// Creates a directory that only its owner can enter, and its parents.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Refuses a directory that somebody else could put files into.
pub(crate) fn check_private_dir(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_dir() {
        return Err(io::Error::other("it is no directory"));
    }
    check_owner(&metadata)?;
    if metadata.mode() & 0o022 != 0 {
        let mode = metadata.mode() & 0o7777;
        let message = format!("others may write to it (mode {mode:04o}): run `chmod 700` on it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

/// Reads a file that only its owner can read or write; `None` if there is none.
///
/// A link, a file of somebody else, and one that others may read are refused.
pub(crate) fn read_private(path: &Path, limit: u64) -> io::Result<Option<String>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    check_owner(&metadata)?;
    let refuse = |message: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    if !metadata.is_file() || metadata.nlink() != 1 {
        return refuse("it is no plain file: delete it".to_owned());
    }
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o7777;
        return refuse(format!("others may use it (mode {mode:04o}): delete it"));
    }
    let mut text = String::new();
    file.take(limit).read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Puts a file with mode 0600 in place: readers see the old one or the new one, also after a power cut.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    replace(path, text, File::sync_all)?;
    File::open(directory(path))?.sync_all()
}

/// Puts a file with mode 0600 in place that means nothing after a power cut: readers see the old one or the new one, but
/// a power cut may leave an empty one.
pub(crate) fn write_private_volatile(path: &Path, text: &str) -> io::Result<()> {
    replace(path, text, |_| Ok(()))
}

fn replace(path: &Path, text: &str, flush: fn(&File) -> io::Result<()>) -> io::Result<()> {
    let (prefix, temporary) = temporary(path);
    remove_stale(directory(path), &prefix);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = write_new(&temporary, text)
        .and_then(|file| flush(&file))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // What failed matters more than what is left behind; a later write removes it.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or_else(|| Path::new("."))
}

fn write_new(path: &Path, text: &str) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// The beginning of the names of temporary files for a path, and the one of this process.
fn temporary(path: &Path) -> (OsString, PathBuf) {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".tmp-");
    let mut name = prefix.clone();
    name.push(std::process::id().to_string());
    (prefix, path.with_file_name(name))
}

fn remove_stale(directory: &Path, prefix: &OsString) {
    let is_stale = |entry: &fs::DirEntry| {
        let modified = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok();
        let age = modified.and_then(|time| SystemTime::now().duration_since(time).ok());
        let name = entry.file_name();
        let writer = name
            .as_encoded_bytes()
            .strip_prefix(prefix.as_encoded_bytes());
        writer.is_some_and(|writer| is_gone(writer) || age.is_some_and(|age| age > STALE))
    };
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten().filter(is_stale) {
        // It is in nobody's way.
        let _ = fs::remove_file(entry.path());
    }
}

/// Whether the process that a temporary file is named for has ended.
fn is_gone(writer: &[u8]) -> bool {
    let number = std::str::from_utf8(writer).ok();
    let number = number.and_then(|number| number.parse().ok());
    number
        .and_then(Pid::from_raw)
        .is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

fn check_owner(metadata: &fs::Metadata) -> io::Result<()> {
    let (owner, us) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner == us {
        return Ok(());
    }
    let message = format!("it belongs to user {owner}, not to user {us} who runs this");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}
