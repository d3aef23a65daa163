//! The simulation behind the seam.

use std::io;
use std::path::{Path, PathBuf};

use crate::fs::{DirEntry, Fs, FsFile, Open, Stamp};
use crate::sim::disk::Disk;
use crate::sim::fault::{Effect, Op};
use crate::sim::journal::Id;
use crate::sim::{SimFs, State};

impl SimFs {
    fn on_disk<T>(
        &self,
        op: Op,
        path: &Path,
        work: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.state();
        state.begin(op, path)?;
        work(&mut state.disk)
    }
}

impl Fs for SimFs {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn FsFile>> {
        let (id, handle) = self.on_disk(Op::Open, path, |disk| disk.open(path, how))?;
        Ok(Box::new(SimFile {
            fs: self.clone(),
            path: path.to_owned(),
            id,
            handle,
        }))
    }

    fn metadata(&self, path: &Path) -> io::Result<Stamp> {
        self.on_disk(Op::Metadata, path, |disk| disk.stamp(disk.find(path)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.on_disk(Op::CreateDir, path, |disk| disk.create_dir(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.on_disk(Op::List, path, |disk| disk.list(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.on_disk(Op::Rename, from, |disk| disk.rename(from, to))
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.on_disk(Op::Unlink, path, |disk| disk.unlink(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.on_disk(Op::RemoveDir, path, |disk| disk.remove_dir(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.on_disk(Op::SyncDir, path, |disk| disk.sync_dir(path))
    }
}

/// An open file of the simulation.
#[derive(Debug)]
struct SimFile {
    fs: SimFs,
    path: PathBuf,
    id: Id,
    handle: u64,
}

impl SimFile {
    fn begin<T>(
        &self,
        op: Op,
        work: impl FnOnce(&mut State, Option<Effect>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.fs.state();
        let effect = state.begin(op, &self.path)?;
        work(&mut state, effect)
    }
}

impl FsFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.begin(Op::Read, |state, _| {
            let data = &state.disk.image(self.id)?.data;
            let rest = data.get(offset as usize..).unwrap_or_default();
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin(Op::Write, |state, effect| {
            let mut length = bytes.len() as u64;
            if effect == Some(Effect::Short) {
                length = length.div_ceil(2);
            }
            let room = state.disk.room();
            if room == 0 && length > 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let length = length.min(room) as usize;
            state.disk.modify(self.id)?.append(&bytes[..length]);
            Ok(length)
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.begin(Op::Sync, |state, effect| {
            let image = state.disk.image_mut(self.id)?;
            match effect {
                Some(Effect::SyncLies) => {}
                Some(Effect::SyncLoses(code)) => {
                    image.lose();
                    return Err(io::Error::from_raw_os_error(code));
                }
                _ => image.flush(),
            }
            Ok(())
        })
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.begin(Op::Truncate, |state, _| {
            state.disk.modify(self.id)?.truncate(length);
            Ok(())
        })
    }

    fn metadata(&self) -> io::Result<Stamp> {
        self.begin(Op::Metadata, |state, _| state.disk.stamp(self.id))
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.begin(Op::Lock, |state, _| {
            let node = state.disk.node_mut(self.id)?;
            let is_free = node.lock.is_none_or(|holder| holder == self.handle);
            if is_free {
                node.lock = Some(self.handle);
            }
            Ok(is_free)
        })
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.fs.state().disk.close(self.id, self.handle);
    }
}
