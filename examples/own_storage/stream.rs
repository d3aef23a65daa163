//! One stream: its entries, numbered from 1 without a gap, and pages of them.

use openvaala_core::storage::{
    Appended, Entry, EntryData, Fingerprint, NewEntry, Order, Page, ReadOptions, Result, StreamInfo,
};

#[derive(Debug, Default)]
pub(crate) struct Stream {
    entries: Vec<Entry>,
    /// The number of the append that changed it last.
    changed: u64,
}

impl Stream {
    pub(crate) fn info(&self) -> StreamInfo {
        StreamInfo {
            last: self.entries.len() as u64,
            fingerprint: Fingerprint::new(self.changed.to_string()),
        }
    }

    /// Takes a batch in, in one piece.
    pub(crate) fn append(&mut self, batch: Vec<NewEntry>, changed: u64) -> Appended {
        self.changed = changed;
        let first = self.info().last + 1;
        let numbered = (first..).zip(batch);
        self.entries.extend(numbered.map(|(seq, new)| Entry {
            seq,
            time: new.time,
            // The text as it came: the order of keys and numbers of any size are the caller's.
            data: EntryData::Json(new.data),
        }));
        let StreamInfo { last, fingerprint } = self.info();
        Appended {
            first,
            last,
            fingerprint,
        }
    }

    /// A page that begins strictly after the cursor, in the direction asked for.
    pub(crate) fn read(&self, options: ReadOptions) -> Result<Page> {
        let (last, cursor) = (self.info().last, options.cursor);
        options.check_cursor(last)?;
        let limit = options.limit.max(1);
        let entries = self.entries.iter();
        let page: Vec<Entry> = match options.order {
            Order::Ascending => {
                let newer = entries.filter(|entry| entry.seq > cursor);
                newer.take(limit).cloned().collect()
            }
            Order::Descending => {
                let older = entries
                    .rev()
                    .filter(|entry| cursor == 0 || entry.seq < cursor);
                older.take(limit).cloned().collect()
            }
        };
        Ok(options.page(page, last))
    }
}
