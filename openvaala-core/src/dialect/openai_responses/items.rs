//! The items of one answer while they grow: which event belongs to which, and what has been said of each.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::event::Key;
use super::output::{ItemKind, OutputItem, Voice};
use crate::model::{ModelEvent, PartKind};

/// The most text that all items of one answer may have together.
const MAX_BYTES: usize = 16 << 20;
/// The most items that one answer may have.
const MAX_ITEMS: usize = 1_024;

/// The items of one answer, in the order in which they were first heard of.
#[derive(Debug, Default)]
pub(super) struct Items {
    items: Vec<GrowingItem>,
    bytes: usize,
    next_part: u32,
}

#[derive(Debug)]
struct GrowingItem {
    kind: ItemKind,
    index: Option<u64>,
    id: String,
    call_id: String,
    name: String,
    texts: Vec<Said>,
    /// Its part of the answer, once it has been announced.
    part: Option<u32>,
    is_ended: bool,
}

/// How much of one text has been said.
#[derive(Debug)]
struct Said {
    voice: Voice,
    place: u64,
    text: String,
}

impl Items {
    pub(super) const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes in an item that begins. Its texts are left for later: they come in events of their own.
    ///
    /// `Err` says what there is too much of.
    pub(super) fn begin(
        &mut self,
        kind: ItemKind,
        index: Option<u64>,
        new: &OutputItem<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), String> {
        let key = Key {
            index,
            id: new.id(),
        };
        let place = match self.find_early(kind, key) {
            Some(place) => place,
            None => self.add(kind, key)?,
        };
        self.name(place, new, events);
        Ok(())
    }

    /// Takes in more text of an item.
    pub(super) fn push(
        &mut self,
        key: Key<'_>,
        voice: Voice,
        place: u64,
        delta: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), String> {
        let item = self.known_or_new(voice.kind(), key)?;
        self.say(item, voice, place, delta, events)
    }

    /// Takes in a whole text of an item: says what has not been said of it.
    pub(super) fn push_whole(
        &mut self,
        key: Key<'_>,
        voice: Voice,
        place: u64,
        whole: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), String> {
        let item = self.known_or_new(voice.kind(), key)?;
        self.say_rest(item, voice, place, whole, events)
    }

    /// Takes in a complete item: says what has not been said of it, and ends it.
    pub(super) fn end(
        &mut self,
        kind: ItemKind,
        index: Option<u64>,
        whole: &OutputItem<'_>,
        raw: &RawValue,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), String> {
        let id = whole.id();
        let place = self.known_or_new(kind, Key { index, id })?;
        self.name(place, whole, events);
        for (voice, piece, text) in whole.texts(kind) {
            self.say_rest(place, voice, piece, &text, events)?;
        }
        match kind {
            ItemKind::Reasoning if whole.has_thoughts() => {
                self.close(place, Some(raw.to_owned()), events);
            }
            // Some proxies tell the encrypted thoughts at the end of the answer only.
            ItemKind::Reasoning => {}
            ItemKind::Message | ItemKind::Call => self.close(place, None, events),
        }
        Ok(())
    }

    /// Whether an item of that id is still open.
    pub(super) fn is_open(&self, kind: ItemKind, id: &str) -> bool {
        self.items
            .iter()
            .any(|item| item.kind == kind && !item.is_ended && item.id == id)
    }

