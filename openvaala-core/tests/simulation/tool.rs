//! A tool that takes its time, fails, hangs, does not listen and panics as the dice say.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use openvaala_core::executor::tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::time::sleep;

use super::world::Shared;

#[derive(Debug)]
pub(crate) struct Work {
    spec: ToolSpec,
    shared: Arc<Shared>,
}

impl Work {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let parameters = to_raw_value(&json!({ "type": "object" })).unwrap();
        let spec = ToolSpec::new("work".to_owned(), "Does some work.".to_owned(), parameters);
        Self { spec, shared }
    }
}

/// Counts itself among the running tools until it is dropped.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.known().running -= 1;
    }
}

#[async_trait]
impl Tool for Work {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, context: ToolContext, arguments: &str) -> Result<ToolOutput, ToolError> {
        let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
        let number = arguments["number"].as_u64().unwrap();
        {
            let mut known = self.shared.known();
            known.running += 1;
            if !known.started.insert(number) {
                known
                    .wrong
                    .push(format!("I-8: call {number} is started twice"));
            }
        }
        let _running = Running(Arc::clone(&self.shared));
        match self.shared.below(100) {
            0..40 => {}
            40..60 => sleep(Duration::from_millis(self.shared.below(3_000))).await,
            60..70 => return Err(ToolError::failed("it does not work")),
            70..75 => return Ok(ToolOutput::text("long ".repeat(20_000))),
            75..85 => context.cancel.cancelled().await,
            85..95 => futures::future::pending().await,
            _ => panic!("a fault in the tool"),
        }
        Ok(ToolOutput::text(format!("work {number} is done")))
    }
}
