use futures::FutureExt;
use pretty_assertions::assert_eq;
use serde::Deserialize;

use super::*;

#[derive(Debug)]
struct Resize;

/// Text about the struct that no model needs.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// The picture.
    path: String,
    width: Option<u32>,
    #[serde(default = "ten")]
    steps: u8,
    #[serde(default)]
    filters: Vec<Filter>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Filter {
    name: String,
}

fn ten() -> u8 {
    10
}

#[async_trait]
impl TypedTool for Resize {
    type Arguments = Arguments;

    const NAME: &'static str = "resize";

    fn description(&self) -> String {
        "Resizes a picture.".to_owned()
    }

    async fn run(&self, _: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let Arguments {
            path,
            width,
            steps,
            filters,
        } = args;
        let filters: Vec<String> = filters.into_iter().map(|filter| filter.name).collect();
        Ok(ToolOutput::text(format!(
            "{path} {width:?} {steps} {filters:?}"
        )))
    }
}

fn call(arguments: &str) -> Result<ToolOutput, String> {
    let tool = typed(Resize);
    let called = tool
        .call(ToolContext::unattended("call"), arguments)
        .now_or_never()
        .unwrap();
    called.map_err(|error| error.to_string())
}

#[test]
fn the_schema_has_what_a_model_needs_and_nothing_else() {
    let tool = typed(Resize);
    let spec = tool.spec();
    assert_eq!(
        (spec.name.as_str(), spec.description.as_str()),
        ("resize", "Resizes a picture.")
    );
    let expected = serde_json::json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "The picture." },
            "width": { "type": "integer", "minimum": 0 },
            "steps": { "type": "integer", "minimum": 0, "maximum": 255, "default": 10 },
            "filters": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "name": { "type": "string" } },
                    "required": ["name"],
                },
            },
        },
        "required": ["path"],
    });
    let schema: Value = serde_json::from_str(spec.parameters.get()).unwrap();
    assert_eq!(schema, expected);
}

#[test]
fn a_missing_field_gets_its_default_and_an_unknown_one_is_ignored() {
    let expected = ToolOutput::text("a None 10 []");
    assert_eq!(call(r#"{"path":"a"}"#), Ok(expected.clone()));
    assert_eq!(
        call(r#"{"unknown":[1],"path":"a","width":null}"#),
        Ok(expected)
    );
}

const EXPECTED: &str = "expected one JSON object with filters (array, optional), \
    path (string, required), steps (integer, optional), width (integer, optional)";

#[track_caller]
fn check_refused(arguments: &str, problem: &str) {
    let message = format!("invalid arguments for resize: {problem}; {EXPECTED}");
    assert_eq!(call(arguments), Err(message));
}

#[test]
fn m_29_a_wrong_argument_is_named_with_what_was_expected() {
    check_refused(
        r#"{"path":"a","width":"wide"}"#,
        r#"width: invalid type: string "wide", expected u32 at line 1 column 26"#,
    );
    check_refused(
        r#"{"path":"a","filters":[{"name":"x"},{"name":3}]}"#,
        "filters[1].name: invalid type: integer `3`, expected a string at line 1 column 45",
    );
    check_refused("{}", "missing field `path` at line 1 column 2");
    check_refused("", "missing field `path` at line 1 column 2");
}

#[test]
fn m_29_text_that_is_no_json_object_is_refused() {
    check_refused(
        r#"{"path":"#,
        "path: EOF while parsing a value at line 1 column 8",
    );
    check_refused(
        r#"{"path":"a"} and more"#,
        "trailing characters at line 1 column 14",
    );
    assert!(call("[]").is_err());
    assert!(call("\0").is_err());
}

#[test]
fn only_names_that_every_provider_takes_are_names() {
    let long = "x".repeat(64);
    let names = [
        "bash",
        "Read-File_2",
        &long,
        "",
        "a b",
        "ä",
        "a.b",
        &format!("{long}x"),
    ];
    let expected = [true, true, true, false, false, false, false, false];
    assert_eq!(names.map(is_tool_name), expected);
}
