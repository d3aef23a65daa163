//! A server of a sandbox, and how to reach it.

use std::fs;
use std::path::Path;

use openvaala_protocol::client::ConnectOptions;
use openvaala_protocol::handshake::Token;
use openvaala_protocol::rpc::params::server::Peer;
use rustix::process::Signal;
use serde::Deserialize;

use crate::running::{Outcome, Running};
use crate::sandbox::Sandbox;
use crate::wait;

/// What the discovery file says.
#[derive(Clone, Debug, Deserialize)]
pub struct Discovery {
    /// The server's process id.
    pub pid: u32,
    /// Where it listens.
    pub address: String,
    /// The secret.
    pub token: String,
    /// Its data directory, canonical.
    pub data_dir: String,
}

impl Discovery {
    /// Reads the discovery files of a state directory.
    #[must_use]
    pub fn all(state: &Path) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(state) else {
            return Vec::new();
        };
        let files = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path
                    .file_name()
                    .and_then(|name| name.to_str())
                    .unwrap_or_default();
                name.starts_with("runtime-server") && name.ends_with(".yaml")
            });
        files
            .filter_map(|path| serde_yaml::from_str(&fs::read_to_string(path).ok()?).ok())
            .collect()
    }

    /// How to connect to it.
    ///
    /// # Panics
    /// If the token is none.
    #[must_use]
    pub fn connect_options(&self) -> ConnectOptions {
        let peer = Peer {
            name: "openvaala-tests".to_owned(),
            version: "0".to_owned(),
        };
        ConnectOptions::new(&self.address, self.token(), peer).with_timeout(wait::DEADLINE)
    }

    /// The secret, read.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn token(&self) -> Token {
        self.token.parse().expect("the discovery file has a token")
    }
}

/// A server that this test started in the foreground; killed when dropped.
#[derive(Debug)]
pub struct Server {
    running: Running,
    /// How to reach it.
    pub discovery: Discovery,
}

impl Server {
    /// Starts `serve` and waits until its discovery file is there, or it has ended.
    #[track_caller]
    pub(crate) fn try_start(mut running: Running, sandbox: &Sandbox) -> Result<Self, Outcome> {
        let pid = running.pid();
        let discovery = wait::until("the discovery file of `serve`", || {
            let ended = running.try_wait().is_some();
            let mut found = Discovery::all(sandbox.state()).into_iter();
            let found = found.find(|discovery| discovery.pid == pid);
            // One that has ended is looked at no longer.
            if ended {
                Ok(None)
            } else {
                found.map(Some).ok_or("there is none with its pid")
            }
        });
        match discovery {
            Some(discovery) => Ok(Self { running, discovery }),
            None => Err(running.finish()),
        }
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.running.try_wait().is_none()
    }

    /// Waits for its end, which somebody else has caused.
    #[track_caller]
    #[must_use]
    pub fn finish(self) -> Outcome {
        self.running.finish()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.running.signal(signal);
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Kills it, as a crash would, and waits for its end.
    pub fn kill(self) {
        self.running.kill();
    }

    /// Asks it to end by a signal and waits for its end.
    #[track_caller]
    #[must_use]
    pub fn terminate(self) -> Outcome {
        self.running.signal(Signal::TERM);
        self.running.finish()
    }
}
