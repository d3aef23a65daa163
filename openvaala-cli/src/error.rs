//! Errors as people see them, and the exit codes.

use std::error::Error;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use openvaala_protocol::client::ClientError;
use openvaala_server::ServerError;

/// The turn failed, or the command could not be carried out.
pub(crate) const FAILED: u8 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// The model refused.
pub(crate) const REFUSED: u8 = 3;
/// `serve`: another process has the data directory.
pub(crate) const TAKEN: u8 = 4;
/// The turn was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// An error with what caused it and what to do about it.
#[derive(Debug)]
pub(crate) struct CliError {
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
    code: u8,
}

impl CliError {
    /// Something that the user can put right.
    pub(crate) fn user(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            code: FAILED,
        }
    }

    /// Something wrong with what was given on the command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: USAGE,
            ..Self::user(message)
        }
    }

    /// A fault of this program.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::user(message)
    }

    pub(crate) fn because(mut self, error: impl Error) -> Self {
        self.causes.push(error.to_string());
        let mut source = error.source();
        while let Some(error) = source {
            self.causes.push(error.to_string());
            source = error.source();
        }
        self
    }

    pub(crate) fn because_text(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        for cause in &self.causes {
            line(&mut text, "  because: ", cause);
        }
        if let Some(hint) = &self.hint {
            line(&mut text, "hint: ", hint);
        }
        text
    }

    /// Prints the error and gives its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        // If standard error is gone there is nobody to tell.
        let _ = std::io::stderr().write_all(self.text().as_bytes());
        ExitCode::from(self.code)
    }
}

fn line(text: &mut String, label: &str, what: &dyn Display) {
    text.push_str(label);
    text.push_str(&what.to_string());
    text.push('\n');
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let hint = match &error {
            ClientError::WrongServer { .. } | ClientError::WrongToken { .. } => {
                Some("another program may use that address: `openvaala serve stop` and retry")
            }
            ClientError::Disconnected { .. } => Some(
                "the server may have been stopped: look at `openvaala serve status` and its log",
            ),
            _ => None,
        };
        let made = match &error {
            ClientError::Rpc(rpc) => Self::user(rpc.message.clone()),
            other => Self::user(other.to_string()).because_of_source(other),
        };
        match hint {
            Some(hint) => made.hint(hint),
            None => made,
        }
    }
}

impl CliError {
    fn because_of_source(mut self, error: &dyn Error) -> Self {
        let mut source = error.source();
        while let Some(error) = source {
            self.causes.push(error.to_string());
            source = error.source();
        }
        self
    }
}

impl From<ServerError> for CliError {
    fn from(error: ServerError) -> Self {
        let code = match &error {
            ServerError::DataDirInUse { .. } => TAKEN,
            _ => FAILED,
        };
        Self {
            code,
            ..Self::user(error.to_string()).because_of_source(&error)
        }
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::user("input or output failed").because(error)
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> Self {
        Self::internal("something could not be written as JSON").because(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_what_happened_why_and_the_way_out() {
        let cause = std::io::Error::other("no such device");
        let error = CliError::user("the server cannot be started")
            .because(cause)
            .hint("try again");
        assert_eq!(
            error.text(),
            "error: the server cannot be started\n  because: no such device\nhint: try again\n"
        );
    }

    #[test]
    fn a_taken_data_directory_has_an_exit_code_of_its_own() {
        let taken = ServerError::DataDirInUse {
            data_dir: "/data".into(),
            pid: Some(7),
            address: None,
        };
        assert_eq!(CliError::from(taken).code, TAKEN);
    }
}
