//! File systems that fail: small ones, read-only ones, ones whose power is cut.
//!
//! They need root, or a loop device; [`available`] says in a notice what cannot be had. All are unmounted when dropped, also
//! in a test that fails.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::notice::{is_root, not_run, works};
use crate::wait;

/// `EXT4_IOC_SHUTDOWN`.
const SHUTDOWN: u32 = 0x8004_587d;

/// Whether file systems can be mounted here; says so if not.
#[must_use]
pub fn available(what: &str) -> bool {
    if !is_root() {
        not_run(what, "mounting needs root");
        return false;
    }
    let folder = tempfile::tempdir().expect("a directory can be made");
    let mounted = mount(&["-t", "tmpfs", "-o", "size=64k", "tmpfs"], folder.path());
    if mounted {
        unmount(folder.path());
    } else {
        not_run(what, "this machine does not let root mount a tmpfs");
    }
    mounted
}

/// A tmpfs of 1 MiB.
#[derive(Debug)]
pub struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Mounts it, and makes the folder for that if need be.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn mount(at: &Path) -> Self {
        fs::create_dir_all(at).expect("the folder can be made");
        let mounted = mount(&["-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs"], at);
        assert!(mounted, "a tmpfs can be mounted");
        Self { at: at.to_owned() }
    }

    /// Fills all but that many bytes.
    ///
    /// # Panics
    /// If it cannot be written at all.
    pub fn fill_but(&self, left: usize) {
        let ballast = self.at.join("ballast");
        let mut size = 1 << 20;
        // The blocks of the file system decide how much fits.
        while size > 0 && fs::write(&ballast, vec![b'x'; size]).is_err() {
            size -= 4096;
        }
        let size = size.saturating_sub(left);
        fs::write(&ballast, vec![b'x'; size]).expect("what fitted fits again");
    }

    /// Gives the room back.
    ///
    /// # Panics
    /// If it was not filled.
    pub fn free(&self) {
        fs::remove_file(self.at.join("ballast")).expect("the disk was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, since a server that is just being killed may still have files open.
        unmount_lazily(&self.at);
    }
}

/// A folder that is bound to itself and can be made read-only.
#[derive(Debug)]
pub struct ReadOnly {
    at: PathBuf,
}

impl ReadOnly {
    /// Makes it read-only.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn mount(at: &Path) -> Self {
        let source = at.to_str().expect("the folder has a plain name");
        assert!(mount(&["--bind", source], at), "a folder can be bound");
        let bound = Self { at: at.to_owned() };
        let read_only = works("mount", &["-o", "remount,bind,ro", source]);
        assert!(read_only, "a bound folder can be made read-only");
        bound
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        unmount_lazily(&self.at);
    }
}

/// A folder that is there a second time, in another place.
#[derive(Debug)]
pub struct Bound {
    at: PathBuf,
}

impl Bound {
    /// Binds it, and makes the place for it if need be.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn mount(folder: &Path, at: &Path) -> Self {
        fs::create_dir_all(at).expect("the place can be made");
        let source = folder.to_str().expect("the folder has a plain name");
        assert!(mount(&["--bind", source], at), "a folder can be bound");
        Self { at: at.to_owned() }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        unmount_lazily(&self.at);
    }
}

/// What the cut keeps of an ext4 file system.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// The journal is flushed, data that was not flushed is lost: sizes without their bytes.
    JournalFlushed = 1,
    /// Nothing more is flushed.
    NothingFlushed = 2,
}

/// An ext4 file system in a file.
#[derive(Debug)]
pub struct PowerDisk {
    image: PathBuf,
    at: PathBuf,
    options: String,
    is_mounted: bool,
}

impl PowerDisk {
    /// Whether one can be had here; says so if not.
    #[must_use]
    pub fn available(what: &str) -> bool {
        if !available(what) {
            return false;
        }
        let there = works("losetup", &["-f"]) && works("mkfs.ext4", &["-V"]);
        if !there {
            not_run(what, "there is no free loop device, or no mkfs.ext4");
        }
        there && works("python3", &["-c", "import fcntl"])
    }

    /// Makes one of 64 MiB in a folder and mounts it.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn new(image: &Path, at: &Path, options: &str) -> Self {
        fs::create_dir_all(at).expect("the folder can be made");
        let file = File::create(image).expect("the image can be made");
        file.set_len(64 << 20).expect("the image can be made");
        let path = image.to_str().expect("the image has a plain name");
        assert!(works("mkfs.ext4", &["-q", "-F", path]), "mkfs.ext4");
        let mut disk = Self {
            image: image.to_owned(),
            at: at.to_owned(),
            options: options.to_owned(),
            is_mounted: false,
        };
        disk.mount();
        disk
    }

    fn mount(&mut self) {
        let image = self.image.to_str().expect("the image has a plain name");
        let options = format!("loop,{}", self.options);
        let mounted = mount(&["-t", "ext4", "-o", &options, image], &self.at);
        assert!(mounted, "{options}: ext4 can be mounted");
        self.is_mounted = true;
    }

    /// Cuts the power: from now on every write fails.
    ///
    /// # Panics
    /// If the file system does not know how.
    pub fn cut(&self, what: Cut) {
        // No safe wrapper of this call exists; Python has one.
        let script = "import fcntl, os, struct, sys\n\
            fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2]), struct.pack('I', int(sys.argv[3])))";
        let status = Command::new("python3")
            .args(["-c", script])
            .arg(&self.at)
            .args([SHUTDOWN.to_string(), (what as u32).to_string()])
            .status();
        let cut = status.is_ok_and(|status| status.success());
        assert!(cut, "the power of ext4 can be cut");
    }

    /// Brings it back, as a machine does that starts again. Nobody may have files open on it.
    ///
    /// # Panics
    /// If it cannot.
    pub fn restart(&mut self) {
        wait::until("the end of the mount", || {
            if works("umount", &[self.at.to_str().unwrap_or_default()]) {
                Ok(())
            } else {
                Err("it is in use")
            }
        });
        self.is_mounted = false;
        self.mount();
    }
}

impl Drop for PowerDisk {
    fn drop(&mut self) {
        if self.is_mounted {
            // The loop device goes with the last user of the mount.
            unmount_lazily(&self.at);
        }
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    let at = at.to_str().expect("the folder has a plain name");
    works("mount", &[arguments, &[at]].concat())
}

fn unmount(at: &Path) {
    let _ = works("umount", &[at.to_str().unwrap_or_default()]);
}

fn unmount_lazily(at: &Path) {
    let _ = works("umount", &["-l", at.to_str().unwrap_or_default()]);
}
