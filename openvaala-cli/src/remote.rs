//! A server on another machine, or at another address: where it is, and what to show it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use openvaala_protocol::client::{Client, ClientError, ConnectOptions, Notices, Tls};
use openvaala_protocol::handshake::Credential;

use crate::args::ServerArgs;
use crate::error::CliError;
use crate::start::peer;

/// The port of a URL that names none.
const PORTS: (u16, u16) = (80, 443);

/// A server that is named, not found.
#[derive(Clone, Debug)]
pub(crate) struct RemoteServer {
    url: String,
    options: ConnectOptions,
}

impl RemoteServer {
    /// The one that is named on the command line or by variables; `None` if none is.
    pub(crate) fn find(args: &ServerArgs) -> Result<Option<Self>, CliError> {
        let Some(url) = &args.url else {
            return Ok(None);
        };
        let place = Place::parse(url)?;
        if !place.encrypted && !place.is_this_machine() && !args.insecure {
            let message = format!("what is said to {url} could be read and changed on its way");
            return Err(CliError::usage(message)
                .hint("use wss://, or give --insecure in a network that nobody else can read"));
        }
        let Some(file) = &args.token_file else {
            return Err(CliError::usage(format!("{url} wants a token")).hint(
                "give --token-file FILE with what `openvaala token create NAME` has shown on its machine",
            ));
        };
        let options = ConnectOptions::new(&place.address, credential(file)?, peer());
        let options = if place.encrypted {
            options.with_tls(trusted(args.ca_file.as_deref())?)
        } else {
            options
        };
        Ok(Some(Self {
            url: url.clone(),
            options,
        }))
    }

    /// As it was named.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn connect(&self) -> Result<(Client, Notices), CliError> {
        let connected = Client::connect(self.options.clone()).await;
        connected.map_err(|error| {
            let hint = hint(&error);
            let error = CliError::server(error.to_string()).because_of_source(&error);
            match hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        })
    }
}

fn hint(error: &ClientError) -> Option<&'static str> {
    match error {
        ClientError::Refused { .. } | ClientError::Unreachable { .. } => Some(
            "does a server listen there? `openvaala serve status` on its machine says at which address",
        ),
        ClientError::NotTrusted { .. } => Some(
            "give the certificate that vouches for it with --ca-file, and its name as the certificate has it",
        ),
        ClientError::WrongToken { .. } => {
            Some("`openvaala token list` on its machine shows the tokens that are good")
        }
        ClientError::WrongServer { .. } => Some(
            "is it ws:// or wss://, and the address for other machines? the token may be another server's",
        ),
        ClientError::Rejected { status: 403, .. } => {
            Some("its configuration names the hosts it is reached by: `remote.hosts`")
        }
        _ => None,
    }
}

/// What a URL says.
struct Place {
    /// `host:port`.
    address: String,
    host: String,
    encrypted: bool,
}

impl Place {
    fn parse(url: &str) -> Result<Self, CliError> {
        let wrong = |why: &str| {
            CliError::usage(format!("{url:?} is no address of a server: {why}"))
                .hint("give one such as wss://build.example.org:8791")
        };
        let (encrypted, rest) = match url.split_once("://") {
            Some(("wss", rest)) => (true, rest),
            Some(("ws", rest)) => (false, rest),
            _ => return Err(wrong("it begins with neither wss:// nor ws://")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '@']) {
            return Err(wrong("it has more than a host and a port"));
        }
        // The colons of an IPv6 address stand in brackets.
        let after_host = rest.rfind(']').map_or(0, |end| end + 1);
        let (host, port) = match rest[after_host..].split_once(':') {
            Some((host, port)) => (
                &rest[..after_host + host.len()],
                port.parse()
                    .map_err(|_| wrong("its port is no number up to 65535"))?,
            ),
            None => (rest, if encrypted { PORTS.1 } else { PORTS.0 }),
        };
        if host.is_empty() {
            return Err(wrong("its host is missing"));
        }
        Ok(Self {
            address: format!("{host}:{port}"),
            host: host.trim_matches(['[', ']']).to_owned(),
            encrypted,
        })
    }

    fn is_this_machine(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

/// Reads a token from a file that nobody else may read.
fn credential(file: &Path) -> Result<Credential, CliError> {
    let shown = file.display();
    let failed =
        |error| CliError::usage(format!("cannot read the token in {shown}")).because(error);
    let mode = fs::metadata(file).map_err(failed)?.mode();
    if mode & 0o077 != 0 {
        let message = format!("others than you may read the token in {shown}");
        return Err(CliError::usage(message).hint(format!("chmod 600 {shown}")));
    }
    let text = fs::read_to_string(file).map_err(failed)?;
    text.parse()
        .map_err(|error| CliError::usage(format!("{shown} holds no token")).because(error))
}

fn trusted(ca_file: Option<&Path>) -> Result<Tls, CliError> {
    let more = match ca_file {
        Some(file) => fs::read(file).map_err(|error| {
            CliError::usage(format!("cannot read {}", file.display())).because(error)
        })?,
        None => Vec::new(),
    };
    Tls::trusting(&more).map_err(|error| {
        let file = ca_file.map_or_else(
            || PathBuf::from("the certificates of this system"),
            Path::to_owned,
        );
        CliError::usage(format!("{} cannot be trusted", file.display())).because(error)
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn parsed(url: &str) -> Option<(String, bool, bool)> {
        let place = Place::parse(url).ok()?;
        let here = place.is_this_machine();
        Some((place.address, place.encrypted, here))
    }

    #[test]
    fn a_url_names_scheme_host_and_port_and_nothing_else() {
        let place = |address: &str, encrypted, here| Some((address.to_owned(), encrypted, here));
        assert_eq!(
            parsed("wss://build.example.org:8791"),
            place("build.example.org:8791", true, false)
        );
        assert_eq!(
            parsed("wss://build.example.org/"),
            place("build.example.org:443", true, false)
        );
        assert_eq!(
            parsed("ws://127.0.0.1:8790"),
            place("127.0.0.1:8790", false, true)
        );
        assert_eq!(parsed("ws://[::1]"), place("[::1]:80", false, true));
        assert_eq!(
            parsed("wss://[2001:db8::1]:1"),
            place("[2001:db8::1]:1", true, false)
        );
        for wrong in [
            "build.example.org:8791",
            "https://build.example.org",
            "wss://",
            "wss://:1",
            "wss://a:b",
            "wss://a:70000",
            "wss://user@a",
            "wss://a/web",
            "wss://a?token=1",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
