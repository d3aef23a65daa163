//! The image that processes see.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::fs::{DirEntry, Open, Stamp};
use crate::sim::image::Image;
use crate::sim::journal::{Entries, Id, Journal, NameChange};

pub(super) const ROOT: Id = 0;

/// A file or a directory.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    /// The number that processes see; like on a real disk it comes again when its node is gone.
    pub(super) inode: u64,
    pub(super) modified: i128,
    pub(super) is_linked: bool,
    /// How many handles are open.
    pub(super) opened: usize,
    /// The handle that has the lock.
    pub(super) lock: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Directory(Entries),
    File(Image),
}

/// All nodes, and what of the names is durable.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    pub(super) nodes: HashMap<Id, Node>,
    pub(super) journal: Journal,
    pub(super) quota: Option<u64>,
    pub(super) next: u64,
    pub(super) free_inodes: Vec<u64>,
    pub(super) clock: i128,
}

impl Default for Disk {
    fn default() -> Self {
        let mut disk = Self {
            nodes: HashMap::new(),
            journal: Journal::default(),
            quota: None,
            next: ROOT,
            free_inodes: Vec::new(),
            clock: 1_700_000_000_000_000_000,
        };
        let root = disk.add(Content::Directory(Entries::new()));
        debug_assert_eq!(root, ROOT);
        disk
    }
}