    /// Ends all that is still open.
    pub(super) fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        for place in 0..self.items.len() {
            self.close(place, None, events);
        }
    }

    /// Whether the arguments of a call stop in the middle.
    pub(super) fn has_cut_call(&self) -> bool {
        let mut arguments = self
            .items
            .iter()
            .flat_map(|item| &item.texts)
            .filter(|said| said.voice == Voice::Arguments);
        arguments.any(|said| {
            let read = serde_json::from_str::<IgnoredAny>(&said.text);
            !said.text.trim().is_empty() && read.is_err_and(|error| error.is_eof())
        })
    }

    fn known_or_new(&mut self, kind: ItemKind, key: Key<'_>) -> Result<usize, String> {
        match self.find(kind, key) {
            Some(place) => Ok(place),
            None => self.add(kind, key),
        }
    }

    fn add(&mut self, kind: ItemKind, key: Key<'_>) -> Result<usize, String> {
        if self.items.len() == MAX_ITEMS {
            return Err(format!("more than {MAX_ITEMS} items"));
        }
        self.items.push(GrowingItem {
            kind,
            index: key.index,
            id: key.id.to_owned(),
            call_id: String::new(),
            name: String::new(),
            texts: Vec::new(),
            part: None,
            is_ended: false,
        });
        Ok(self.items.len() - 1)
    }

    /// The item that an event belongs to.
    ///
    /// The index counts more than the id, because some gateways give an item another id in every event. Servers
    /// without indices have ids that can be trusted; so have those that give every item the same index.
    fn find(&self, kind: ItemKind, key: Key<'_>) -> Option<usize> {
        let last = |is_it: &dyn Fn(&GrowingItem) -> bool| {
            self.items
                .iter()
                .rposition(|item| item.kind == kind && is_it(item))
        };
        let has_id = |item: &GrowingItem| !key.id.is_empty() && item.id == key.id;
        let has_index = |item: &GrowingItem| key.index.is_some() && item.index == key.index;
        let is_over = |item: &GrowingItem| {
            item.is_ended && !key.id.is_empty() && !item.id.is_empty() && item.id != key.id
        };
        let is_nameless = |item: &GrowingItem| {
            !item.is_ended && key.index.is_none() && (key.id.is_empty() || item.id.is_empty())
        };
        last(&|item| has_id(item) && has_index(item))
            .or_else(|| last(&|item| has_index(item) && !is_over(item)))
            .or_else(|| last(&has_id))
            .or_else(|| last(&is_nameless))
    }

    /// An item that is known already although it only begins now.
    fn find_early(&self, kind: ItemKind, key: Key<'_>) -> Option<usize> {
        self.items.iter().rposition(|item| {
            let has_id = !key.id.is_empty() && item.id == key.id;
            let has_index = key.index.is_some() && item.index == key.index;
            let may_have_id = has_id || key.id.is_empty() || item.id.is_empty();
            let may_have_index = has_index || key.index.is_none() || item.index.is_none();
            let is_it = (has_id || has_index) && may_have_id && may_have_index;
            item.kind == kind && !item.is_ended && is_it
        })
    }

    /// Notes what a call is named, and announces it.
    fn name(&mut self, place: usize, source: &OutputItem<'_>, events: &mut Vec<ModelEvent>) {
        let Some(item) = self.items.get_mut(place) else {
            return;
        };
        if item.id.is_empty() {
            source.id().clone_into(&mut item.id);
        }
        if item.part.is_some() || item.is_ended || item.kind == ItemKind::Message {
            return;
        }
        if item.call_id.is_empty() {
            source.call_id().clone_into(&mut item.call_id);
        }
        if item.name.is_empty() {
            source.name().clone_into(&mut item.name);
        }
        if item.kind == ItemKind::Reasoning || !item.name.is_empty() {
            item.announce(&mut self.next_part, events);
        }
    }

    fn say_rest(
        &mut self,
        place: usize,
        voice: Voice,
        piece: u64,
        whole: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), String> {
        let said = self
            .items
            .get(place)
            .and_then(|item| item.said(voice, piece));
        // What differs from what was said cannot be unsaid, and is not said after it.
        let rest = whole.strip_prefix(said.unwrap_or("")).unwrap_or("");
        self.say(place, voice, piece, rest, events)
    }

    fn say(
        &mut self,
        place: usize,
        voice: Voice,
        piece: u64,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), String> {
        let Some(item) = self.items.get_mut(place) else {
            return Ok(());
        };
        if text.is_empty() || item.is_ended || item.speaks_otherwise(voice) {
            return Ok(());
        }
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            return Err(format!("more than {} MiB of text", MAX_BYTES >> 20));
        }
        let text = item.note(voice, piece, text);
        match item.part {
            Some(part) => events.push(ModelEvent::Delta { part, text }),
            // A call is announced once its name is known, with all its arguments so far.
            None if item.kind == ItemKind::Call => {}
            None => item.announce(&mut self.next_part, events),
        }
        Ok(())
    }

    fn close(&mut self, place: usize, opaque: Option<Box<RawValue>>, events: &mut Vec<ModelEvent>) {
        let Some(item) = self.items.get_mut(place) else {
            return;
        };
        if item.is_ended {
            return;
        }
        if item.part.is_none() && item.kind == ItemKind::Call {
            item.announce(&mut self.next_part, events);
        }
        item.is_ended = true;
        if let Some(part) = item.part {
            events.push(ModelEvent::Ended { part, opaque });
        }
    }
}

impl GrowingItem {
    fn said(&self, voice: Voice, place: u64) -> Option<&str> {
        let said = self
            .texts
            .iter()
            .find(|said| said.voice == voice && said.place == place);
        said.map(|said| said.text.as_str())
    }

    /// Whether it speaks in another voice: some services send the same thoughts as summary and as they are.
    fn speaks_otherwise(&self, voice: Voice) -> bool {
        self.texts.iter().any(|said| said.voice != voice)
    }

    /// Notes a piece of text and gives it as it is to be said: a new thought begins a new paragraph.
    fn note(&mut self, voice: Voice, place: u64, text: &str) -> String {
        let known = self
            .texts
            .iter_mut()
            .find(|said| said.voice == voice && said.place == place);
        if let Some(said) = known {
            said.text.push_str(text);
            return text.to_owned();
        }
        let is_first = self.texts.is_empty();
        self.texts.push(Said {
            voice,
            place,
            text: text.to_owned(),
        });
        if is_first || self.kind != ItemKind::Reasoning {
            text.to_owned()
        } else {
            format!("\n\n{text}")
        }
    }

    /// Starts its part, with all that is known of its text.
    fn announce(&mut self, next_part: &mut u32, events: &mut Vec<ModelEvent>) {
        let part = *next_part;
        *next_part += 1;
        self.part = Some(part);
        let kind = match self.kind {
            ItemKind::Message => PartKind::Text,
            ItemKind::Reasoning => PartKind::Reasoning,
            ItemKind::Call => PartKind::ToolCall {
                id: self.call_id.clone(),
                name: self.name.clone(),
            },
        };
        events.push(ModelEvent::Started { part, kind });
        let text: String = self.texts.iter().map(|said| said.text.as_str()).collect();
        if !text.is_empty() {
            events.push(ModelEvent::Delta { part, text });
        }
    }
}
