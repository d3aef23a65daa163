//! Images from files: taken for what they are, not for what they are called.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openvaala_protocol::content::{Content, ImageData};

use crate::error::CliError;
use crate::output::one_line;

/// The largest image, in bytes.
const MAX_BYTES: u64 = 8 << 20;

/// How much of a file is looked at to tell what it is.
const LOOK: usize = 512;

/// How files begin that are taken.
const IMAGES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

/// How files begin that somebody may take for an image.
const OTHERS: [(&[u8], &str); 13] = [
    (b"%PDF-", "a PDF document"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\0\0\x01\0", "a Windows icon"),
    (b"8BPS", "a Photoshop file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "a program"),
    (b"RIFF", "a sound or video"),
    (b"OggS", "a sound or video"),
    (b"\x1aE\xdf\xa3", "a video"),
    (
        b"version https://git-lfs",
        "a Git LFS pointer: run `git lfs pull`",
    ),
];

/// Reads an image.
///
/// # Errors
/// Names the file and, if it is no image, what it seems to be.
pub(super) fn read(path: &Path) -> Result<Content, CliError> {
    let name = one_line(&path.display().to_string(), 200);
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| CliError::usage(format!("{name} cannot be read")).because(error))?;
    let media_type = media_type(&bytes).map_err(|seems| {
        CliError::usage(format!(
            "{name} is no image that can be sent: it seems to be {seems}"
        ))
        .hint("images may be PNG, JPEG, GIF or WebP")
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("{name} has more than {} MiB", MAX_BYTES >> 20);
        return Err(CliError::usage(message).hint("send a smaller image"));
    }
    Ok(Content::Image {
        media_type: media_type.to_owned(),
        data: ImageData::Base64(STANDARD.encode(bytes)),
    })
}

/// The media type of an image, or what the bytes seem to be instead.
fn media_type(bytes: &[u8]) -> Result<&'static str, &'static str> {
    let begins = |(magic, _): &&(&[u8], &str)| bytes.starts_with(magic);
    if let Some((_, media_type)) = IMAGES.iter().find(begins) {
        return Ok(media_type);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Ok("image/webp");
    }
    if bytes.is_empty() {
        return Err("an empty file");
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return Err(match bytes.get(8..12) {
            Some(b"avif" | b"avis") => "an AVIF image",
            Some(b"heic" | b"heix" | b"heim" | b"hevc" | b"mif1") => "an HEIC image",
            _ => "a video",
        });
    }
    if let Some((_, seems)) = OTHERS.iter().find(begins) {
        return Err(seems);
    }
    Err(text_kind(&bytes[..bytes.len().min(LOOK)]))
}

/// What a file seems to be that is no image and no binary format that is known here.
fn text_kind(bytes: &[u8]) -> &'static str {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        // The look may end within a character.
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return "binary data of another kind",
    };
    if text.contains('\0') {
        return "binary data of another kind";
    }
    let text = text.trim_start().to_ascii_lowercase();
    if text.contains("<svg") {
        "an SVG drawing"
    } else if text.starts_with("<!doctype html") || text.starts_with("<html") {
        "an HTML page"
    } else {
        "text"
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_file_is_told_by_its_content() {
        let table: &[(&[u8], Result<&str, &str>)] = &[
            (b"\x89PNG\r\n\x1a\n\0\0", Ok("image/png")),
            (b"\xff\xd8\xff\xe0JFIF", Ok("image/jpeg")),
            (b"GIF87a", Ok("image/gif")),
            (b"GIF89a", Ok("image/gif")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Ok("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ", Err("a sound or video")),
            (b"", Err("an empty file")),
            (b"\x89PNG", Err("binary data of another kind")),
            (b"%PDF-1.7", Err("a PDF document")),
            (b"\0\0\0\x1cftypheic", Err("an HEIC image")),
            (b"\0\0\0\x1cftypavif", Err("an AVIF image")),
            (b"\0\0\0\x1cftypisom", Err("a video")),
            (b"\0\0\0\x1cftyp", Err("a video")),
            (b"<?xml version=\"1.0\"?>\n<svg/>", Err("an SVG drawing")),
            (b"\n<!DOCTYPE html><html>", Err("an HTML page")),
            ("dear reader, ü".as_bytes(), Err("text")),
            (b"text\0text", Err("binary data of another kind")),
        ];
        for (bytes, told) in table {
            assert_eq!(
                media_type(bytes),
                *told,
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
        }
        let cut = [&b"x"[..], "ü".repeat(400).as_bytes()].concat();
        assert_eq!(media_type(&cut), Err("text"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let said = read(Path::new("/no/such/picture.png")).unwrap_err().text();
        assert!(
            said.starts_with("error: /no/such/picture.png cannot be read\n"),
            "{said}"
        );
        let said = read(Path::new(env!("CARGO_MANIFEST_DIR")))
            .unwrap_err()
            .text();
        assert!(said.contains("cannot be read"), "{said}");
    }
}