impl Disk {
    /// Opens a path and returns the node with a number for the handle.
    pub(super) fn open(&mut self, path: &Path, how: Open) -> io::Result<(Id, u64)> {
        let writes = matches!(how, Open::Append | Open::AppendOrCreate | Open::CreateNew);
        let id = match self.find(path) {
            Ok(_) if how == Open::CreateNew => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(id) if writes && self.node(id)?.is_dir() => {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok(id) => id,
            Err(error) if error.kind() == io::ErrorKind::NotFound && creates(how) => {
                let (parent, name) = self.place(path)?;
                let id = self.add(Content::File(Image::default()));
                self.change(vec![(parent, name, Some(id))], None)?;
                id
            }
            Err(error) => return Err(error),
        };
        self.node_mut(id)?.opened += 1;
        self.next += 1;
        Ok((id, self.next))
    }

    pub(super) fn close(&mut self, id: Id, handle: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.opened = node.opened.saturating_sub(1);
            if node.lock == Some(handle) {
                node.lock = None;
            }
            let (is_gone, inode) = (node.opened == 0 && !node.is_linked, node.inode);
            if is_gone {
                self.free_inodes.push(inode);
            }
        }
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        if self.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (parent, name) = self.place(path)?;
        let id = self.add(Content::Directory(Entries::new()));
        self.change(vec![(parent, name, Some(id))], None)
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let entries = self.entries(self.find(path)?)?;
        let listed = entries.iter().map(|(name, id)| {
            Ok(DirEntry {
                name: name.clone(),
                is_dir: self.node(*id)?.is_dir(),
            })
        });
        listed.collect()
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let ((from_dir, from_name), (to_dir, to_name)) = (self.place(from)?, self.place(to)?);
        let id = self.find(from)?;
        if to.starts_with(from) {
            // To itself is nothing; a directory can't be moved into itself.
            return if to == from {
                Ok(())
            } else {
                Err(io::ErrorKind::InvalidInput.into())
            };
        }
        if from.starts_with(to) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let replaced = self.find(to).ok();
        if let Some(old) = replaced {
            match (self.node(id)?.is_dir(), self.node(old)?.is_dir()) {
                (false, false) => {}
                (true, true) if self.entries(old)?.is_empty() => {}
                (true, true) => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
                (true, false) => return Err(io::ErrorKind::NotADirectory.into()),
                (false, true) => return Err(io::ErrorKind::IsADirectory.into()),
            }
            self.unlinked(old)?;
        }
        let names = vec![(from_dir, from_name, None), (to_dir, to_name, Some(id))];
        self.change(names, replaced)
    }

    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let id = self.find(path)?;
        if self.node(id)?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let (parent, name) = self.place(path)?;
        self.unlinked(id)?;
        self.change(vec![(parent, name, None)], None)
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let id = self.find(path)?;
        if !self.entries(id)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (parent, name) = self.place(path)?;
        self.unlinked(id)?;
        self.change(vec![(parent, name, None)], Some(id))
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        let id = self.find(path)?;
        self.entries(id)?;
        self.journal.flush(id);
        Ok(())
    }

    pub(super) fn stamp(&self, id: Id) -> io::Result<Stamp> {
        let node = self.node(id)?;
        let length = match &node.content {
            Content::Directory(_) => 0,
            Content::File(image) => image.data.len() as u64,
        };
        Ok(Stamp {
            inode: node.inode,
            length,
            modified: node.modified,
            is_dir: node.is_dir(),
        })
    }

    pub(super) fn image(&self, id: Id) -> io::Result<&Image> {
        match &self.node(id)?.content {
            Content::File(image) => Ok(image),
            Content::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// Returns the content of a file that is about to be flushed.
    pub(super) fn image_mut(&mut self, id: Id) -> io::Result<&mut Image> {
        match &mut self.node_mut(id)?.content {
            Content::File(image) => Ok(image),
            Content::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// Returns the content of a file that is about to change.
    pub(super) fn modify(&mut self, id: Id) -> io::Result<&mut Image> {
        let now = self.tick();
        self.node_mut(id)?.modified = now;
        self.image_mut(id)
    }

    /// Returns how many more bytes there is room for.
    pub(super) fn room(&self) -> u64 {
        let Some(quota) = self.quota else {
            return u64::MAX;
        };
        let in_use = |node: &&Node| node.is_linked || node.opened > 0;
        let used = self.nodes.values().filter(in_use);
        let used = used.map(|node| match &node.content {
            Content::Directory(_) => 0,
            Content::File(image) => image.data.len() as u64,
        });
        quota.saturating_sub(used.sum())
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<Id> {
        let mut id = ROOT;
        for component in path.components() {
            match component {
                Component::RootDir | Component::CurDir => {}
                Component::Normal(name) => {
                    let entries = self.entries(id)?;
                    let found = name.to_str().and_then(|name| entries.get(name));
                    id = *found.ok_or(io::ErrorKind::NotFound)?;
                }
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(io::ErrorKind::Unsupported.into());
                }
            }
        }
        Ok(id)
    }

    pub(super) fn node(&self, id: Id) -> io::Result<&Node> {
        Ok(self.nodes.get(&id).ok_or(io::ErrorKind::NotFound)?)
    }

    pub(super) fn node_mut(&mut self, id: Id) -> io::Result<&mut Node> {
        Ok(self.nodes.get_mut(&id).ok_or(io::ErrorKind::NotFound)?)
    }

    pub(super) fn tree(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut tree = BTreeMap::new();
        let mut directories = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, id)) = directories.pop() {
            for (name, id) in self.entries(id).into_iter().flatten() {
                let path = path.join(name);
                let content = self.image(*id).ok().map(|image| image.data.clone());
                if content.is_none() {
                    directories.push((path.clone(), *id));
                }
                tree.insert(path, content);
            }
        }
        tree
    }

    fn entries(&self, id: Id) -> io::Result<&Entries> {
        match &self.node(id)?.content {
            Content::Directory(entries) => Ok(entries),
            Content::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Returns the directory in which a path is, and the path's name there.
    fn place(&self, path: &Path) -> io::Result<(Id, String)> {
        let name = path.file_name().and_then(|name| name.to_str());
        let (Some(name), Some(parent)) = (name, path.parent()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = self.find(parent)?;
        self.entries(parent)?;
        Ok((parent, name.to_owned()))
    }

    fn add(&mut self, content: Content) -> Id {
        let id = self.next;
        self.next += 1;
        // The number of the one that went last comes again first, as on real disks.
        let inode = self.free_inodes.pop().unwrap_or(id + 2);
        let modified = self.tick();
        self.nodes.insert(
            id,
            Node {
                content,
                inode,
                modified,
                is_linked: true,
                opened: 0,
                lock: None,
            },
        );
        id
    }

    /// Changes names as processes see them, and remembers it for the next flush.
    fn change(
        &mut self,
        names: Vec<(Id, String, Option<Id>)>,
        removed: Option<Id>,
    ) -> io::Result<()> {
        for (directory, name, id) in &names {
            let now = self.tick();
            let node = self.node_mut(*directory)?;
            node.modified = now;
            if let Content::Directory(entries) = &mut node.content {
                match id {
                    Some(id) => entries.insert(name.clone(), *id),
                    None => entries.remove(name),
                };
            }
        }
        self.journal.push(NameChange { names, removed });
        Ok(())
    }

    fn unlinked(&mut self, id: Id) -> io::Result<()> {
        let node = self.node_mut(id)?;
        node.is_linked = false;
        let (is_gone, inode) = (node.opened == 0, node.inode);
        if is_gone {
            self.free_inodes.push(inode);
        }
        Ok(())
    }

    fn tick(&mut self) -> i128 {
        self.clock += 1000;
        self.clock
    }
}

impl Node {
    pub(super) fn is_dir(&self) -> bool {
        matches!(self.content, Content::Directory(_))
    }
}

fn creates(how: Open) -> bool {
    matches!(how, Open::AppendOrCreate | Open::CreateNew)
}
