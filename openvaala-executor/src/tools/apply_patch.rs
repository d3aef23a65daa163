//! The tool that changes files by a patch.

mod place;
mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::select;

use self::plan::Plan;
use crate::error::ExecutorError;
use crate::file::Files;
use crate::patch::{Patch, PatchError, unwrap};
use crate::tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec, TypedTool, typed};

const DESCRIPTION: &str = "\
Changes files by a patch: all of it, or nothing. Example:
*** Begin Patch
*** Update File: src/a.py
@@ def greet():
     name = ask()
-    print(\"Hi\")
+    print(\"Hello\")
*** Add File: b.txt
+a line
*** Delete File: old.txt
*** End Patch
`*** Move to: path` below an Update line moves the file. A chunk begins with `@@`; its lines begin \
with a space (kept), `-` (removed) or `+` (added). Copy about 3 kept lines around a change exactly; \
if they occur more than once, put a whole line that stands above them behind `@@`. Chunks are in \
the order of the file. `*** End of File` behind a chunk ties it to the end. Only `+` lines: added \
below the `@@` line, or at the end. Paths are absolute, or relative to the working directory and \
within it.";

pub(super) fn apply_patch(files: Arc<dyn Files>) -> Arc<dyn Tool> {
    let typed = typed(ApplyPatch { files });
    Arc::new(Lenient { typed })
}

#[derive(Debug)]
struct ApplyPatch {
    files: Arc<dyn Files>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    patch: String,
}

#[async_trait]
impl TypedTool for ApplyPatch {
    type Arguments = Arguments;

    const NAME: &'static str = "apply_patch";

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let patch = Patch::parse(&args.patch).map_err(|error| unchanged(&error))?;
        let plan = select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
            plan = Plan::make(&*self.files, &patch) => plan?,
        };
        // From here on the files change, so a cancel comes too late.
        let (changes, report) = plan.into_parts();
        if !changes.is_empty() {
            self.files.change(changes).await.map_err(explain)?;
        }
        Ok(ToolOutput::text(report))
    }
}

fn unchanged(error: &PatchError) -> ToolError {
    ToolError::failed(format!("{error}\nNo file was changed."))
}

/// Says with every error but one that nothing was changed.
fn explain(error: ExecutorError) -> ToolError {
    match error {
        error @ ExecutorError::HalfChanged { .. } => error.into(),
        error => ToolError::failed(format!("{}\nNo file was changed.", ToolError::from(error))),
    }
}

/// Takes a patch also where it is not in the field `patch`, or not in JSON at all.
#[derive(Debug)]
struct Lenient {
    typed: Arc<dyn Tool>,
}

#[async_trait]
impl Tool for Lenient {
    fn spec(&self) -> &ToolSpec {
        self.typed.spec()
    }

    async fn call(&self, context: ToolContext, arguments: &str) -> Result<ToolOutput, ToolError> {
        let parsed = serde_json::from_str::<Value>(arguments);
        let is_plain = parsed.is_ok_and(|value| value["patch"].is_string());
        let patch = unwrap(arguments);
        // What is not found to be a patch is left to the error message of the typed tool.
        if is_plain || !patch.trim_start().starts_with("***") {
            return self.typed.call(context, arguments).await;
        }
        let arguments = serde_json::json!({ "patch": patch }).to_string();
        self.typed.call(context, &arguments).await
    }
}
