//! The tool `read_file`.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, Instant};

use openvaala_executor::tool::ToolOutput;
use openvaala_protocol::content::{Content, ImageData};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::support::{Place, text};

/// Writes one file and reads it with the tool.
async fn read(bytes: impl AsRef<[u8]>, range: Value) -> Result<ToolOutput, String> {
    let place = Place::open().await;
    fs::write(place.path().join("file"), bytes).unwrap();
    let mut arguments = range;
    arguments["path"] = json!("file");
    place
        .call("read_file", arguments)
        .await
        .map_err(|error| error.to_string())
}

fn numbered(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

fn cut(text: &str) -> ToolOutput {
    ToolOutput::text(text).with_cut(true)
}

#[tokio::test]
async fn a_text_is_shown_as_it_is() {
    for content in [
        "a\nb\n",
        "no line break at the end",
        "\n\n",
        "漢字 🦀\r\nwindows\r\n",
    ] {
        assert_eq!(
            read(content, json!({})).await,
            Ok(ToolOutput::text(content))
        );
    }
    assert_eq!(
        read("", json!({})).await,
        Ok(ToolOutput::text("[the file is empty]"))
    );
}

#[tokio::test]
async fn a_byte_order_mark_is_left_out() {
    assert_eq!(
        read("\u{feff}text\n", json!({})).await,
        Ok(ToolOutput::text("text\n"))
    );
}

#[tokio::test]
async fn a_range_of_lines_says_how_to_read_on() {
    let content = numbered(5);
    let range = json!({ "offset": 2, "limit": 2 });
    let shown = cut("line 2\nline 3\n[lines 2-3 of 5; continue with offset 4]");
    assert_eq!(read(&content, range).await, Ok(shown));
    let rest = ToolOutput::text("line 4\nline 5\n");
    assert_eq!(
        read(&content, json!({ "offset": 4, "limit": 2 })).await,
        Ok(rest.clone())
    );
    assert_eq!(read(&content, json!({ "offset": 4 })).await, Ok(rest));
}

#[tokio::test]
async fn two_thousand_lines_are_shown_unless_more_are_asked_for() {
    let output = read("x\n".repeat(5_120), json!({})).await.unwrap();
    assert_eq!(
        output,
        cut(&format!(
            "{}[lines 1-2000 of 5120; continue with offset 2001]",
            "x\n".repeat(2_000)
        ))
    );
    let all = read("x\n".repeat(5_120), json!({ "limit": 9_999 }))
        .await
        .unwrap();
    assert_eq!(all, ToolOutput::text("x\n".repeat(5_120)));
}

#[tokio::test]
async fn the_text_stays_under_the_cap_and_ends_with_a_whole_line() {
    let line = format!("{}\n", "漢".repeat(100));
    let output = read(line.repeat(500), json!({})).await.unwrap();
    let (lines, footer) = {
        let text = text(&output);
        let (lines, footer) = text.rsplit_once("\n[").unwrap();
        (format!("{lines}\n"), footer.to_owned())
    };
    let shown = lines.len() / line.len();
    assert_eq!(lines, line.repeat(shown));
    assert_eq!(
        footer,
        format!(
            "lines 1-{shown} of 500; continue with offset {}]",
            shown + 1
        )
    );
    assert!((29_000..30_000).contains(&text(&output).len()));
}

#[tokio::test]
async fn a_long_line_is_cut_between_two_characters() {
    let content = format!("first\na{}\nlast\n", "漢".repeat(3_000));
    let shown = format!(
        "first\na{}[… 5,002 bytes of this line left out; use bash …]\nlast\n",
        "漢".repeat(1_333)
    );
    assert_eq!(read(content, json!({})).await, Ok(cut(&shown)));
}

#[tokio::test]
async fn a_line_without_end_is_shown_in_part() {
    let output = read("x".repeat(1_000_000), json!({})).await.unwrap();
    let mark = "[… 996,000 bytes of this line left out; use bash …]\n";
    assert_eq!(output, cut(&format!("{}{mark}", "x".repeat(4_000))));
}

#[tokio::test]
async fn an_offset_past_the_end_says_how_long_the_file_is() {
    let error = read(numbered(5), json!({ "offset": 6 })).await;
    assert_eq!(
        error,
        Err("file has 5 lines; offset 6 is past its end".to_owned())
    );
    let error = read(numbered(5), json!({ "limit": 0 })).await;
    let message = "invalid arguments for read_file: limit is 0; it must be at least 1";
    assert_eq!(error, Err(message.to_owned()));
}

#[tokio::test]
async fn images_are_shown_by_their_first_bytes() {
    let cases: [(&[u8], &str, &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png", "iVBORw0KGgo="),
        (b"\xff\xd8\xff\xe0", "image/jpeg", "/9j/4A=="),
        (b"GIF89a", "image/gif", "R0lGODlh"),
        (b"RIFF\0\0\0\0WEBP", "image/webp", "UklGRgAAAABXRUJQ"),
    ];
    for (bytes, media_type, base64) in cases {
        let data = ImageData::Base64(base64.to_owned());
        let image = Content::Image {
            media_type: media_type.to_owned(),
            data,
        };
        assert_eq!(
            read(bytes, json!({})).await,
            Ok(ToolOutput::new(vec![image]))
        );
    }
}

#[tokio::test]
async fn an_image_that_is_too_large_says_so() {
    let mut bytes = b"GIF89a".to_vec();
    bytes.resize(5 * 1024 * 1024 + 1, 0);
    let message = "file is an image of more than 5,242,880 bytes; make a smaller one with bash and \
                   read that";
    assert_eq!(read(&bytes, json!({})).await, Err(message.to_owned()));
    bytes.pop();
    assert!(read(&bytes, json!({})).await.is_ok());
}

#[tokio::test]
async fn s_48_what_is_no_text_points_to_bash() {
    let message = |line: u64| {
        Err(format!(
            "file is neither UTF-8 text (see line {line}) nor a PNG, JPEG, GIF or WebP image; look \
             at it with bash, for example with `file`, `xxd` or `strings`"
        ))
    };
    assert_eq!(read(b"\x7fELF\0\0", json!({})).await, message(1));
    assert_eq!(
        read(b"text\nna\xefve latin-1\n", json!({})).await,
        message(2)
    );
    assert_eq!(read(b"cut \xe6\xbc", json!({})).await, message(1));
    // Lines that nobody asked for are not judged.
    let output = read(b"text\nna\xefve\n", json!({ "limit": 1 })).await;
    assert_eq!(
        output,
        Ok(cut("text\n[lines 1-1 of 2; continue with offset 2]"))
    );
}

#[tokio::test]
async fn s_48_special_files_and_huge_ones_are_refused_in_time() {
    let place = Place::open().await;
    assert!(
        Command::new("mkfifo")
            .arg(place.path().join("fifo"))
            .status()
            .unwrap()
            .success()
    );
    File::create(place.path().join("sparse"))
        .unwrap()
        .set_len(10 << 30)
        .unwrap();
    let started = Instant::now();
    let root = place.path().display();
    let cases = [
        ("fifo", format!("{root}/fifo is a named pipe, not a regular file; use bash, with a bound on what is read")),
        ("/dev/zero", "/dev/zero is a character device, not a regular file; use bash, with a bound on what is read".to_owned()),
        (".", format!("{root} is a directory, not a file; list it with bash, for example with `ls`")),
        ("sparse", "sparse is neither UTF-8 text (see line 1) nor a PNG, JPEG, GIF or WebP image; look at it with bash, for example with `file`, `xxd` or `strings`".to_owned()),
    ];
    for (path, expected) in cases {
        let error = place
            .call("read_file", json!({ "path": path }))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn the_end_of_a_large_file_is_left_to_bash() {
    let output = read("x\n".repeat(10 << 20), json!({ "limit": 1 }))
        .await
        .unwrap();
    assert_eq!(
        output,
        cut("x\n[lines 1-1 of many; continue with offset 2]")
    );
    let output = read("x\n".repeat(10 << 20), json!({ "offset": 10 << 20 }))
        .await
        .unwrap();
    assert_eq!(output, ToolOutput::text("x\n"));
}

#[tokio::test]
async fn a_missing_file_is_named_with_its_neighbours() {
    let place = Place::open().await;
    fs::write(place.path().join("README.md"), "").unwrap();
    let root = place.path().display();
    let cases = [
        (
            "readme.md",
            format!("there is no file {root}/readme.md; {root} has README.md"),
        ),
        ("other", format!("there is no file {root}/other")),
        (
            "a/b",
            format!("there is no file {root}/a/b; its directory does not exist either"),
        ),
        (
            "~/x",
            format!(
                "the path \"~/x\" can't be used: `~` is not expanded; give an absolute path, or one relative to {root}"
            ),
        ),
    ];
    for (path, expected) in cases {
        let error = place
            .call("read_file", json!({ "path": path }))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
