//! Reads server-sent events from bytes, however the network cuts them.

/// The longest line, and the most data of one event, that is read: 16 MiB.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// The byte order mark that may stand before the first line.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event of a stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct SseEvent {
    /// Its name, if it has one.
    pub event: Option<String>,
    /// Its data; lines are joined with `\n`. Bytes that are no UTF-8 are replaced.
    pub data: String,
}

/// A stream that cannot be read on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line or the data of an event is too long.
    #[error("an event of the stream is longer than {limit} bytes")]
    TooLong {
        /// The most that is read.
        limit: usize,
    },
}

/// Turns bytes into events, by the rules of the HTML standard.
///
/// Lines end with LF, CR or CRLF. Comments, ids and retry times are skipped, since an answer to a POST request
/// is never resumed. Unlike a browser, [`finish`](Self::finish) gives the last event also when the blank line
/// after it is missing, because some servers forget it.
#[derive(Debug)]
pub struct SseReader {
    limit: usize,
    line: Vec<u8>,
    event: Option<String>,
    data: Option<String>,
    is_first_line: bool,
    /// The last byte was a CR, so that an LF right after it belongs to the same line end.
    after_cr: bool,
}

impl Default for SseReader {
    fn default() -> Self {
        Self::new()
    }
}

impl SseReader {
    /// A reader at the beginning of a stream.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }

    /// A reader that refuses lines and events of more than `limit` bytes.
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: None,
            data: None,
            is_first_line: true,
            after_cr: false,
        }
    }

    /// Takes the next bytes of the stream and gives the events that they complete.
    ///
    /// # Errors
    /// [`SseError::TooLong`]; the reader is of no use afterwards.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let end = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r');
            let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.extend_line(piece)?;
            rest = match after.split_first() {
                Some((&line_end, next)) => {
                    self.after_cr = line_end == b'\r';
                    events.extend(self.end_line()?);
                    next
                }
                None => after,
            };
        }
        Ok(events)
    }

    /// Says that the stream is over and gives the event that was not closed by a blank line, if there is one.
    ///
    /// # Errors
    /// [`SseError::TooLong`].
    pub fn finish(mut self) -> Result<Option<SseEvent>, SseError> {
        let event = if self.line.is_empty() {
            None
        } else {
            self.end_line()?
        };
        Ok(event.or_else(|| self.dispatch()))
    }

    fn extend_line(&mut self, piece: &[u8]) -> Result<(), SseError> {
        if self.line.len() + piece.len() > self.limit {
            return Err(SseError::TooLong { limit: self.limit });
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, SseError> {
        let bytes = std::mem::take(&mut self.line);
        let is_first = std::mem::take(&mut self.is_first_line);
        let bytes = bytes.as_slice();
        let bytes = if is_first {
            bytes.strip_prefix(BOM).unwrap_or(bytes)
        } else {
            bytes
        };
        if bytes.is_empty() {
            return Ok(self.dispatch());
        }
        let line = String::from_utf8_lossy(bytes);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.extend_data(value)?,
            "event" => self.event = Some(value.to_owned()),
            // A comment, a field for resuming, or one that a later standard brings.
            _ => {}
        }
        Ok(None)
    }

    fn extend_data(&mut self, value: &str) -> Result<(), SseError> {
        let Some(data) = &mut self.data else {
            self.data = Some(value.to_owned());
            return Ok(());
        };
        if data.len() + value.len() >= self.limit {
            return Err(SseError::TooLong { limit: self.limit });
        }
        data.push('\n');
        data.push_str(value);
        Ok(())
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = self.event.take().filter(|name| !name.is_empty());
        self.data.take().map(|data| SseEvent { event, data })
    }
}

#[cfg(test)]
mod tests;
