//! The simulation itself: like a real file system while nothing goes wrong, and as merciless as it says when something does.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use crate::fs::{Fs, FsFile, Open, RealFs};
use crate::sim::{Effect, Fault, Op, SimFs};

const EIO: i32 = 5;

#[derive(Clone, Debug)]
enum Call {
    CreateDir(PathBuf),
    List(PathBuf),
    Metadata(PathBuf),
    RemoveDir(PathBuf),
    Rename(PathBuf, PathBuf),
    SyncDir(PathBuf),
    Truncate(PathBuf, u64),
    Unlink(PathBuf),
    Write(PathBuf, bool, Vec<u8>),
}

fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(prop::sample::select(vec!["a", "b"]), 1..4)
        .prop_map(|names| names.iter().collect())
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => path().prop_map(Call::CreateDir),
        1 => path().prop_map(Call::List),
        1 => path().prop_map(Call::Metadata),
        2 => path().prop_map(Call::RemoveDir),
        4 => (path(), path()).prop_map(|(from, to)| Call::Rename(from, to)),
        1 => path().prop_map(Call::SyncDir),
        2 => (path(), 0u64..9).prop_map(|(path, length)| Call::Truncate(path, length)),
        2 => path().prop_map(Call::Unlink),
        6 => (path(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(path, is_new, bytes)| Call::Write(path, is_new, bytes)),
    ]
}

/// Does a thing and returns what a program can tell of it.
fn answer(fs: &dyn Fs, root: &Path, call: &Call) -> Result<String, ErrorKind> {
    let at = |path: &Path| root.join(path);
    let done = match call {
        Call::CreateDir(path) => fs.create_dir(&at(path)).map(|()| String::new()),
        Call::List(path) => fs.list(&at(path)).map(|mut entries| {
            entries.sort_by(|one, other| one.name.cmp(&other.name));
            format!("{entries:?}")
        }),
        Call::Metadata(path) => fs.metadata(&at(path)).map(|stamp| {
            let length = if stamp.is_dir { 0 } else { stamp.length };
            format!("{} {length}", stamp.is_dir)
        }),
        Call::RemoveDir(path) => fs.remove_dir(&at(path)).map(|()| String::new()),
        Call::Rename(from, to) => fs.rename(&at(from), &at(to)).map(|()| String::new()),
        Call::SyncDir(path) => fs
            .list(&at(path))
            .and_then(|_| fs.sync_dir(&at(path)))
            .map(|()| String::new()),
        Call::Truncate(path, length) => fs.open(&at(path), Open::Append).and_then(|file| {
            file.truncate(*length)?;
            Ok(file.metadata()?.length.to_string())
        }),
        Call::Unlink(path) => fs.unlink(&at(path)).map(|()| String::new()),
        Call::Write(path, is_new, bytes) => {
            let how = if *is_new {
                Open::CreateNew
            } else {
                Open::AppendOrCreate
            };
            fs.open(&at(path), how).and_then(|mut file| {
                let mut found = vec![0; 64];
                let written = file.write(bytes)?;
                file.sync_data()?;
                let read = file.read_at(&mut found, 1)?;
                Ok(format!("{written} {:?}", &found[..read]))
            })
        }
    };
    done.map_err(|error| error.kind())
}

proptest! {
    #[test]
    fn it_answers_as_the_file_system_of_this_machine(calls in prop::collection::vec(call(), 1..40)) {
        let (simulated, dir) = (SimFs::new(), tempfile::tempdir().unwrap());
        for call in &calls {
            let expected = answer(&RealFs::default(), dir.path(), call);
            let found = answer(&simulated, Path::new("/"), call);
            prop_assert_eq!(found, expected, "{:?}", call);
        }
    }
}

fn write(fs: &SimFs, path: &str, bytes: &[u8]) -> Box<dyn FsFile> {
    let mut file = fs.open(path.as_ref(), Open::AppendOrCreate).unwrap();
    assert_eq!(file.write(bytes).unwrap(), bytes.len());
    file
}

fn tree(fs: &SimFs) -> BTreeMap<String, Option<Vec<u8>>> {
    let tree = fs.tree().into_iter();
    tree.map(|(path, content)| (path.to_string_lossy().into_owned(), content))
        .collect()
}

/// Returns all that power cuts leave.
fn found(fs: &SimFs) -> BTreeSet<BTreeMap<String, Option<Vec<u8>>>> {
    (0..300).map(|seed| tree(&fs.crash(seed))).collect()
}

#[test]
fn what_was_flushed_with_its_directories_is_always_found() {
    let fs = SimFs::new();
    fs.create_dir("/a".as_ref()).unwrap();
    fs.sync_dir("/".as_ref()).unwrap();
    write(&fs, "/a/f", b"kept").sync_data().unwrap();
    fs.sync_dir("/a".as_ref()).unwrap();
    assert_eq!(found(&fs), BTreeSet::from([tree(&fs)]));
}

