use async_trait::async_trait;
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::tool::{ToolContext, ToolError, ToolOutput};

#[derive(Debug)]
struct Fake(ToolSpec);

#[async_trait]
impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: ToolContext, arguments: &str) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(arguments))
    }
}

const SCHEMA: &str = r#"{"type":"object","properties":{"id":{"type":"integer","maximum":12345678901234567890123}},"required":["id"]}"#;

fn tool_with(name: &str, schema: &str) -> Arc<dyn Tool> {
    let parameters = RawValue::from_string(schema.to_owned()).unwrap();
    Arc::new(Fake(ToolSpec::new(
        name.to_owned(),
        "Does it.".to_owned(),
        parameters,
    )))
}

fn id(executor: &str) -> ExecutorId {
    executor.parse().unwrap()
}

fn on(executor: &str, name: &str) -> Offer {
    Offer::on(id(executor), tool_with(name, SCHEMA))
}

fn toolbox(offers: Vec<Offer>) -> Toolbox {
    Toolbox::new(offers).unwrap()
}

fn two() -> Toolbox {
    toolbox(vec![on("local", "bash"), on("build", "bash")])
}

fn routed(toolbox: &Toolbox, arguments: &str) -> (Option<ExecutorId>, String) {
    let routed = toolbox.route("bash", arguments).unwrap();
    (routed.executor, routed.arguments)
}

fn specs(toolbox: &Toolbox) -> Vec<(String, String)> {
    let text = |spec: ToolSpec| (spec.name, spec.parameters.get().to_owned());
    toolbox.specs().into_iter().map(text).collect()
}

#[test]
fn specs_are_sorted_by_name_whatever_the_order_of_the_offers() {
    let all = || {
        vec![
            on("local", "read_file"),
            on("build", "bash"),
            on("local", "bash"),
        ]
    };
    let names: Vec<String> = toolbox(all())
        .specs()
        .into_iter()
        .map(|spec| spec.name)
        .collect();
    assert_eq!(names, ["bash", "read_file"]);
    let reversed = all().into_iter().rev().collect();
    assert_eq!(specs(&toolbox(all())), specs(&toolbox(reversed)));
}

#[test]
fn a_tool_of_one_executor_is_shown_as_it_is() {
    let toolbox = toolbox(vec![on("local", "bash")]);
    assert_eq!(specs(&toolbox), [("bash".to_owned(), SCHEMA.to_owned())]);
    let arguments = r#"{ "id" : 12345678901234567890123 }"#;
    assert_eq!(
        routed(&toolbox, arguments),
        (Some(id("local")), arguments.to_owned())
    );
}

#[test]
fn a_tool_of_several_executors_gains_a_required_executor() {
    let schema = r#"{"type":"object","properties":{"id":{"type":"integer","maximum":12345678901234567890123},"executor":{"description":"Where it runs.","enum":["build","local"],"type":"string"}},"required":["id","executor"]}"#;
    assert_eq!(specs(&two()), [("bash".to_owned(), schema.to_owned())]);
}

