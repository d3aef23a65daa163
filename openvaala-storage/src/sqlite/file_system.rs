//! Where a write-ahead log cannot be relied upon.

use std::path::Path;

/// File systems whose locks and shared memory are not those of one machine: name and what `statfs` says in `f_type`.
#[cfg(target_os = "linux")]
const SHARED: &[(&str, u64)] = &[
    ("NFS", 0x6969),
    ("SMB", 0x517b),
    ("CIFS", 0xff53_4d42),
    ("SMB 2", 0xfe53_4d42),
    ("FUSE", 0x6573_5546),
    ("9P", 0x0102_1997),
    ("AFS", 0x5346_414f),
    ("kAFS", 0x6b41_4653),
    ("Coda", 0x7375_7245),
    ("NetWare", 0x564c),
    ("Ceph", 0x00c3_6400),
    ("Lustre", 0x0bd0_0bd0),
    ("GFS2", 0x0116_1970),
    ("OCFS2", 0x7461_636f),
    ("VirtualBox", 0x786f_4256),
];

/// Returns the name of a file system on which the write-ahead log of SQLite must not be used.
#[cfg(target_os = "linux")]
pub(super) fn shared(kind: u64) -> Option<&'static str> {
    let mut known = SHARED.iter();
    known.find(|(_, it)| *it == kind).map(|(name, _)| *name)
}

/// Asks for the type of the file system that a file is on; `None` where nothing can be asked.
#[cfg(target_os = "linux")]
pub(super) fn kind_of(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statfs(path).ok()?;
    // The width of the field differs from machine to machine; the numbers have 32 bits.
    Some(u64::from(stat.f_type as u32))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn shared(_: u64) -> Option<&'static str> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kind_of(_: &Path) -> Option<u64> {
    None
}
