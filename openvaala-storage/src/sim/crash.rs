//! What the next process finds.

use std::collections::{HashMap, HashSet};

use crate::sim::disk::{Content, Disk, Node, ROOT};
use crate::sim::journal::Journal;
use crate::sim::random::Random;

impl Disk {
    /// Returns the disk after the end of all processes.
    pub(super) fn without_handles(&self) -> Self {
        let mut disk = self.clone();
        for node in disk.nodes.values_mut() {
            if node.opened > 0 && !node.is_linked {
                disk.free_inodes.push(node.inode);
            }
            (node.opened, node.lock) = (0, None);
        }
        disk.quota = None;
        disk
    }

    /// Returns the disk after a power cut.
    pub(super) fn after_power_cut(&self, random: &mut Random) -> Self {
        let entries = self.journal.after_power_cut(random);
        let mut disk = Self {
            nodes: HashMap::new(),
            journal: Journal::of(entries.clone()),
            quota: None,
            next: self.next,
            free_inodes: Vec::new(),
            clock: self.clock,
        };
        let mut inodes = HashSet::new();
        let mut reached = vec![ROOT];
        while let Some(id) = reached.pop() {
            let Some(node) = self.nodes.get(&id) else {
                continue;
            };
            let content = match &node.content {
                Content::Directory(_) => {
                    let entries = entries.get(&id).cloned().unwrap_or_default();
                    reached.extend(entries.values());
                    Content::Directory(entries)
                }
                Content::File(image) => Content::File(image.after_power_cut(random)),
            };
            // A deletion that was undone may have given its number away.
            let inode = if inodes.insert(node.inode) {
                node.inode
            } else {
                disk.next += 1;
                disk.next + 1_000_000
            };
            disk.nodes.insert(
                id,
                Node {
                    content,
                    inode,
                    modified: node.modified,
                    is_linked: true,
                    opened: 0,
                    lock: None,
                },
            );
        }
        disk
    }
}
