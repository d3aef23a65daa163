//! A model double that others wrote: aimock, in each dialect, through `openvaala exec`.
//!
//! Needs variables that `tests/run` sets: `OPENVAALA_AIMOCK` (the program `llmock`) and `OPENVAALA_SPEC_PYTHON` (a
//! Python with `tests/counterparts/requirements.txt` installed). With `OPENVAALA_AIMOCK_ADDRESS` one that runs is
//! used, else each test starts its own. What was asked is checked against the vendors' own descriptions of their APIs.

mod answers;
mod failures;

use std::env;
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use openvaala_tests::binary::workspace;
use openvaala_tests::recorder::{Recorded, Recorder};
use openvaala_tests::running::Running;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::wait;
use uuid::Uuid;

use crate::dialect::{Dialect, Service, variable};

/// The double with our fixtures, asked in one dialect; what it is asked is kept.
///
/// It keeps a journal of its own, but only of what it understood: everything as if it had been asked in Chat.
pub(crate) struct Aimock {
    dialect: Dialect,
    recorder: Recorder,
    /// What a fixture answers the first time counts for each of these by itself.
    test_id: Uuid,
    _running: Option<Running>,
}

impl Aimock {
    pub(crate) fn start(dialect: Dialect) -> Self {
        let (address, running) = running();
        Self {
            dialect,
            recorder: Recorder::start(&address),
            test_id: Uuid::now_v7(),
            _running: running,
        }
    }

    /// This double as a service to ask.
    pub(crate) fn service(&self) -> Service {
        let model = match self.dialect {
            Dialect::Chat | Dialect::Responses => "gpt-5.4",
            Dialect::Messages => "claude-sonnet-4-6",
        };
        Service {
            address: self.recorder.address(),
            key: "test-key".to_owned(),
            model: model.to_owned(),
            provider: format!("headers:\n  X-Test-Id: {}\n", self.test_id),
            more_config: String::new(),
            attempts: 3,
        }
    }

    /// A sandbox whose default model is this one, with a README in its project.
    pub(crate) fn sandbox(&self) -> Sandbox {
        self.sandbox_for(&self.service())
    }

    fn sandbox_for(&self, service: &Service) -> Sandbox {
        let sandbox = Sandbox::new();
        self.dialect.use_service(&sandbox, service);
        sandbox.write_project("README.md", "# Paper plane\n\nFolds paper planes.\n");
        sandbox
    }

    fn base_url(&self) -> String {
        self.dialect.base_url(&self.recorder.address())
    }

    /// All requests that came, oldest first.
    fn requests(&mut self) -> &[Recorded] {
        self.recorder.requests()
    }

    /// Checks that so many requests came and that the vendor of the dialect would take each of them.
    #[track_caller]
    fn expect_valid_requests(&mut self, count: usize) {
        self.dialect.expect_valid(self.recorder.requests(), count);
    }
}

/// Where a double listens, and its process if it is one of this test.
pub(crate) fn running() -> (String, Option<Running>) {
    if let Ok(address) = env::var("OPENVAALA_AIMOCK_ADDRESS") {
        return (address, None);
    }
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new(variable("OPENVAALA_AIMOCK"));
    command
        .args(["-h", "127.0.0.1", "-p", &port.to_string()])
        .args(["--latency", "30", "--validate-on-load", "--strict", "-f"])
        .arg(workspace().join("tests/counterparts/aimock.json"));
    let mut running = Running::start(command);
    wait::until("aimock to listen", || match running.try_wait() {
        Some(status) => Ok(Err(status)),
        None => TcpStream::connect(&address).map(|_| Ok(())),
    })
    .unwrap_or_else(|status| panic!("aimock ended by itself: {status}"));
    (address, Some(running))
}
