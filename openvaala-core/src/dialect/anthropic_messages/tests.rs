mod request;
mod server;
mod stream;

use super::reader::EventReader;
use crate::dialect::http::Redactor;
use crate::dialect::test_answer::{Answer, read_pieces};

fn reader() -> EventReader {
    EventReader::new("http://test/v1", Redactor::default())
}

/// Reads an answer as it would come over the network.
fn read(bytes: &[u8]) -> Answer {
    read_pieces(reader(), [bytes])
}
