//! Tools whose arguments are a struct.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

/// A tool whose arguments are a struct, from which its schema is made.
///
/// A missing field gets its default where the struct says so (`Option`, `#[serde(default)]`), an
/// unknown field is ignored, and each call is parsed on its own. Doc comments of the fields become
/// their descriptions. [`typed`] turns it into a [`Tool`].
#[async_trait]
pub trait TypedTool: Debug + Send + Sync + 'static {
    /// What it is called with: a struct with named fields.
    type Arguments: DeserializeOwned + JsonSchema + Send;

    /// Its name: 1 to 64 of `a-z A-Z 0-9 _ -`, checked when the program is compiled.
    const NAME: &'static str;

    /// Whether a call of it changes nothing, whatever its arguments are: then it may run without a question.
    const READ_ONLY: bool = false;

    /// What it does and when to use it; sent with every request, so short.
    fn description(&self) -> String;

    /// Runs one call; see [`Tool::call`] for cancellation.
    ///
    /// # Errors
    ///
    /// As [`Tool::call`].
    async fn run(
        &self,
        context: ToolContext,
        arguments: Self::Arguments,
    ) -> Result<ToolOutput, ToolError>;
}

/// Makes a [`Tool`] of a [`TypedTool`].
pub fn typed<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    const {
        assert!(
            is_tool_name(T::NAME),
            "a tool name is 1 to 64 of a-z A-Z 0-9 _ -"
        )
    };
    let spec = ToolSpec::new(
        T::NAME.to_owned(),
        tool.description(),
        schema::<T::Arguments>(),
    )
    .with_read_only(T::READ_ONLY);
    Arc::new(Adapter { spec, tool })
}

/// Tells whether every provider takes this as the name of a tool.
pub(super) const fn is_tool_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !(bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_' || bytes[at] == b'-') {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty() && bytes.len() <= 64
}

#[derive(Debug)]
struct Adapter<T> {
    spec: ToolSpec,
    tool: T,
}

#[async_trait]
impl<T: TypedTool> Tool for Adapter<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, context: ToolContext, arguments: &str) -> Result<ToolOutput, ToolError> {
        let arguments = parse(&self.spec, arguments)?;
        self.tool.run(context, arguments).await
    }
}

fn parse<A: DeserializeOwned>(spec: &ToolSpec, arguments: &str) -> Result<A, ToolError> {
    // Models send nothing at all for a call without arguments.
    let text = if arguments.trim().is_empty() {
        "{}"
    } else {
        arguments
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| {
            let path = error.path().to_string();
            match path.as_str() {
                "." | "?" => error.inner().to_string(),
                _ => format!("{path}: {}", error.inner()),
            }
        })
        .and_then(|parsed| {
            deserializer
                .end()
                .map(|()| parsed)
                .map_err(|error| error.to_string())
        });
    parsed.map_err(|message| ToolError::InvalidArguments {
        tool: spec.name.clone(),
        message: format!("{message}; {}", expected(&spec.parameters)),
    })
}

/// Says in one line what a schema takes, for a model that got it wrong.
fn expected(parameters: &RawValue) -> String {
    let schema: Value = serde_json::from_str(parameters.get()).unwrap_or_default();
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|n| n == name))
    };
    let fields: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, field)| {
            let kind = field["type"].as_str().unwrap_or("value");
            let need = if required(name) {
                "required"
            } else {
                "optional"
            };
            format!("{name} ({kind}, {need})")
        })
        .collect();
    if fields.is_empty() {
        return "expected an empty JSON object".to_owned();
    }
    format!("expected one JSON object with {}", fields.join(", "))
}

/// The JSON Schema of a struct, without what only costs tokens.
fn schema<A: JsonSchema>() -> Box<RawValue> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<A>()
        .to_value();
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
        root.remove("description");
        if root.get("type").is_some_and(|kind| kind == "object") {
            root.entry("properties")
                .or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
    }
    simplify(&mut schema);
    // A schema is plain data and always has a text; a toolbox refuses null by name.
    to_raw_value(&schema).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Drops what a model has no use for: number formats, null as a default, null beside a type.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|key, value| match key.as_str() {
                "default" => !value.is_null(),
                "format" => !value.is_string(),
                _ => true,
            });
            if let Some(Value::Array(kinds)) = fields.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [only] = kinds.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            fields.values_mut().for_each(simplify);
        }
        Value::Array(values) => values.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
