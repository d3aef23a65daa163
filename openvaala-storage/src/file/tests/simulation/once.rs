//! What the schedules have found, each as a story of its own.

use futures::executor::block_on;
use pretty_assertions::assert_eq;

use super::super::{all, key};
use super::{EIO, file, open, options, send};
use crate::error::Error;
use crate::fs::{Fs, Open};
use crate::log::LogStorage;
use crate::sim::{Effect, Fault, Op, SimFs};

#[test]
fn r_24_a_deletion_that_failed_is_durable_when_it_is_done_again() {
    let disk = SimFs::new();
    let storage = open(options(&disk)).unwrap();
    let key = key("c/one/s");
    send(&storage, &key, &["1".into()]).unwrap();
    // The stream is gone, but this is not flushed.
    disk.inject(Fault::at(1, Effect::Error(EIO)).of(&[Op::SyncDir]));
    block_on(storage.delete(&key)).unwrap_err();
    assert_eq!(block_on(storage.info(&key)).unwrap(), None);
    assert!(!block_on(storage.delete(&key)).unwrap());
    drop(storage);
    for seed in 0..50 {
        let storage = open(options(&disk.crash(seed))).unwrap();
        assert_eq!(block_on(storage.info(&key)).unwrap(), None, "{seed}");
    }
}

#[test]
fn r_17_what_a_failed_flush_has_lost_is_not_taken_for_written_by_the_next_process() {
    let disk = SimFs::new();
    let storage = open(options(&disk)).unwrap();
    let key = key("c/one/s");
    send(&storage, &key, &["1".into()]).unwrap();
    disk.inject(Fault::at(1, Effect::SyncLoses(EIO)));
    send(&storage, &key, &["2".into()]).unwrap_err();
    drop(storage);
    let storage = open(options(&disk)).unwrap();
    assert_eq!(send(&storage, &key, &["3".into()]).unwrap().first, 2);
    drop(storage);
    for seed in 0..50 {
        let storage = open(options(&disk.crash(seed))).unwrap();
        let found = block_on(all(&storage, &key));
        assert_eq!(found, [(1, "1".to_owned()), (2, "3".to_owned())], "{seed}");
    }
}

#[test]
fn r_17_what_a_failed_flush_has_lost_of_a_predecessor_takes_no_acknowledged_entry_with_it() {
    let disk = SimFs::new();
    let storage = open(options(&disk)).unwrap();
    let key = key("c/one/s");
    send(&storage, &key, &["1".into()]).unwrap();
    // The process ends between a write and its flush; nobody can know this later.
    disk.inject(Fault::at(1, Effect::PowerCut).of(&[Op::Sync]));
    send(&storage, &key, &["2".into()]).unwrap_err();
    drop(storage);
    let disk = disk.kill();
    let storage = open(options(&disk)).unwrap();
    disk.inject(Fault::at(1, Effect::SyncLoses(EIO)));
    send(&storage, &key, &["0".into()]).unwrap_err();
    assert_eq!(
        send(&storage, &key, &["3".into(), "4".into()])
            .unwrap()
            .first,
        3
    );
    drop(storage);
    for seed in 0..50 {
        let storage = open(options(&disk.crash(seed))).unwrap();
        let expected = [(1, "1"), (2, "damaged"), (3, "3"), (4, "4")];
        let expected = expected.map(|(number, text)| (number, text.to_owned()));
        assert_eq!(block_on(all(&storage, &key)), expected, "{seed}");
    }
}

#[test]
fn r_18_a_stream_that_can_be_neither_made_nor_removed_shows_nothing() {
    let disk = SimFs::new();
    let storage = open(options(&disk)).unwrap();
    let key = key("c/one/s");
    disk.inject(Fault::at(1, Effect::Error(EIO)).of(&[Op::SyncDir]));
    disk.inject(Fault::at(1, Effect::Error(EIO)).of(&[Op::Unlink]));
    send(&storage, &key, &["1".into(), "2".into()]).unwrap_err();
    assert_eq!(block_on(all(&storage, &key)), []);
    assert_eq!(send(&storage, &key, &["3".into()]).unwrap().first, 1);
    assert_eq!(block_on(all(&storage, &key)), [(1, "3".to_owned())]);
}

#[test]
fn r_20_where_a_power_cut_lost_the_beginning_of_a_batch_its_places_are_damaged() {
    let disk = SimFs::new();
    let storage = open(options(&disk)).unwrap();
    let key = key("c/one/s");
    send(&storage, &key, &["1".into()]).unwrap();
    let before = disk
        .open(&file(&key), Open::Read)
        .unwrap()
        .metadata()
        .unwrap()
        .length as usize;
    send(&storage, &key, &["2".into(), "3".into(), "4".into()]).unwrap();
    drop(storage);
    // The first sector of the batch was not written, the rest was.
    let bytes = disk.tree()[&file(&key)].clone().unwrap();
    let mut handle = disk.open(&file(&key), Open::Append).unwrap();
    handle.truncate(0).unwrap();
    let line = (bytes.len() - before) / 3;
    let torn = [
        &bytes[..before],
        &vec![0; line + 5],
        &bytes[before + line + 5..],
    ]
    .concat();
    assert_eq!(handle.write(&torn).unwrap(), torn.len());
    drop(handle);
    let storage = open(options(&disk)).unwrap();
    let expected = [(1, "1"), (2, "damaged"), (3, "damaged"), (4, "4")];
    let expected = expected.map(|(number, text)| (number, text.to_owned()));
    assert_eq!(block_on(all(&storage, &key))[..2], expected[..2]);
    assert_eq!(block_on(all(&storage, &key)), expected);
    assert_eq!(send(&storage, &key, &["5".into()]).unwrap().first, 5);
}

#[test]
fn r_12_a_disk_that_fills_up_says_so_and_goes_on_when_there_is_room() {
    let disk = SimFs::new();
    let storage = open(options(&disk)).unwrap();
    let key = key("c/one/s");
    send(&storage, &key, &["1".into()]).unwrap();
    let used: usize = disk.tree().values().flatten().map(Vec::len).sum();
    for room in 0..90 {
        disk.set_quota(Some(used as u64 + room));
        let full = send(&storage, &key, &["2".into(), "3".into()]).unwrap_err();
        assert!(matches!(full, Error::StorageFull { .. }), "{full}");
        assert_eq!(block_on(all(&storage, &key)), [(1, "1".to_owned())]);
    }
    disk.set_quota(None);
    assert_eq!(send(&storage, &key, &["2".into()]).unwrap().first, 2);
}
