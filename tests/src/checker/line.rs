//! Reads the lines of a stream by the description of their format.

use std::fs;
use std::path::Path;

use super::Line;

/// What a stream may have beside whole lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unsound {
    /// Nothing.
    Nothing,
    /// Half a line at the end.
    HalfLine,
    /// Bytes in the place of lines: of an append that was not acknowledged a power cut keeps any part.
    Lines,
}

/// Reads the whole lines of a stream.
///
/// # Errors
/// What is wrong with the file, and where.
pub(super) fn read_stream(path: &Path, allowed: Unsound) -> Result<Vec<Line>, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let bytes = fs::read(path).map_err(|error| format!("I-1: {name}: {error}"))?;
    let (whole, torn) = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => bytes.split_at(end + 1),
        None => bytes.split_at(0),
    };
    if !torn.is_empty() && allowed == Unsound::Nothing {
        return Err(format!(
            "I-4: {name}: {} bytes at the end are no line",
            torn.len()
        ));
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut is_after_damage = false;
    for (index, text) in whole.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let line = match parse(text) {
            Ok(line) => line,
            Err(_) if allowed == Unsound::Lines => {
                is_after_damage = true;
                continue;
            }
            Err(why) => return Err(format!("I-4: {name} line {}: {why}", index + 1)),
        };
        let last = lines.last().map_or(0, |line| line.seq);
        let follows = line.seq == last + 1 || (is_after_damage && line.seq > last);
        if !follows {
            return Err(format!("I-2: {name}: number {} follows {last}", line.seq));
        }
        is_after_damage = false;
        lines.push(line);
    }
    Ok(lines)
}

/// Reads `{"seq":n,"time":t,"crc":"…","data":…}`, whose crc is that of `n,t,data` as written.
fn parse(line: &[u8]) -> Result<Line, String> {
    let text = str::from_utf8(line).map_err(|error| error.to_string())?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let shape = || {
        format!(
            "it is no entry: {}",
            text.chars().take(120).collect::<String>()
        )
    };
    let rest = text.strip_prefix("{\"seq\":").ok_or_else(shape)?;
    let (seq, rest) = rest.split_once(",\"time\":").ok_or_else(shape)?;
    let (time, rest) = rest.split_once(",\"crc\":\"").ok_or_else(shape)?;
    let (crc, rest) = rest.split_once("\",\"data\":").ok_or_else(shape)?;
    let data = rest.strip_suffix('}').ok_or_else(shape)?;
    let right = crc32c::crc32c(format!("{seq},{time},{data}").as_bytes());
    if crc != format!("{right:08x}") {
        return Err(format!("its checksum is {crc}, not {right:08x}"));
    }
    let seq = seq.parse().map_err(|_| shape())?;
    Ok(Line {
        seq,
        data: data.to_owned(),
    })
}
