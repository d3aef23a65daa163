//! The tool that shows a file to the model.

mod image;
mod lines;
pub(super) mod near;

use std::sync::Arc;

use async_trait::async_trait;
use openvaala_protocol::content::{Content, ImageData};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::select;

use self::lines::{Lines, NotText};
use crate::error::ExecutorError;
use crate::file::Files;
use crate::output::grouped;
use crate::tool::{ToolContext, ToolError, ToolOutput, TypedTool};

const DEFAULT_LIMIT: u64 = 2_000;

/// How much is asked of the file system at once.
const PIECE: usize = 256 * 1024;

/// How far a file is searched for the lines asked for.
const LONGEST_SEARCH: u64 = 64 * 1024 * 1024;

/// How far lines are counted that nobody asked for, to say how many there are.
const LONGEST_COUNT: u64 = 16 * 1024 * 1024;

/// The largest image that is shown, in bytes.
const LARGEST_IMAGE: usize = 5 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct ReadFile {
    files: Arc<dyn Files>,
}

impl ReadFile {
    pub(super) fn new(files: Arc<dyn Files>) -> Self {
        Self { files }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    /// First line, from 1.
    offset: Option<u64>,
    /// Number of lines, default 2000.
    limit: Option<u64>,
}

#[async_trait]
impl TypedTool for ReadFile {
    type Arguments = Arguments;

    const NAME: &'static str = "read_file";

    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Reads a text file, or shows a PNG, JPEG, GIF or WebP image. The path is absolute or \
         relative to the working directory."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        select! {
            biased;
            () = context.cancel.cancelled() => Err(ToolError::Cancelled),
            output = self.read(&args) => output,
        }
    }
}

impl ReadFile {
    async fn read(&self, args: &Arguments) -> Result<ToolOutput, ToolError> {
        if args.limit == Some(0) {
            return Err(ToolError::InvalidArguments {
                tool: Self::NAME.to_owned(),
                message: "limit is 0; it must be at least 1".to_owned(),
            });
        }
        let start = match self.files.read(&args.path, 0, PIECE).await {
            Ok(start) => start,
            Err(error) => return Err(self.explain(error).await),
        };
        match image::media_type(&start) {
            Some(media_type) => self.image(&args.path, media_type).await,
            None => self.text(args, &start).await,
        }
    }

    async fn image(&self, path: &str, media_type: &str) -> Result<ToolOutput, ToolError> {
        let bytes = self.files.read(path, 0, LARGEST_IMAGE + 1).await?;
        if bytes.len() > LARGEST_IMAGE {
            return Err(ToolError::failed(format!(
                "{path} is an image of more than {} bytes; make a smaller one with bash and read \
                 that",
                grouped(LARGEST_IMAGE)
            )));
        }
        let data = ImageData::Base64(image::base64(&bytes));
        Ok(ToolOutput::new(vec![Content::Image {
            media_type: media_type.to_owned(),
            data,
        }]))
    }

    /// `start` is the first piece of the file.
    async fn text(&self, args: &Arguments, start: &[u8]) -> Result<ToolOutput, ToolError> {
        let path = &args.path;
        let not_text = |NotText { line }: NotText| {
            ToolError::failed(format!(
                "{path} is neither UTF-8 text (see line {line}) nor a PNG, JPEG, GIF or WebP image; \
                 look at it with bash, for example with `file`, `xxd` or `strings`"
            ))
        };
        let first = args.offset.unwrap_or(1).max(1);
        let mut lines = Lines::new(first, args.limit.unwrap_or(DEFAULT_LIMIT));
        lines.push(start).map_err(not_text)?;
        let (mut read, mut at_end) = (to_u64(start.len()), start.len() < PIECE);
        while !at_end
            && read
                < if lines.is_full() {
                    LONGEST_COUNT
                } else {
                    LONGEST_SEARCH
                }
        {
            let piece = self.files.read(path, read, PIECE).await?;
            lines.push(&piece).map_err(not_text)?;
            read += to_u64(piece.len());
            at_end = piece.len() < PIECE;
        }
        if at_end || lines.shown() == 0 {
            lines.finish().map_err(not_text)?;
        }
        shown(path, first, lines, at_end)
    }

    /// Adds the way out to an error about a path.
    async fn explain(&self, error: ExecutorError) -> ToolError {
        match error {
            ExecutorError::NotFound { path } => {
                let hint = near::hint(&*self.files, &path).await;
                ToolError::failed(format!("there is no file {path}{hint}"))
            }
            ExecutorError::IsADirectory { .. } => {
                ToolError::failed(format!("{error}; list it with bash, for example with `ls`"))
            }
            ExecutorError::NotRegular { .. } => {
                ToolError::failed(format!("{error}; use bash, with a bound on what is read"))
            }
            error => error.into(),
        }
    }
}

fn shown(path: &str, first: u64, lines: Lines, at_end: bool) -> Result<ToolOutput, ToolError> {
    let total = lines.count();
    if lines.shown() == 0 {
        return match (total, at_end) {
            (0, true) => Ok(ToolOutput::text("[the file is empty]")),
            (_, true) => Err(ToolError::failed(format!(
                "{path} has {total} lines; offset {first} is past its end"
            ))),
            (_, false) => Err(ToolError::failed(format!(
                "line {first} of {path} is not within its first {} bytes; use bash, for example \
                 `sed -n '{first},+99p'`",
                grouped(usize::try_from(LONGEST_SEARCH).unwrap_or(usize::MAX))
            ))),
        };
    }
    let last = first + lines.shown() - 1;
    let (more, shortened) = (!at_end || last < total, lines.is_shortened());
    let mut text = lines.into_text();
    if more {
        let of = if at_end {
            total.to_string()
        } else {
            "many".to_owned()
        };
        let line_break = if text.ends_with('\n') { "" } else { "\n" };
        let next = last + 1;
        text += &format!("{line_break}[lines {first}-{last} of {of}; continue with offset {next}]");
    }
    Ok(ToolOutput::text(text).with_cut(more || shortened))
}

fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