#[test]
fn an_entry_is_lost_or_kept_until_its_directory_is_flushed() {
    let fs = SimFs::new();
    write(&fs, "/f", b"x").sync_data().unwrap();
    assert_eq!(found(&fs), BTreeSet::from([BTreeMap::new(), tree(&fs)]));
}

#[test]
fn of_a_write_that_was_not_flushed_there_may_be_nothing_a_part_or_only_the_length() {
    let fs = SimFs::new();
    let file = write(&fs, "/f", b"old ");
    file.sync_data().unwrap();
    fs.sync_dir("/".as_ref()).unwrap();
    write(&fs, "/f", &[b'n'; 2000]);
    let contents: BTreeSet<Vec<u8>> = found(&fs)
        .into_iter()
        .map(|tree| tree["/f"].clone().unwrap())
        .collect();
    let whole = [b"old ".as_slice(), &[b'n'; 2000]].concat();
    let zeros = [b"old ".as_slice(), &[0; 2000]].concat();
    for expected in [b"old ".to_vec(), whole, zeros] {
        assert!(contents.contains(&expected));
    }
    let holes = contents
        .iter()
        .filter(|content| content.contains(&0) && content.contains(&b'n'));
    assert!(holes.count() > 5);
    assert!(contents.iter().all(|content| content.starts_with(b"old ")));
}

#[test]
fn a_rename_between_directories_is_done_or_not_and_never_loses_both() {
    let fs = SimFs::new();
    for directory in ["/a", "/b"] {
        fs.create_dir(directory.as_ref()).unwrap();
    }
    write(&fs, "/a/f", b"x").sync_data().unwrap();
    for directory in ["/", "/a"] {
        fs.sync_dir(directory.as_ref()).unwrap();
    }
    let before = tree(&fs);
    fs.rename("/a/f".as_ref(), "/b/g".as_ref()).unwrap();
    let after = tree(&fs);
    assert_eq!(found(&fs), BTreeSet::from([before.clone(), after.clone()]));
    // Also when the old directory is removed: that is durable only with the rename.
    fs.remove_dir("/a".as_ref()).unwrap();
    let gone = tree(&fs);
    assert_eq!(found(&fs), BTreeSet::from([before, after, gone]));
    fs.sync_dir("/b".as_ref()).unwrap();
    assert!(found(&fs).iter().all(|tree| tree.contains_key("/b/g")));
}

#[test]
fn a_flush_that_fails_may_forget_and_later_ones_say_that_all_is_well() {
    let fs = SimFs::new();
    let mut file = write(&fs, "/f", b"");
    fs.sync_dir("/".as_ref()).unwrap();
    fs.inject(Fault::at(1, Effect::SyncLoses(EIO)));
    file.write(b"lost").unwrap();
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(EIO));
    file.write(b"kept").unwrap();
    file.sync_data().unwrap();
    assert_eq!(tree(&fs)["/f"].as_deref(), Some(b"lostkept".as_slice()));
    let expected = BTreeMap::from([("/f".to_owned(), Some(b"\0\0\0\0kept".to_vec()))]);
    assert_eq!(found(&fs), BTreeSet::from([expected]));
}

#[test]
fn after_the_end_of_a_process_all_is_there_and_locks_are_free() {
    let fs = SimFs::new();
    let file = write(&fs, "/f", b"x");
    assert!(file.try_lock().unwrap());
    assert!(
        !fs.open("/f".as_ref(), Open::Read)
            .unwrap()
            .try_lock()
            .unwrap()
    );
    let next = fs.kill();
    assert_eq!(tree(&next), tree(&fs));
    assert!(
        next.open("/f".as_ref(), Open::Read)
            .unwrap()
            .try_lock()
            .unwrap()
    );
    drop(file);
    assert!(
        fs.open("/f".as_ref(), Open::Read)
            .unwrap()
            .try_lock()
            .unwrap()
    );
}

#[test]
fn a_full_disk_takes_what_fits_and_then_nothing_until_there_is_room() {
    let fs = SimFs::new();
    write(&fs, "/f", b"1234");
    fs.set_quota(Some(6));
    let mut file = fs.open("/g".as_ref(), Open::CreateNew).unwrap();
    assert_eq!(file.write(b"abc").unwrap(), 2);
    assert_eq!(file.write(b"c").unwrap_err().kind(), ErrorKind::StorageFull);
    fs.unlink("/f".as_ref()).unwrap();
    assert_eq!(file.write(b"c").unwrap(), 1);
}

#[test]
fn after_the_power_is_cut_everything_fails() {
    let fs = SimFs::new();
    let mut file = write(&fs, "/f", b"1");
    fs.inject(Fault::at(2, Effect::PowerCut).of(&[Op::Write]));
    file.write(b"2").unwrap();
    file.write(b"3").unwrap_err();
    assert!(fs.is_cut());
    file.sync_data().unwrap_err();
    fs.metadata("/f".as_ref()).unwrap_err();
    assert_eq!(tree(&fs)["/f"].as_deref(), Some(b"12".as_slice()));
    assert!(fs.clear_faults());
    file.sync_data().unwrap();
    assert_eq!(fs.counts()[&Op::Write], 3);
}
