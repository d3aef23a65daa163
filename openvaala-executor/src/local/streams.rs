//! What a process of this machine writes.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::select;

use crate::process::{Output, OutputStream};

/// As much as is read at once: half of what a pipe holds.
const PIECE: usize = 32 * 1024;

/// The open output streams of a process.
#[derive(Debug)]
pub(super) struct Streams {
    stdout: Option<Source>,
    stderr: Option<Source>,
}

impl Streams {
    pub(super) fn new(stdout: Option<Reader>, stderr: Option<Reader>) -> Self {
        Self {
            stdout: stdout.map(Source::new),
            stderr: stderr.map(Source::new),
        }
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// The next piece of output; `None` when both are at their end. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Output> {
        loop {
            let (stream, read) = select! {
                read = read(&mut self.stdout), if self.stdout.is_some() => (OutputStream::Stdout, read),
                read = read(&mut self.stderr), if self.stderr.is_some() => (OutputStream::Stderr, read),
                else => return None,
            };
            match read {
                Ok(bytes) if !bytes.is_empty() => return Some(Output::new(stream, bytes)),
                Ok(_) => {}
                Err(error) => tracing::debug!(?stream, %error, "output of a process ended early"),
            }
            match stream {
                OutputStream::Stdout => self.stdout = None,
                OutputStream::Stderr => self.stderr = None,
            }
        }
    }
}

/// The reading end of a pipe.
pub(super) type Reader = Box<dyn Pipe>;

pub(super) trait Pipe: AsyncRead + std::fmt::Debug + Send + Sync + Unpin {}

impl<T: AsyncRead + std::fmt::Debug + Send + Sync + Unpin> Pipe for T {}

#[derive(Debug)]
struct Source {
    reader: Reader,
    buffer: BytesMut,
}

impl Source {
    fn new(reader: Reader) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
        }
    }
}

/// Reads what is there; no bytes mean the end. Cancel safe.
async fn read(source: &mut Option<Source>) -> io::Result<Bytes> {
    let Some(source) = source else {
        return Ok(Bytes::new());
    };
    source.buffer.reserve(PIECE);
    source.reader.read_buf(&mut source.buffer).await?;
    // A copy, so that who keeps ten bytes does not keep a whole buffer.
    let bytes = Bytes::copy_from_slice(&source.buffer);
    source.buffer.clear();
    Ok(bytes)
}
