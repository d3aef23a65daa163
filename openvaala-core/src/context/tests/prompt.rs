use std::sync::Arc;

use async_trait::async_trait;
use openvaala_executor::file::Files;
use openvaala_executor::process::Processes;
use openvaala_executor::tool::Tool;
use openvaala_executor::{EnvironmentInfo, Workspace};
use openvaala_protocol::id::ExecutorId;
use openvaala_protocol::time::Timestamp;
use pretty_assertions::assert_eq;

use crate::context::{PromptInput, system_prompt};

#[derive(Debug)]
struct Place {
    id: ExecutorId,
    environment: EnvironmentInfo,
}

#[async_trait]
impl Workspace for Place {
    fn executor(&self) -> &ExecutorId {
        &self.id
    }

    fn root(&self) -> &str {
        "/home/me/tea"
    }

    fn environment(&self) -> &EnvironmentInfo {
        &self.environment
    }

    fn files(&self) -> &dyn Files {
        panic!("a prompt reads no files")
    }

    fn processes(&self) -> &dyn Processes {
        panic!("a prompt starts no processes")
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![]
    }

    async fn close(&self) {}
}

fn place(id: &str) -> Arc<dyn Workspace> {
    let environment = EnvironmentInfo::new("linux".into(), "x86_64".into(), "/usr/bin/bash".into());
    Arc::new(Place {
        id: id.parse().unwrap(),
        environment,
    })
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_prompt_is_short_and_ends_with_the_environment() {
    let workspaces = [place("local"), place("build-host")];
    let mut input = PromptInput::new(&workspaces, time("2026-12-02T04:22:41.123Z"));
    input.instructions = Some("Call me Ada.\n");
    let prompt = system_prompt(input);
    assert!(prompt.len() < 2_500, "{} bytes", prompt.len());
    insta::assert_snapshot!(format!("{} bytes\n{prompt}", prompt.len()));
}

#[test]
fn the_prompt_stays_the_same_all_day() {
    let workspaces = [place("local")];
    let prompt = |at| system_prompt(PromptInput::new(&workspaces, time(at)));
    assert_eq!(
        prompt("2026-12-02T00:00:00Z"),
        prompt("2026-12-02T23:59:59Z")
    );
    assert_ne!(
        prompt("2026-12-02T00:00:00Z"),
        prompt("2026-12-03T00:00:00Z")
    );
}

#[test]
fn an_agent_without_executor_is_told_so() {
    let prompt = system_prompt(PromptInput::new(&[], time("2026-12-02T00:00:00Z")));
    assert!(
        prompt.ends_with("There is no executor: no files and no commands.\n"),
        "{prompt}"
    );
}
