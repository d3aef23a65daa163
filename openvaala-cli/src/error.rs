//! Errors as people see them, and the exit codes.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use openvaala_protocol::client::ClientError;
use openvaala_protocol::rpc::ErrorCode;
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

/// Whose turn it is to do something about an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Something that the user can put right.
    User,
    /// Something wrong with what was given on the command line.
    Usage,
    /// The server, or the way to it.
    Server,
    /// Another process has the data directory.
    Taken,
    /// A fault of this program.
    Internal,
}

impl Kind {
    const fn exit_code(self) -> u8 {
        match self {
            Self::User | Self::Server | Self::Internal => FAILED,
            Self::Usage => USAGE,
            Self::Taken => TAKEN,
        }
    }
}

/// An error with what caused it and what to do about it.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl CliError {
    const fn new(kind: Kind, message: String) -> Self {
        Self {
            kind,
            message,
            causes: Vec::new(),
            hint: None,
        }
    }

    /// Something that the user can put right.
    pub(crate) fn user(message: impl Into<String>) -> Self {
        Self::new(Kind::User, message.into())
    }

    /// Something wrong with what was given on the command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message.into())
    }

    /// The server did not do its part.
    pub(crate) fn server(message: impl Into<String>) -> Self {
        Self::new(Kind::Server, message.into())
    }

    /// A fault of this program.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message.into())
            .hint("this is a fault of openvaala: please report it")
    }

    /// Adds an error and all that lies behind it.
    pub(crate) fn because(mut self, error: impl Error) -> Self {
        self.causes.push(error.to_string());
        self.because_of_source(&error)
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
            text.push_str(&format!("  because: {cause}\n"));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
        text
    }

    /// Prints the error and gives its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        // If standard error is gone there is nobody to tell.
        let _ = std::io::stderr().write_all(self.text().as_bytes());
        ExitCode::from(self.kind.exit_code())
    }

    pub(crate) fn because_of_source(mut self, error: &dyn Error) -> Self {
        let mut source = error.source();
        while let Some(error) = source {
            self.causes.push(error.to_string());
            source = error.source();
        }
        self
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let made = match &error {
            ClientError::Rpc(rpc) => Self::server(rpc.message.clone()),
            other => Self::server(other.to_string()).because_of_source(other),
        };
        match client_hint(&error) {
            Some(hint) => made.hint(hint),
            None => made,
        }
    }
}

fn client_hint(error: &ClientError) -> Option<&'static str> {
    match error {
        ClientError::Refused { .. } | ClientError::Unreachable { .. } => {
            Some("`openvaala serve status` tells whether a server runs")
        }
        ClientError::WrongServer { .. } | ClientError::WrongToken { .. } => {
            Some("another program may use that address: `openvaala serve stop` and retry")
        }
        ClientError::Disconnected { .. } => {
            Some("the server may have been stopped: look at `openvaala serve status` and its log")
        }
        ClientError::TimedOut { .. } => {
            Some("the server may be overloaded: look at `openvaala serve status` and its log")
        }
        ClientError::Rpc(rpc) if rpc.kind() == Some(ErrorCode::ConversationNotFound) => {
            Some("`openvaala list` shows the conversations that there are")
        }
        _ => None,
    }
}

impl From<ServerError> for CliError {
    fn from(error: ServerError) -> Self {
        let kind = match &error {
            ServerError::DataDirInUse { .. } => Kind::Taken,
            _ => Kind::User,
        };
        Self::new(kind, error.to_string()).because_of_source(&error)
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
mod tests;