#[test]
fn a_schema_without_properties_gains_them() {
    let offer = |executor| Offer::on(id(executor), tool_with("now", r#"{"type":"object"}"#));
    let schema = r#"{"type":"object","properties":{"executor":{"description":"Where it runs.","enum":["a","b"],"type":"string"}},"required":["executor"]}"#;
    let toolbox = toolbox(vec![offer("a"), offer("b")]);
    assert_eq!(specs(&toolbox), [("now".to_owned(), schema.to_owned())]);
}

#[test]
fn the_executor_is_taken_out_and_the_rest_kept_as_written() {
    let arguments =
        r#"{"z": 12345678901234567890123, "executor": "build", "a": [1.10, {"executor":"x"}]}"#;
    let kept = r#"{"z":12345678901234567890123,"a":[1.10, {"executor":"x"}]}"#;
    assert_eq!(
        routed(&two(), arguments),
        (Some(id("build")), kept.to_owned())
    );
}

#[test]
fn an_executor_that_is_missing_or_unknown_is_answered_with_those_there_are() {
    let error = |arguments| two().route("bash", arguments).unwrap_err().to_string();
    let missing = "bash needs the parameter `executor`, one of: build, local";
    for arguments in ["", "{}", r#"{"id":1}"#] {
        assert_eq!(error(arguments), missing);
    }
    assert_eq!(
        error(r#"{"executor":"mars"}"#),
        r#"there is no executor "mars" with the tool bash; there is: build, local"#
    );
    assert_eq!(
        error(r#"{"executor":7}"#),
        r#"there is no executor "7" with the tool bash; there is: build, local"#
    );
}

#[test]
fn m_29_broken_arguments_and_unknown_tools_are_named() {
    let error = two().route("bash", r#"{"id": "#).unwrap_err();
    assert!(matches!(&error, RouteError::InvalidArguments { tool, .. } if tool == "bash"));
    let twice = r#"{"executor":"local","executor":"build"}"#;
    assert_eq!(
        two().route("bash", twice).unwrap_err().to_string(),
        "invalid arguments for bash: `executor` is given more than once"
    );
    assert_eq!(
        two().route("bsh", "{}").unwrap_err().to_string(),
        r#"there is no tool "bsh"; there is: bash"#
    );
}

#[test]
fn broken_arguments_reach_the_only_tool_untouched() {
    let toolbox = toolbox(vec![on("local", "bash")]);
    assert_eq!(
        routed(&toolbox, r#"{"id": "#),
        (Some(id("local")), r#"{"id": "#.to_owned())
    );
}

#[test]
fn a_call_meant_for_another_executor_never_runs_on_the_only_one() {
    let toolbox = toolbox(vec![on("local", "bash")]);
    assert_eq!(
        toolbox
            .route("bash", r#"{"id":1,"executor":"build"}"#)
            .unwrap_err()
            .to_string(),
        r#"there is no executor "build" with the tool bash; there is: local"#
    );
    let kept = (Some(id("local")), r#"{"id":1}"#.to_owned());
    assert_eq!(routed(&toolbox, r#"{"id":1,"executor":"local"}"#), kept);
    assert_eq!(routed(&toolbox, r#"{"executor":null,"id":1}"#), kept);
}

#[test]
fn a_tool_keeps_a_parameter_named_executor_of_its_own() {
    let schema = r#"{"type":"object","properties":{"executor":{"type":"string"}}}"#;
    let own = toolbox(vec![Offer::on(id("local"), tool_with("bash", schema))]);
    let arguments = r#"{"executor":"anything"}"#;
    assert_eq!(
        routed(&own, arguments),
        (Some(id("local")), arguments.to_owned())
    );
    let of_the_runtime = toolbox(vec![Offer::runtime(tool_with("bash", SCHEMA))]);
    assert_eq!(
        routed(&of_the_runtime, arguments),
        (None, arguments.to_owned())
    );
}

#[test]
fn s_116_tools_that_cannot_be_told_apart_are_refused() {
    let runtime = || Offer::runtime(tool_with("bash", SCHEMA));
    let other = Offer::on(id("build"), tool_with("bash", r#"{"type":"object"}"#));
    let own = r#"{"type":"object","properties":{"executor":{"type":"string"}}}"#;
    let with_own = |executor| Offer::on(id(executor), tool_with("bash", own));
    let cases = [
        vec![runtime(), runtime()],
        vec![on("local", "bash"), runtime()],
        vec![
            on("local", "bash"),
            on("build", "bash"),
            on("local", "bash"),
        ],
        vec![on("local", "bash"), other],
        vec![with_own("local"), with_own("build")],
        vec![on("local", "no spaces")],
        vec![on("local", &"x".repeat(65))],
        vec![on("local", "")],
        vec![Offer::runtime(tool_with("list", "[]"))],
    ];
    let messages = cases.map(|offers| Toolbox::new(offers).unwrap_err().to_string());
    let long = "x".repeat(65);
    assert_eq!(
        messages,
        [
            "the tool bash is offered twice by the runtime; rename one of them".to_owned(),
            "the tool bash is offered twice by the runtime and by executor local; rename one of them".to_owned(),
            "the tool bash is offered twice by executor local; rename one of them".to_owned(),
            "the tool bash has other parameters on build than on local; rename one of them".to_owned(),
            "the parameters of the tool bash are no JSON Schema of an object: it has a parameter `executor` of its own and several executors offer it".to_owned(),
            r#""no spaces" can't be the name of a tool: it must be 1 to 64 of a-z A-Z 0-9 _ -"#.to_owned(),
            format!("{long:?} can't be the name of a tool: it must be 1 to 64 of a-z A-Z 0-9 _ -"),
            r#""" can't be the name of a tool: it must be 1 to 64 of a-z A-Z 0-9 _ -"#.to_owned(),
            r#"the parameters of the tool list are no JSON Schema of an object: "type" is not "object""#.to_owned(),
        ]
    );
}

/// JSON values as a model may write them, big numbers and escapes too.
fn json_values() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "-?[1-9][0-9]{0,40}",
        r"[0-9]\.[0-9]{1,30}",
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        prop::sample::select(vec!["null", "true", r#""\u6f22\n""#, "{ }", "[ 1 , 2 ]"])
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(", ")))
    })
}

proptest! {
    #[test]
    fn taking_the_executor_out_changes_no_other_field(
        fields in prop::collection::vec(("[a-z\"\\\\漢]{0,6}", json_values()), 0..6),
        at: prop::sample::Index,
    ) {
        let written: Vec<String> =
            fields.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
        let expected = format!("{{{}}}", written.join(","));
        let mut with = written;
        with.insert(at.index(with.len() + 1), r#""executor":"build""#.to_owned());
        let arguments = format!("{{{}}}", with.join(","));
        prop_assert_eq!(routed(&two(), &arguments), (Some(id("build")), expected));
    }

    #[test]
    fn no_arguments_make_it_panic(arguments: String) {
        let _ = two().route("bash", &arguments);
        let _ = toolbox(vec![on("local", "bash")]).route("bash", &arguments);
    }
}
