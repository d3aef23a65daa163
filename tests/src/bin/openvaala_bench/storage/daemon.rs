//! A server on a generated data directory.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use openvaala_core::protocol::client::{Client, ConnectOptions, Notices};
use openvaala_core::protocol::handshake::Token;
use openvaala_core::protocol::id::ConversationId;
use openvaala_core::protocol::rpc::method;
use openvaala_core::protocol::rpc::params::conversation::ListParams;
use openvaala_core::protocol::rpc::params::server::Peer;
use openvaala_core::protocol::rpc::params::session::ItemsParams;
use openvaala_tests::server::Discovery;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Setting, list, ms};
use crate::Failure;
use crate::generate::Author;

const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Killed when dropped.
#[derive(Debug)]
pub(super) struct Daemon {
    process: Child,
    client: Client,
    _notices: Notices,
    _home: TempDir,
    /// Milliseconds from the start of the process to its first answer.
    pub(super) ready: f64,
}

impl Daemon {
    /// Starts `openvaala serve`, with at most so many open files, and waits for its first answer.
    pub(super) async fn start(
        setting: &Setting,
        data: &Path,
        files: Option<u64>,
    ) -> Result<Self, Failure> {
        let home = tempfile::Builder::new()
            .prefix("home-")
            .tempdir_in(&setting.folder)?;
        let (config, state) = (home.path().join("config"), home.path().join("state"));
        fs::create_dir(&config)?;
        fs::write(config.join("openvaala.yaml"), "listen: 127.0.0.1:0\n")?;
        let mut command = limited(&setting.binary, files);
        command
            .arg("serve")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.path())
            .env("OPENVAALA_NO_PROBE", "1")
            .env("OPENVAALA_CONFIG_DIR", config)
            .env("OPENVAALA_STATE_DIR", &state)
            .env("OPENVAALA_DATA_DIR", data)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let began = Instant::now();
        let mut process = command.spawn()?;
        match first_answer(&mut process, &state).await {
            Ok((client, notices)) => Ok(Self {
                ready: ms(began),
                process,
                client,
                _notices: notices,
                _home: home,
            }),
            Err(error) => {
                process.kill()?;
                process.wait()?;
                Err(error)
            }
        }
    }

    /// The first page of the list is the right one.
    pub(super) async fn check_list(&self, author: &Author) -> Result<(), Failure> {
        let page = self
            .client
            .call::<method::ConversationList>(ListParams::default())
            .await?;
        list::check(&page.conversations, &list::wanted(author, None))
    }

    /// The last item of a conversation's root session.
    pub(super) async fn last_items(&self, id: ConversationId) -> Result<usize, Failure> {
        let params: ItemsParams =
            serde_json::from_value(serde_json::json!({ "conversation_id": id, "limit": 1 }))?;
        Ok(self
            .client
            .call::<method::SessionItems>(params)
            .await?
            .items
            .len())
    }

    /// How many files it has open.
    pub(super) fn open_files(&self) -> Result<usize, Failure> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.process.id()))?.count())
    }

    /// Ends it in good order.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        let pid = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        kill_process(pid.ok_or("the server has no process id")?, Signal::TERM)?;
        let status = tokio::task::block_in_place(|| self.process.wait())?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the server ended with {status}").into())
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended before, or has to now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn limited(binary: &Path, files: Option<u64>) -> Command {
    let Some(files) = files else {
        return Command::new(binary);
    };
    let mut command = Command::new("bash");
    command
        .args([
            "-c",
            "ulimit -n \"$1\"; shift; exec \"$@\"",
            "bash",
            &files.to_string(),
        ])
        .arg(binary);
    command
}

async fn first_answer(process: &mut Child, state: &Path) -> Result<(Client, Notices), Failure> {
    let began = Instant::now();
    let pid = process.id();
    loop {
        let found = Discovery::all(state)
            .into_iter()
            .find(|found| found.pid == pid);
        if let Some(found) = found {
            let token: Token = found.token.parse()?;
            let peer = Peer {
                name: "openvaala-bench".to_owned(),
                version: "0".to_owned(),
            };
            let options = ConnectOptions::new(&found.address, token, peer);
            return Ok(Client::connect(options).await?);
        }
        if let Some(status) = process.try_wait()? {
            return Err(format!("`serve` ended by itself: {status}").into());
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("`serve` was not there after {PATIENCE:?}").into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
