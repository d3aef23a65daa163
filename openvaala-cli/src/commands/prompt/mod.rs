//! What is said to an agent: the command line, standard input and images together.

mod image;

use std::io::IsTerminal;
use std::time::Duration;

use openvaala_protocol::content::Content;
use openvaala_protocol::rpc::MAX_REQUEST_BYTES;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::args::PromptArgs;
use crate::error::CliError;
use crate::output::note;

/// How long a pipe besides a prompt has until its first byte: some programs hand on one that they never write to.
const PATIENCE: Duration = Duration::from_secs(1);
/// Room in a request for all that is not content.
const ENVELOPE: usize = 64 << 10;
/// The most that is read from standard input, in bytes; more would not fit into a request.
const MAX_STDIN: u64 = MAX_REQUEST_BYTES as u64;

/// Reads all that the arguments name.
pub(super) async fn read(args: PromptArgs) -> Result<Vec<Content>, CliError> {
    let text = text(&args).await?;
    let mut content = vec![Content::text(text)];
    for path in &args.images {
        content.push(image::read(path)?);
    }
    check_size(&content)?;
    Ok(content)
}

async fn text(args: &PromptArgs) -> Result<String, CliError> {
    let is_terminal = std::io::stdin().is_terminal();
    let stdin = tokio::io::stdin();
    if args.prompt == "-" {
        if is_terminal {
            note("reading the prompt from standard input; Ctrl-D ends it");
        }
        let said = to_end(stdin, Vec::new()).await?;
        if said.trim().is_empty() {
            return Err(CliError::usage("standard input is empty")
                .hint("`-` takes the prompt from there: openvaala exec - < prompt.md"));
        }
        return Ok(said);
    }
    if args.prompt.trim().is_empty() {
        let error = CliError::usage("the prompt is empty");
        return Err(error.hint("say what to do: openvaala exec \"…\""));
    }
    let piped = if args.stdin {
        Some(to_end(stdin, Vec::new()).await?)
    } else if is_terminal {
        None
    } else {
        let piped = soon(stdin, PATIENCE).await?;
        if piped.is_none() {
            note(
                "note: standard input is open but silent, so it is not read; --stdin waits for it",
            );
        }
        piped
    };
    Ok(with_block(&args.prompt, piped.as_deref()))
}

/// Adds what was piped in to a prompt, as a block that says where it comes from.
fn with_block(prompt: &str, piped: Option<&str>) -> String {
    match piped.filter(|piped| !piped.trim().is_empty()) {
        Some(piped) => {
            let end = if piped.ends_with('\n') { "" } else { "\n" };
            format!("{prompt}\n\n<stdin>\n{piped}{end}</stdin>")
        }
        None => prompt.to_owned(),
    }
}

/// Reads to the end if the first byte or the end comes in time; `None` if neither does.
async fn soon(
    mut input: impl AsyncRead + Unpin,
    patience: Duration,
) -> Result<Option<String>, CliError> {
    let mut first = vec![0; 8 << 10];
    let Ok(read) = tokio::time::timeout(patience, input.read(&mut first)).await else {
        return Ok(None);
    };
    let length = read.map_err(unreadable)?;
    first.truncate(length);
    if length == 0 {
        return Ok(Some(String::new()));
    }
    to_end(input, first).await.map(Some)
}

/// Reads to the end, after what has been read already.
async fn to_end(input: impl AsyncRead + Unpin, mut bytes: Vec<u8>) -> Result<String, CliError> {
    let mut rest = input.take(MAX_STDIN + 1);
    rest.read_to_end(&mut bytes).await.map_err(unreadable)?;
    if bytes.len() as u64 > MAX_STDIN {
        let message = format!("standard input has more than {} MiB", MAX_STDIN >> 20);
        return Err(too_large(message));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::usage(format!(
            "standard input is no UTF-8 text: see byte {}",
            at + 1
        ))
        .hint("convert it with iconv, or put it into a file and name that in the prompt")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// What does not fit into a request is refused before anything is started.
fn check_size(content: &[Content]) -> Result<(), CliError> {
    let (size, limit) = (
        serde_json::to_string(content)?.len(),
        MAX_REQUEST_BYTES - ENVELOPE,
    );
    if size <= limit {
        return Ok(());
    }
    Err(too_large(format!(
        "prompt and images together have {size} bytes as they are sent, more than the {limit} that a server takes"
    )))
}

fn too_large(message: String) -> CliError {
    CliError::usage(message).hint("put it into a file in the folder and name that in the prompt")
}

fn unreadable(error: std::io::Error) -> CliError {
    CliError::usage("standard input cannot be read").because(error)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use insta::assert_snapshot;
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn what_is_piped_in_stands_in_a_block_after_the_prompt() {
        let table = [
            (None, "review this"),
            (Some(""), "review this"),
            (Some(" \n"), "review this"),
            (Some("a\nb\n"), "review this\n\n<stdin>\na\nb\n</stdin>"),
            (Some("a"), "review this\n\n<stdin>\na\n</stdin>"),
        ];
        for (piped, text) in table {
            assert_eq!(with_block("review this", piped), text);
        }
    }

    #[tokio::test]
    async fn a_silent_pipe_is_left_alone_and_an_ended_one_is_read() {
        let (silent, _held_open) = tokio::io::duplex(64);
        assert_eq!(soon(silent, Duration::ZERO).await.unwrap(), None);
        let ended = tokio::io::empty();
        let read = soon(ended, Duration::ZERO).await.unwrap();
        assert_eq!(read, Some(String::new()));
        let long = "line\n".repeat(10_000);
        let read = soon(Cursor::new(long.clone()), Duration::ZERO).await;
        assert_eq!(read.unwrap(), Some(long));
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_no_part_of_the_text() {
        let read = to_end(Cursor::new("\u{feff}hello"), Vec::new()).await;
        assert_eq!(read.unwrap(), "hello");
    }

    #[tokio::test]
    async fn standard_input_that_is_no_text_or_has_no_end_is_refused() {
        let bytes = to_end(Cursor::new(b"ab\xff\xfe"), Vec::new()).await;
        assert_snapshot!(bytes.unwrap_err().text(), @r"
        error: standard input is no UTF-8 text: see byte 3
        hint: convert it with iconv, or put it into a file and name that in the prompt
        ");
        let endless = to_end(tokio::io::repeat(b'y'), Vec::new()).await;
        assert_snapshot!(endless.unwrap_err().text(), @r"
        error: standard input has more than 16 MiB
        hint: put it into a file in the folder and name that in the prompt
        ");
    }

    #[test]
    fn the_size_counts_as_it_is_sent() {
        let text = "\n".repeat(MAX_REQUEST_BYTES / 2);
        let error = check_size(&[Content::text(text.clone())]).unwrap_err();
        assert!(
            error.text().contains("more than the 16711680"),
            "{}",
            error.text()
        );
        assert!(check_size(&[Content::text(&text[..text.len() / 2])]).is_ok());
    }
}
