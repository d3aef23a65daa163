//! Directories, environment and processes of one test.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::binary;
use crate::running::{Outcome, Running};
use crate::server::Server;
use crate::wait;

/// The variable that keeps the directories of a test that failed; they are named on standard error.
const KEEP: &str = "OPENVAALA_KEEP";

/// A world of its own for a test: nothing of this machine's user is seen, and nothing is left behind.
///
/// All processes that run with its home directory are killed when it is dropped, servers that a command
/// started included.
#[derive(Debug)]
pub struct Sandbox {
    root: TempDir,
    environment: BTreeMap<OsString, OsString>,
    data: PathBuf,
    state: PathBuf,
    config: PathBuf,
}

/// A process of a sandbox.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// Its arguments, with spaces between.
    pub line: String,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// Directories of its own for everything, an address of its own for the server, and no model but the demo.
    ///
    /// # Panics
    /// If the directories cannot be made.
    #[must_use]
    pub fn new() -> Self {
        let mut sandbox = Self::with_empty_home();
        for (variable, name) in [("CONFIG", "config"), ("DATA", "data"), ("STATE", "state")] {
            let folder = sandbox.root.path().join(name);
            sandbox.set(format!("OPENVAALA_{variable}_DIR"), &folder);
        }
        let root = sandbox.root.path();
        sandbox.config = root.join("config");
        sandbox.data = root.join("data");
        sandbox.state = root.join("state");
        sandbox.write_config("listen: 127.0.0.1:0\n");
        sandbox
    }

    /// A fresh machine: an empty home directory and nothing else.
    ///
    /// # Panics
    /// If the directories cannot be made.
    #[must_use]
    pub fn with_empty_home() -> Self {
        let root = TempDir::with_prefix("openvaala-test-").expect("a directory can be made");
        let (home, project) = (root.path().join("home"), root.path().join("project"));
        fs::create_dir(&home).expect("the home directory can be made");
        fs::create_dir(&project).expect("the project folder can be made");
        let mut environment = BTreeMap::new();
        environment.insert("PATH".into(), env::var_os("PATH").unwrap_or_default());
        environment.insert("HOME".into(), home.clone().into());
        environment.insert("OPENVAALA_NO_PROBE".into(), "1".into());
        Self {
            config: home.join(".config/openvaala"),
            data: home.join(".local/share/openvaala"),
            state: home.join(".local/state/openvaala"),
            root,
            environment,
        }
    }

    /// Sets a variable of the environment for the commands that start from now on.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.environment.insert(name.into(), value.into());
    }

    /// Removes a variable.
    pub fn unset(&mut self, name: &str) {
        self.environment.remove(OsStr::new(name));
    }

    /// Writes `openvaala.yaml`; every tool call runs without a question unless the text says otherwise.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_config(&self, text: &str) {
        // Tests of something else are not to wait for approvals.
        let free = if text.contains("approval:") {
            ""
        } else {
            "approval: {mode: full}\n"
        };
        write(
            &self.config.join("openvaala.yaml"),
            format!("{}{free}", with_newline(text)),
        );
    }

    /// Writes `providers/<name>.yaml`.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_provider(&self, name: &str, text: &str) {
        write(
            &self.config.join("providers").join(format!("{name}.yaml")),
            text,
        );
    }

    /// Configures a provider `fake` at that base URL and makes its model `fake-1` the default.
    pub fn use_model(&self, base_url: &str) {
        self.use_model_with(base_url, "");
    }

    /// As [`Self::use_model`], with more in `openvaala.yaml`.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn use_model_with(&self, base_url: &str, more: &str) {
        self.write_provider(
            "fake",
            &format!(
                "type: openai_chat\nbase_url: {base_url}\napi_key: test-key\ndefault_model: fake-1\n"
            ),
        );
        self.write_config(&format!(
            "listen: 127.0.0.1:0\ndefault_model:\n  provider: fake\n  model: fake-1\nretry:\n  first_wait_ms: 1\n{more}"
        ));
    }

    /// Writes a file of the project folder.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_project(&self, name: &str, bytes: impl AsRef<[u8]>) {
        write(&self.project().join(name), bytes);
    }

    /// The directory that holds all others.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The folder that commands run in.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// The home directory.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The data directory.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The state directory.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The configuration directory.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// The directories of all conversations on disk.
    #[must_use]
    pub fn conversations(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.data.join("conversations")) else {
            return Vec::new();
        };
        let mut found: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        found.sort();
        found
    }

    /// The binary with those arguments, in the project folder, with the environment of this sandbox alone.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary::openvaala());
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .envs(&self.environment);
        command
    }

    /// As [`Self::command`], started by another program that runs it in its own place: `wrapper` are that one's words.
    ///
    /// # Panics
    /// If there are no words.
    #[must_use]
    pub fn command_under(&self, wrapper: &[String], arguments: &[&str]) -> Command {
        let (program, rest) = wrapper.split_first().expect("a wrapper has a name");
        let mut command = Command::new(program);
        command
            .args(rest)
            .arg(binary::openvaala())
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .envs(&self.environment);
        command
    }

    /// Starts the binary.
    #[must_use]
    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.command(arguments))
    }

    /// Runs the binary to its end.
    #[track_caller]
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.start(arguments).finish()
    }

    /// Starts `serve` in the foreground and waits until it can be reached.
    #[track_caller]
    #[must_use]
    pub fn serve(&self) -> Server {
        Server::try_start(self.start(&["serve"]), self)
            .unwrap_or_else(|outcome| panic!("`serve` ended by itself: {outcome:?}"))
    }

    /// Starts `serve` under another program, such as strace, which must leave it the process id.
    ///
    /// # Errors
    /// How it ended, if it did before it could be reached.
    #[track_caller]
    pub fn serve_under(&self, wrapper: &[String]) -> Result<Server, Outcome> {
        let command = self.command_under(wrapper, &["serve"]);
        Server::try_start(Running::start(command), self)
    }

    /// Stops the server of this sandbox in good order, and waits until it is gone.
    ///
    /// # Panics
    /// If it does not stop.
    #[track_caller]
    pub fn stop_server(&self) {
        let _ = self
            .run(&["serve", "stop", "--timeout", "0"])
            .expect_code(0);
        wait::until("the end of the server", || {
            match self.servers().as_slice() {
                [] => Ok(()),
                left => Err(format!("{left:?}")),
            }
        });
    }

    /// The servers that run in this sandbox.
    #[must_use]
    pub fn servers(&self) -> Vec<Process> {
        let serves = |process: &Process| process.line.split(' ').nth(1) == Some("serve");
        self.processes().into_iter().filter(serves).collect()
    }

    /// All processes that run with this sandbox's home directory, zombies not counted.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        let home = [b"HOME=", self.home().as_os_str().as_encoded_bytes()].concat();
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid: u32| {
            // The environment of a zombie reads as empty.
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            environment
                .split(|byte| *byte == 0)
                .find(|variable| *variable == home)?;
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line)
                .replace('\0', " ")
                .trim_end()
                .to_owned();
            Some(Process { pid, line })
        })
        .collect()
    }

    /// Kills all processes of this sandbox and waits for their end.
    #[track_caller]
    pub fn kill_all(&self) {
        wait::until("the end of all processes of the sandbox", || {
            let left = self.processes();
            for process in &left {
                kill(process.pid);
            }
            if left.is_empty() {
                Ok(())
            } else {
                Err(format!("{left:?}"))
            }
        });
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for process in self.processes() {
            kill(process.pid);
        }
        if thread::panicking() && env::var_os(KEEP).is_some() {
            self.root.disable_cleanup(true);
            eprintln!("kept: {}", self.root.path().display());
        }
    }
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    let folder = path.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A text that ends with a line break, if there is anything in it.
fn with_newline(text: &str) -> String {
    let is_whole = text.is_empty() || text.ends_with('\n');
    format!("{text}{}", if is_whole { "" } else { "\n" })
}
