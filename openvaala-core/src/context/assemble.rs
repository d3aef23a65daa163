//! The history of a session as the messages of a request.

use std::collections::{HashMap, HashSet};

use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{BlobId, ItemId};
use openvaala_protocol::item::{ContextSummary, Item, SummaryUndone};

use super::builder::{MessageBuilder, Target};
use crate::model::Messages;

/// What a request is assembled from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AssembleOptions<'a> {
    /// The history of the session.
    pub items: &'a [Item],
    /// The model that is asked.
    pub target: &'a ModelRef,
    /// The account that is asked, as far as it is known.
    pub account: Option<&'a str>,
    /// The bytes of images that lie in the blob stream, in base64.
    pub blobs: &'a HashMap<BlobId, String>,
}

impl<'a> AssembleOptions<'a> {
    /// A history without large images, for a model of an account that is not known.
    #[must_use]
    pub const fn new(
        items: &'a [Item],
        target: &'a ModelRef,
        blobs: &'a HashMap<BlobId, String>,
    ) -> Self {
        Self {
            items,
            target,
            account: None,
            blobs,
        }
    }
}

/// Turns a history into messages that every provider accepts; see [`check_pairing`](super::check_pairing).
///
/// Never fails: an item that is damaged or of an unknown kind is left out. What does not fit together is
/// repaired here and never in the log:
///
/// - a call without result gets one that says so, a result without call is dropped, the first of two results
///   wins, and results stand right behind their calls whatever lies between them in the history;
/// - call ids that are empty or taken are replaced, names and arguments that are not allowed as well.
///
/// As long as all calls are answered and the model is the same, more items only add messages at the end.
/// Providers rely on that to cache what they have already read.
#[must_use]
pub fn assemble(options: AssembleOptions<'_>) -> Messages {
    build(options).messages()
}

/// Takes a whole history into a new builder.
pub(super) fn build(options: AssembleOptions<'_>) -> MessageBuilder {
    let AssembleOptions {
        items,
        target,
        account,
        blobs,
    } = options;
    let mut builder = MessageBuilder::new(Target::new(target, account));
    let items = in_order(items);
    let summary = last_summary(items.iter().copied()).map(|(_, summary)| summary);
    let after = summary.as_ref().map_or(0, |summary| summary.up_to);
    if let Some(summary) = summary {
        builder.begin_with(summary, blobs);
    }
    for item in items {
        if item.head().pos > after {
            builder.take(item, blobs);
        }
    }
    builder
}

/// The items by `pos`, each once.
fn in_order(items: &[Item]) -> Vec<&Item> {
    let mut seen = HashSet::new();
    let mut items: Vec<&Item> = items
        .iter()
        .filter(|item| seen.insert(item.head().id))
        .collect();
    items.sort_by_key(|item| item.head().pos);
    items
}

/// The summary that stands for most. None stands for anything that came after it, whatever it says.
/// The summary that requests begin with, and its item.
pub(crate) fn last_summary<'a>(
    items: impl Iterator<Item = &'a Item> + Clone,
) -> Option<(ItemId, ContextSummary)> {
    let undone: HashSet<ItemId> = items.clone().filter_map(undone_by).collect();
    let summaries = items.filter_map(|item| {
        let mut summary = item.body::<ContextSummary>()?.ok()?;
        summary.up_to = summary.up_to.min(item.head().pos);
        Some((item.head().id, summary))
    });
    summaries
        .filter(|(id, _)| !undone.contains(id))
        .max_by_key(|(_, summary)| summary.up_to)
}

/// The summary that counts no longer because of this item.
pub(crate) fn undone_by(item: &Item) -> Option<ItemId> {
    Some(item.body::<SummaryUndone>()?.ok()?.summary)
}
