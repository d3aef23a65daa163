//! Writing to standard output and standard error, and texts for people.

use std::io::{self, ErrorKind, Write};

use openvaala_protocol::time::Timestamp;

/// Writes to standard output at once; `false` once nobody reads it any longer.
pub(crate) fn out(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a note for people to standard error; if that is gone nobody misses it.
pub(crate) fn note(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{text}");
}

/// One line of at most `limit` characters, without what a terminal would obey or show in another order.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut line: String = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == limit {
            line.push('…');
            break;
        }
        let hidden =
            c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        line.push(if hidden { ' ' } else { c });
    }
    line.trim_end().to_owned()
}

/// How long ago something was, roughly.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_millis() - then.as_millis()).max(0) / 1_000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn s_32_control_characters_never_reach_the_terminal() {
        assert_eq!(one_line("a\u{1b}[2Jb\nc", 80), "a [2Jb c");
        assert_eq!(one_line("rm \u{202e}txt.exe", 80), "rm  txt.exe");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        assert_eq!(one_line("你好世界", 2), "你好…");
        assert_eq!(one_line("你好", 2), "你好");
    }

    #[test]
    fn times_are_told_roughly_and_never_in_the_future() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        assert_eq!(ago(at(100), at(50)), "just now");
        assert_eq!(ago(at(0), at(7_300)), "2 h ago");
    }
}
