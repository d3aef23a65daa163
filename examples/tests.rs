//! The documents say what is.

use std::sync::Arc;

use openvaala_core::RetryPolicy;
use openvaala_core::executor::Executor;
use openvaala_core::executor::local::{LocalExecutor, LocalOptions};
use openvaala_core::executor::tool::Tool;
use openvaala_core::executor::tools::command_tools;
use serde_json::Value;

const TOOLS: &str = include_str!("../docs/tools.md");
const PROVIDERS: &str = include_str!("../docs/providers.md");

/// The part of a document under the heading that names that tool.
fn section<'a>(document: &'a str, tool: &str) -> Option<&'a str> {
    let sections = document.split("\n## ").skip(1);
    let names = |heading: &str| heading.split(", ").any(|name| name == tool);
    let mut found = sections.filter(|it| it.lines().next().is_some_and(names));
    found.next()
}

async fn all_tools() -> Vec<Arc<dyn Tool>> {
    let executor = LocalExecutor::new(LocalOptions::default());
    let workspace = executor.open("/").await.unwrap();
    let mut tools = workspace.tools();
    tools.extend(command_tools());
    tools
}

#[tokio::test]
async fn every_tool_is_documented_with_every_parameter() {
    let tools = all_tools().await;
    assert!(tools.len() >= 6, "{tools:?}");
    for tool in tools {
        let name = &tool.spec().name;
        let section = section(TOOLS, name).unwrap_or_else(|| panic!("no section on {name}"));
        assert!(
            TOOLS.contains(&format!("| [`{name}`](#")),
            "{name} is not in the first table"
        );
        let schema: Value = serde_json::from_str(tool.spec().parameters.get()).unwrap();
        for parameter in schema["properties"].as_object().unwrap().keys() {
            let told = section.contains(&format!("`{parameter}`"));
            assert!(told, "{name}: nothing on {parameter}");
        }
    }
}

#[test]
fn the_number_of_tries_is_the_documented_one() {
    let RetryPolicy { attempts, .. } = RetryPolicy::default();
    assert!(PROVIDERS.contains(&format!("up to {attempts} times in all")));
}
