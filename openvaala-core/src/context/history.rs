//! The items of a session beside the messages that they become.

use std::collections::{HashMap, HashSet};

use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{BlobId, ItemId};
use openvaala_protocol::item::{Item, ItemKind};

use super::assemble::{AssembleOptions, build};
use super::builder::{MessageBuilder, Target};
use crate::model::Messages;

/// The history of a session, which gives the messages of each request for no more work than its new items are.
///
/// They are those that [`assemble`](super::assemble) gives for all items.
#[derive(Debug)]
pub(crate) struct History {
    /// By `pos`.
    items: Vec<Item>,
    built: Option<Built>,
}

/// What the first items have become.
#[derive(Debug)]
struct Built {
    builder: MessageBuilder,
    /// How many items it has taken.
    taken: usize,
    /// Their ids: of items with the same only the first counts.
    ids: HashSet<ItemId>,
}

/// Whether an item is a later writing of one that may be written more than once.
fn is_rewritten(before: &Item, next: &Item) -> bool {
    let (before, next) = (before.head(), next.head());
    next.kind == ItemKind::Approval && (before.pos, before.id) == (next.pos, next.id)
}

impl History {
    pub(crate) fn new(mut items: Vec<Item>) -> Self {
        items.sort_by_key(|item| item.head().pos);
        items.dedup_by(|next, before| {
            let is_same = is_rewritten(before, next);
            if is_same {
                std::mem::swap(next, before);
            }
            is_same
        });
        Self { items, built: None }
    }

    /// All items, by `pos`.
    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Adds an item at its `pos`, which need not be the last one.
    pub(crate) fn add(&mut self, item: Item) {
        let pos = item.head().pos;
        let at = self.items.partition_point(|old| old.head().pos < pos);
        match self
            .items
            .get_mut(at)
            .filter(|old| is_rewritten(old, &item))
        {
            Some(old) => *old = item,
            None => self.items.insert(at, item),
        }
        // What comes before something that is built already may change all of it.
        self.built.take_if(|built| at < built.taken);
    }

    /// Drops all items up to that place; those that requests still need are no longer among them.
    pub(crate) fn forget(&mut self, up_to: u64) {
        self.items.retain(|item| item.head().pos > up_to);
        self.items.shrink_to_fit();
        self.built = None;
    }

    /// The messages of a request to that model of that account.
    ///
    /// `blobs` has the images, in base64, of all items that were added since the last request.
    pub(crate) fn messages(
        &mut self,
        target: &ModelRef,
        account: Option<&str>,
        blobs: &HashMap<BlobId, String>,
    ) -> Messages {
        let is_usable = |built: &Built| {
            let mut new = self.items.iter().skip(built.taken);
            *built.builder.target() == Target::new(target, account)
                && new.all(|item| !moves_beginning(item))
        };
        let mut built = self.built.take().filter(is_usable).unwrap_or_else(|| {
            let options = AssembleOptions {
                items: &self.items,
                target,
                account,
                blobs,
            };
            Built::new(options)
        });
        built.go_on(&self.items, blobs);
        let messages = built.builder.messages();
        self.built = Some(built);
        messages
    }
}

/// Whether requests begin elsewhere because of this item.
fn moves_beginning(item: &Item) -> bool {
    matches!(
        item.head().kind,
        ItemKind::ContextSummary | ItemKind::SummaryUndone
    )
}

impl Built {
    fn new(options: AssembleOptions<'_>) -> Self {
        Self {
            builder: build(options),
            taken: options.items.len(),
            ids: options.items.iter().map(|item| item.head().id).collect(),
        }
    }

    fn go_on(&mut self, items: &[Item], blobs: &HashMap<BlobId, String>) {
        for item in items.iter().skip(self.taken) {
            if self.ids.insert(item.head().id) {
                self.builder.take(item, blobs);
            }
        }
        self.taken = items.len();
    }
}
