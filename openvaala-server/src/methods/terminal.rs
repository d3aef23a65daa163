//! `terminal/…`: commands in the background, for clients.

use std::time::Duration;

use openvaala_core::TerminalInfo;
use openvaala_core::environment::{Clock, SystemClock};
use openvaala_core::executor::commands::{
    CommandHandle, CommandId, CommandInfo, CommandStatus, StoppedBy,
};
use openvaala_core::executor::process::Signal;
use openvaala_core::executor::tool::OutputSink;
use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_protocol::rpc::params::terminal::{
    KillParams, KillResult, ListParams, ListResult, ReadParams, ReadResult, Terminal,
    TerminalSignal, TerminalStatus, TerminalTail, WriteParams, WriteResult,
};
use openvaala_protocol::rpc::{ErrorCode, RpcError};
use openvaala_protocol::time::Timestamp;
use tokio::time::timeout;

use super::error::rpc_error;
use super::session::open;
use crate::context::Context;

/// How many bytes of output are given if nobody says otherwise.
const HEAD: u32 = 64 << 10;
/// The most that one answer gives at either end.
const MAX_PIECE: u32 = 1 << 20;
/// How much of a command line is shown, in characters.
const SHOWN: usize = 4_000;
/// How long a command may take to read what is written to it.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);
/// How long the end of a command is waited for.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) async fn list(context: &Context, params: ListParams) -> Result<ListResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let listed = conversation.terminals(params.session_id).await;
    let listed = listed.map_err(|error| rpc_error(&error))?.into_iter();
    let now = SystemClock.now();
    let shown = |terminal: TerminalInfo| on_wire(terminal.session_id, terminal.command, now);
    Ok(ListResult {
        terminals: listed.map(shown).collect(),
    })
}

pub(crate) async fn read(context: &Context, params: ReadParams) -> Result<ReadResult, RpcError> {
    let found = find(
        context,
        params.conversation_id,
        params.session_id,
        params.terminal_id,
    )
    .await?;
    // First, so that the output of one that is told as ended is all there is.
    let terminal = found.terminal();
    let output = found.handle.output();
    let head = params.head.unwrap_or(HEAD).min(MAX_PIECE);
    let is_over = terminal.status != TerminalStatus::Running;
    let piece = piece(output, params.offset, head, is_over).await?;
    let tail = match params.tail.unwrap_or(0).min(MAX_PIECE) {
        0 => None,
        tail => {
            let begin = terminal.bytes.saturating_sub(tail.into());
            let begin = begin.max(piece.next);
            let end = self::piece(output, begin, tail, is_over).await?;
            (!end.text.is_empty()).then(|| TerminalTail {
                offset: end.offset,
                left_out: end.offset.saturating_sub(piece.next),
                text: end.text,
                next: end.next,
            })
        }
    };
    Ok(ReadResult {
        terminal,
        offset: piece.offset,
        text: piece.text,
        next: piece.next,
        tail,
    })
}

pub(crate) async fn write(context: &Context, params: WriteParams) -> Result<WriteResult, RpcError> {
    let found = find(
        context,
        params.conversation_id,
        params.session_id,
        params.terminal_id,
    )
    .await?;
    let (bytes, end) = (params.text.into(), params.end);
    let write = async {
        match params.at {
            None => found.handle.write(bytes, end).await,
            Some(at) => found.handle.write_at(bytes, end, at).await,
        }
    };
    // A write that is not waited for goes on.
    let taken = match timeout(WRITE_PATIENCE, write).await {
        Ok(written) => written.map(|()| true),
        Err(_) => Ok(false),
    };
    Ok(WriteResult {
        taken: taken.map_err(|error| rpc_error(&error.into()))?,
        terminal: found.terminal(),
    })
}

pub(crate) async fn kill(context: &Context, params: KillParams) -> Result<KillResult, RpcError> {
    let found = find(
        context,
        params.conversation_id,
        params.session_id,
        params.terminal_id,
    )
    .await?;
    let signal = match params.signal {
        TerminalSignal::Kill => Signal::Kill,
        _ => Signal::Terminate,
    };
    if !found.handle.is_ended() {
        let stopped = found
            .handle
            .stop_within(signal, StoppedBy::Kill, KILL_PATIENCE);
        stopped.await.map_err(|error| rpc_error(&error.into()))?;
    }
    Ok(KillResult {
        terminal: found.terminal(),
    })
}

