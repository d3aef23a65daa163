//! What errors look like, and which code the process ends with.

use std::io;
use std::time::Duration;

use insta::assert_snapshot;
use openvaala_protocol::rpc::RpcError;
use pretty_assertions::assert_eq;

use super::*;

fn nobody() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionRefused,
        "Connection refused (os error 111)",
    )
}

#[test]
fn an_error_shows_what_happened_why_and_what_to_do() {
    let address = "127.0.0.1:8790".to_owned();
    let refused = ClientError::Refused {
        address,
        source: nobody(),
    };
    assert_snapshot!(CliError::from(refused).text(), @r"
    error: nobody listens at 127.0.0.1:8790
      because: Connection refused (os error 111)
    hint: `openvaala serve status` tells whether a server runs
    ");
}

#[test]
fn an_error_of_the_server_shows_its_message_without_its_code() {
    let id = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";
    let message = format!("there is no conversation {id}");
    let error = ClientError::Rpc(RpcError::new(ErrorCode::ConversationNotFound, message));
    assert_snapshot!(CliError::from(error).text(), @r"
    error: there is no conversation 0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d
    hint: `openvaala list` shows the conversations that there are
    ");
}

#[test]
fn another_version_is_told_with_the_way_out() {
    let error = ClientError::VersionMismatch {
        ours: "0.1".to_owned(),
        theirs: "0.2".to_owned(),
    };
    assert_snapshot!(CliError::from(error).text(), @r#"error: the server speaks protocol version "0.2", this client "0.1": run `openvaala serve stop` and retry"#);
}

#[test]
fn a_chain_of_causes_is_shown_to_its_end() {
    #[derive(Debug, thiserror::Error)]
    #[error("the index is locked")]
    struct Outer(#[source] io::Error);

    let error = CliError::user("the index cannot be built")
        .because(Outer(nobody()))
        .because_text("and that was all")
        .hint("stop the other program");
    assert_snapshot!(error.text(), @r"
    error: the index cannot be built
      because: the index is locked
      because: Connection refused (os error 111)
      because: and that was all
    hint: stop the other program
    ");
}

#[test]
fn every_kind_of_error_has_its_exit_code() {
    let limit = Duration::from_secs(1);
    let timed_out = ClientError::TimedOut {
        what: "connecting".to_owned(),
        limit,
    };
    let data_dir = "/data".into();
    let taken = ServerError::DataDirInUse {
        data_dir,
        pid: Some(7),
        address: None,
    };
    let codes = [
        CliError::user("x"),
        CliError::usage("x"),
        CliError::internal("x"),
        CliError::from(timed_out),
        CliError::from(taken),
    ]
    .map(|error| error.kind.exit_code());
    assert_eq!(codes, [1, 2, 1, 1, 4]);
}