struct Found {
    session_id: SessionId,
    handle: CommandHandle,
}

impl Found {
    fn terminal(&self) -> Terminal {
        on_wire(self.session_id, self.handle.info(), SystemClock.now())
    }
}

async fn find(
    context: &Context,
    conversation: ConversationId,
    session: Option<SessionId>,
    id: u32,
) -> Result<Found, RpcError> {
    let conversation = open(context, conversation).await?;
    let handle = conversation.terminal(session, CommandId::new(id)).await;
    Ok(Found {
        session_id: session.unwrap_or_else(|| conversation.root()),
        handle: handle.map_err(|error| rpc_error(&error))?,
    })
}

/// Some output without a hole.
struct Piece {
    offset: u64,
    text: String,
    next: u64,
}

/// Reads what is kept from an offset on, at most `limit` bytes, up to a whole character.
async fn piece(
    output: &dyn OutputSink,
    offset: u64,
    limit: u32,
    is_over: bool,
) -> Result<Piece, RpcError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut begin, mut bytes) = (offset, Vec::new());
    while bytes.len() < limit {
        let next = begin + bytes.len() as u64;
        let kept = output.read(next, limit - bytes.len()).await;
        let kept = kept.ok_or_else(|| {
            let message = "the output of this command is not kept any more: its session has ended";
            RpcError::new(ErrorCode::Runtime, message)
        })?;
        if kept.bytes.is_empty() || (kept.offset > next && !bytes.is_empty()) {
            break;
        }
        if bytes.is_empty() {
            begin = kept.offset;
        }
        bytes.extend_from_slice(&kept.bytes);
    }
    let is_full = bytes.len() >= limit;
    if is_full || !is_over {
        bytes.truncate(whole(&bytes));
    }
    Ok(Piece {
        offset: begin,
        next: begin + bytes.len() as u64,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// Up to where there are whole characters, if what is behind may become one.
fn whole(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    let cut = (last..bytes.len()).find(|at| {
        std::str::from_utf8(&bytes[*at..])
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    // Of a piece that is shorter than a character all is given, so that a reader gets on.
    cut.filter(|at| *at > 0).unwrap_or(bytes.len())
}

fn on_wire(session_id: SessionId, info: CommandInfo, now: Timestamp) -> Terminal {
    let ago = |time: Duration| {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(now.as_millis().saturating_sub(millis))
    };
    let (status, shell, why) = match info.status {
        CommandStatus::Exited { status, stopped } => {
            (TerminalStatus::Exited, Some(status), stopped.map(ended_by))
        }
        CommandStatus::Lost { message } => (TerminalStatus::Lost, None, Some(message)),
        CommandStatus::Running { shell } => (TerminalStatus::Running, shell, None),
        _ => (TerminalStatus::Running, None, None),
    };
    Terminal {
        session_id,
        terminal_id: info.id.get(),
        command: info.line.chars().take(SHOWN).collect(),
        status,
        exit_code: shell.and_then(|shell| shell.code),
        signal: shell.and_then(|shell| shell.signal),
        why,
        started_at: ago(info.started_ago),
        ended_at: info.ended_ago.map(ago),
        bytes: info.bytes,
        input_bytes: info.input_bytes,
    }
}

fn ended_by(by: StoppedBy) -> String {
    let why = match by {
        StoppedBy::Call => "its call was interrupted",
        StoppedBy::Kill => "somebody ended it",
        StoppedBy::Session => "its session was closed",
        StoppedBy::Timeout => "its time was over",
        _ => "it was ended",
    };
    why.to_owned()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::whole;

    #[test]
    fn a_character_is_left_for_the_next_piece_unless_that_would_be_all() {
        let text = "aé€😀".as_bytes();
        let ends: Vec<usize> = (0..=text.len()).map(|end| whole(&text[..end])).collect();
        assert_eq!(ends, [0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10]);
        assert_eq!(whole(&text[1..2]), 1);
        assert_eq!(whole(b"ab\xff"), 3);
    }
}
