//! Loading, refusing and writing configurations.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use openvaala_core::context::Skill;
use openvaala_core::dialect::http::Secret;
use openvaala_protocol::item::Instructions;
use openvaala_server::Environment;
use openvaala_server::config::{
    AddProviderError, ConfigDir, LocalProbe, NewKey, NewProvider, ProviderKind, ProviderType,
};
use pretty_assertions::assert_eq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::Place;

const GOOD: &str = "type: openai_chat\nbase_url: https://api.example/v1\ndefault_model: m\n";

/// The whole text of the error that those files cause.
fn error_of(files: &[(&str, &str)]) -> String {
    let place = Place::new();
    for (name, text) in files {
        place.write(name, text);
    }
    let started = Instant::now();
    let error = ConfigDir::new(place.dir("config"))
        .load(&Environment::default())
        .unwrap_err();
    let took = started.elapsed();
    assert!(took < Duration::from_secs(2), "it took {took:?}");
    error
        .to_string()
        .replace(place.dir("config").to_str().unwrap(), "<config>")
}

macro_rules! broken {
    ($($name:ident: $($file:literal => $text:expr),+;)+) => {$(
        #[test]
        fn $name() {
            assert_snapshot!(error_of(&[$(($file, $text)),+]));
        }
    )+};
}

broken! {
    an_unknown_field_is_named: "openvaala.yaml" => "listen: 127.0.0.1:8790\nstep_limits: 5\n";
    a_wrong_type_deep_inside_is_named: "openvaala.yaml" => "environment:\n  allow:\n    - A\n    - [B]\n";
    a_tab_is_shown: "openvaala.yaml" => "environment:\n\tallow: []\n";
    a_second_key_is_shown_where_it_is: "openvaala.yaml" => "step_limit: 5\nlisten: 127.0.0.1:1\nstep_limit: 6\n";
    an_address_of_other_machines_is_refused: "openvaala.yaml" => "listen: 0.0.0.0:8790\n";
    s_02_other_machines_without_encryption_are_refused: "openvaala.yaml" => "listen: 127.0.0.1:1\nremote:\n  listen: 0.0.0.0:8791\n";
    a_certificate_without_its_key_is_refused: "openvaala.yaml" => "remote:\n  listen: \"[::]:8791\"\n  certificate: a.crt\n";
    s_04_a_pattern_is_no_origin: "openvaala.yaml" => "origins:\n  - https://*.example.org\n";
    s_04_a_path_is_no_origin: "openvaala.yaml" => "origins: [\"https://example.org/\"]\n";
    a_text_that_is_no_address_is_refused: "openvaala.yaml" => "listen: localhost\n";
    no_attempt_is_too_few: "openvaala.yaml" => "retry:\n  attempts: 0\n";
    a_limit_of_nothing_is_refused: "openvaala.yaml" => "limits:\n  page_items: 10\n  connections: 0\n";
    a_message_of_a_gibibyte_is_too_large: "openvaala.yaml" => "limits:\n  message_kib: 1048576\n";
    a_limit_that_is_none_is_named: "openvaala.yaml" => "limits:\n  conections: 5\n";
    a_limit_without_a_number_is_refused: "openvaala.yaml" => "limits:\n  unread_seconds:\n";
    a_wait_of_an_hour_is_too_long: "openvaala.yaml" => "retry:\n  first_wait_ms: 3600000\n";
    an_agent_of_a_provider_that_there_is_not_is_refused: "agents/reviewer.yaml" => "instructions: Review.\nmodel: acme/big\n";
    an_agent_with_an_unknown_field_is_refused: "agents/reviewer.yaml" => "instruction: Review.\n";
    a_model_without_a_name_is_refused: "agents/reviewer.yaml" => "model: acme/\n";
    an_agent_with_a_name_that_is_none_is_refused: "agents/my agent.yaml" => "instructions: x\n";
    no_step_is_too_few: "openvaala.yaml" => "step_limit: 0\n";
    one_call_is_no_repetition: "openvaala.yaml" => "repeat_limit: 1\n";
    a_list_is_no_configuration: "openvaala.yaml" => "- a\n- b\n";
    two_documents_are_one_too_many: "openvaala.yaml" => "step_limit: 5\n---\nstep_limit: 6\n";
    an_unclosed_bracket_is_shown: "openvaala.yaml" => "environment: {allow: [A\n";
    a_default_model_of_nobody_is_refused: "openvaala.yaml" => "default_model:\n  provider: acme\n  model: m\n";
    a_provider_without_a_type_is_refused: "providers/acme.yaml" => "base_url: https://x\n";
    a_provider_of_an_unknown_type_is_refused: "providers/acme.yaml" => "type: telepathy\n";
    a_provider_without_an_address_is_refused: "providers/acme.yaml" => "type: openai_chat\ndefault_model: m\n";
    an_address_that_is_no_url_is_refused: "providers/acme.yaml" => "type: openai_chat\nbase_url: api.example\ndefault_model: m\n";
    an_empty_model_is_refused: "providers/acme.yaml" => "type: openai_chat\nbase_url: https://x\ndefault_model: ''\n";
    an_empty_file_of_a_provider_is_refused: "providers/acme.yaml" => "";
    s_19_two_keys_are_one_too_many: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\napi_key: sk-canary\napi_key_env: ACME_LOGIN\n";
    s_19_a_key_over_two_lines_is_not_shown: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\napi_key: sk-canary\n  canary\n";
    s_19_a_key_with_a_space_is_not_shown: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\napi_key: sk-canary canary\n";
    s_19_a_key_that_is_a_list_is_not_shown: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\napi_key: [sk-canary]\n";
    an_empty_key_is_refused: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\napi_key:\n";
    a_header_that_is_none_is_named: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\nheaders:\n  X Team: a\n";
    s_19_the_value_of_a_header_is_not_shown: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\nheaders:\n  X-Token: \"a\\nb-canary\"\n";
    s_19_a_line_that_is_no_yaml_is_shown_without_its_value: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\nheaders:\n  X-Team: @canary\n";
    a_timeout_of_nothing_is_refused: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\nidle_timeout_seconds: 0\n";
    a_limit_of_tokens_is_refused_where_there_is_none: "providers/acme.yaml" =>
        "type: openai_chat\nbase_url: https://x\ndefault_model: m\nmax_tokens: 5\n";
    an_answer_of_no_token_is_refused: "providers/acme.yaml" =>
        "type: anthropic_messages\nbase_url: https://x\ndefault_model: m\nmax_tokens: 0\n";
    a_name_that_is_none_is_refused: "providers/my provider.yaml" => GOOD;
    the_name_of_the_demo_is_taken: "providers/demo.yaml" => GOOD;
    another_ending_is_not_passed_over: "providers/acme.yml" => GOOD;
    every_broken_file_is_named_with_its_first_error:
        "openvaala.yaml" => "step_limit: many\nlisten: nowhere\n",
        "providers/a.yaml" => GOOD,
        "providers/b.yaml" => "type: openai_chat\nbase_url: 5\n",
        "providers/c.yaml" => "type: [\n";
    s_71_a_file_over_a_mebibyte_is_refused: "openvaala.yaml" => &"# padding\n".repeat(110_000);
    s_71_a_million_open_brackets_are_refused: "openvaala.yaml" => &"[".repeat(1_000_000);
    s_71_a_million_braces_over_many_lines_are_refused: "openvaala.yaml" => &"{a:\n".repeat(250_000);
    s_71_half_a_million_dashes_are_refused: "openvaala.yaml" => &"- ".repeat(500_000);
    s_71_a_bomb_of_aliases_is_refused: "openvaala.yaml" => concat!(
        "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n",
        "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n",
        "e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]\n",
        "g: &g [*f, *f, *f, *f, *f, *f, *f, *f, *f]\nenvironment: {allow: *g}\n",
    );
    s_71_a_bomb_of_aliases_in_a_known_field_is_refused: "openvaala.yaml" => "environment: &a\n  allow: [x]\ndefault_model: *a\n";
}

#[test]
fn a_directory_that_is_missing_or_empty_is_a_configuration() {
    let place = Place::new();
    for text in [None, Some(""), Some("# nothing\n"), Some("---\n")] {
        if let Some(text) = text {
            place.write("openvaala.yaml", text);
        }
        let config = ConfigDir::new(place.dir("config"))
            .load(&Environment::default())
            .unwrap();
        assert_eq!(
            (config.listen, config.providers.len()),
            (None, 0),
            "{text:?}"
        );
    }
}

#[test]
fn what_is_no_plain_text_is_refused() {
    let place = Place::new();
    let load = || {
        let error = ConfigDir::new(place.dir("config"))
            .load(&Environment::default())
            .unwrap_err();
        error.faults[0].message.clone()
    };
    fs::create_dir_all(place.dir("config/openvaala.yaml")).unwrap();
    assert_eq!(load(), "it is no plain file");
    fs::remove_dir(place.dir("config/openvaala.yaml")).unwrap();
    fs::write(place.dir("config/openvaala.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    assert_eq!(
        load(),
        "it is no UTF-8: invalid utf-8 sequence of 1 bytes from index 0"
    );
}

/// Variables and their values.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// The default model and the providers with their origin and address.
async fn detected(environment: Variables<'_>, probe: &LocalProbe) -> (String, Vec<String>) {
    let place = Place::new();
    let environment: Environment = environment.iter().copied().collect();
    let config = ConfigDir::new(place.dir("config"))
        .load(&environment)
        .unwrap();
    let config = config.with_detected(&environment, probe).await.unwrap();
    let model = config.model();
    let providers = config.providers.values().map(|provider| {
        let url = match &provider.kind {
            ProviderKind::Http(service) => &service.base_url,
            _ => "-",
        };
        format!("{} {url} ({})", provider.name, provider.origin)
    });
    (
        format!("{}/{}", model.provider, model.model),
        providers.collect(),
    )
}

#[tokio::test]
async fn keys_in_the_environment_are_providers_and_openai_comes_first() {
    let demo = "demo - (built in)".to_owned();
    let openai = "openai https://api.openai.com/v1 (environment: OPENAI_API_KEY)".to_owned();
    let deepseek =
        "deepseek https://api.deepseek.com/v1 (environment: DEEPSEEK_API_KEY)".to_owned();
    let router = "openrouter http://127.0.0.1:9/v1 (environment: OPENROUTER_API_KEY)".to_owned();
    let anthropic =
        "anthropic https://api.anthropic.com (environment: ANTHROPIC_API_KEY)".to_owned();
    let groq = "groq https://api.groq.com/openai/v1 (environment: GROQ_API_KEY)".to_owned();
    let xai = "xai https://api.x.ai/v1 (environment: XAI_API_KEY)".to_owned();
    let table: [(Variables<'_>, &str, Vec<String>); 7] = [
        (
            &[("ANTHROPIC_API_KEY", "sk-1"), ("DEEPSEEK_API_KEY", "sk-2")],
            "anthropic/claude-sonnet-5-5",
            vec![anthropic, deepseek.clone(), demo.clone()],
        ),
        (
            &[("GROQ_API_KEY", "sk-1"), ("XAI_API_KEY", "sk-2")],
            "groq/openai/gpt-oss-120b",
            vec![demo.clone(), groq, xai],
        ),
        (&[], "demo/demo", vec![demo.clone()]),
        (&[("OPENAI_API_KEY", " ")], "demo/demo", vec![demo.clone()]),
        (
            &[("OPENAI_API_KEY", "sk-1")],
            "openai/gpt-5.4-mini",
            vec![demo.clone(), openai.clone()],
        ),
        (
            &[("DEEPSEEK_API_KEY", "sk-1"), ("OPENAI_API_KEY", "sk-2")],
            "openai/gpt-5.4-mini",
            vec![deepseek, demo.clone(), openai],
        ),
        (
            &[
                ("OPENROUTER_API_KEY", "sk-1"),
                ("OPENROUTER_BASE_URL", "http://127.0.0.1:9/v1"),
            ],
            "openrouter/openrouter/auto",
            vec![demo, router],
        ),
    ];
    for (environment, model, providers) in table {
        let expected = (model.to_owned(), providers);
        assert_eq!(
            detected(environment, &LocalProbe::nowhere()).await,
            expected,
            "{environment:?}"
        );
    }
}

#[test]
fn a_variable_that_cannot_be_used_is_named_and_its_key_is_not_shown() {
    let table = [
        (
            [("OPENAI_API_KEY", "sk-canary x"), ("A", "")],
            "OPENAI_API_KEY",
        ),
        (
            [
                ("OPENAI_API_KEY", "sk-canary"),
                ("OPENAI_BASE_URL", "nowhere"),
            ],
            "OPENAI_BASE_URL",
        ),
    ];
    for (variables, name) in table {
        let environment: Environment = variables.into_iter().collect();
        let loaded = ConfigDir::new("/nonexistent").load(&environment);
        let text = loaded.unwrap_err().to_string();
        assert!(text.contains(&format!("environment: {name}: ")), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }
}

/// A server that answers every request with that body.
async fn answering(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = tcp.read(&mut head).await;
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            let _ = tcp.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn a_model_server_on_this_machine_is_found_only_when_nothing_else_is_there() {
    let mut probe = LocalProbe::nowhere();
    probe.limit = Duration::from_secs(10);
    let ollama = answering(r#"{"models":[{"name":"qwen3:8b"},{"name":"other"}]}"#).await;
    let llama = answering(r#"{"data":[{"id":"local.gguf"}]}"#).await;
    let web_page = answering("<html>hello</html>").await;
    probe.ollama = Some(ollama.clone());
    probe.llama_cpp = Some(llama.clone());
    let (model, providers) = detected(&[], &probe).await;
    assert_eq!(model, "ollama/qwen3:8b");
    assert_eq!(
        providers[1],
        format!("ollama http://{ollama}/v1 (found at {ollama})")
    );
    assert_eq!(
        detected(&[("OPENAI_API_KEY", "sk-1")], &probe).await.0,
        "openai/gpt-5.4-mini"
    );
    probe.ollama = Some(web_page.clone());
    assert_eq!(detected(&[], &probe).await.0, "llama_cpp/local.gguf");
    probe.llama_cpp = Some(web_page);
    assert_eq!(detected(&[], &probe).await.0, "demo/demo");
}

#[test]
fn the_environment_says_where_to_look() {
    let environment: Environment = [("OLLAMA_HOST", "box:1")].into_iter().collect();
    assert_eq!(
        LocalProbe::from_environment(&environment).ollama,
        Some("box:1".to_owned())
    );
    let environment: Environment = [("OPENVAALA_NO_PROBE", "1")].into_iter().collect();
    assert_eq!(
        LocalProbe::from_environment(&environment),
        LocalProbe::nowhere()
    );
}

fn new_provider(name: &str, url: &str) -> NewProvider {
    NewProvider::new(name, url, NewKey::Given(Secret::new("sk-canary")), "m")
}

#[test]
fn a_provider_of_every_type_can_be_added_and_is_read_back_as_that() {
    for (speaks, name) in [
        (ProviderType::OpenAiChat, "openai_chat"),
        (ProviderType::OpenAiResponses, "openai_responses"),
        (ProviderType::AnthropicMessages, "anthropic_messages"),
    ] {
        let place = Place::new();
        let dir = ConfigDir::new(place.dir("config"));
        let environment = Environment::default();
        let mut new = new_provider("acme", "https://api.acme.example/v1");
        new.speaks = speaks;
        let path = dir.add_provider(&new, &environment).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("type: {name}\n")), "{text}");
        let config = dir.load(&environment).unwrap();
        match &config.providers["acme"].kind {
            ProviderKind::Http(service) => assert_eq!(service.speaks, speaks),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ProviderType::ALL.len(), 3);
}

#[test]
fn a_provider_that_is_added_is_there_and_private_and_the_first_is_the_default() {
    let place = Place::new();
    let dir = ConfigDir::new(place.dir("config"));
    let environment = Environment::default();
    let path = dir
        .add_provider(
            &new_provider("acme", "https://api.acme.example/v1"),
            &environment,
        )
        .unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "type: openai_chat\nbase_url: https://api.acme.example/v1\napi_key: sk-canary\ndefault_model: m\n"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    let main = fs::read_to_string(place.dir("config/openvaala.yaml")).unwrap();
    assert_eq!(main, "default_model:\n  provider: \"acme\"\n");
    dir.add_provider(
        &new_provider("other", "http://127.0.0.1:1/v1"),
        &environment,
    )
    .unwrap();
    let config = dir.load(&environment).unwrap();
    assert_eq!(config.model().provider, "acme");
    assert_eq!(
        config.providers.keys().collect::<Vec<_>>(),
        ["acme", "other"]
    );

    let mut third = new_provider("third", "https://x/v1");
    third.make_default = true;
    let error = dir.add_provider(&third, &environment).unwrap_err();
    assert!(
        matches!(error, AddProviderError::DefaultIsSet { .. }),
        "{error}"
    );
    let error = dir
        .add_provider(&new_provider("acme", "https://x/v1"), &environment)
        .unwrap_err();
    assert!(matches!(error, AddProviderError::Exists { .. }), "{error}");
    let error = dir
        .add_provider(&new_provider("../x", "https://x/v1"), &environment)
        .unwrap_err();
    assert!(
        matches!(error, AddProviderError::InvalidName { .. }),
        "{error}"
    );
}

#[test]
fn a_provider_that_would_break_the_configuration_leaves_it_as_it_was() {
    let place = Place::new();
    let main = "# mine\nstep_limit: 7";
    place.write("openvaala.yaml", main);
    let dir = ConfigDir::new(place.dir("config"));
    let error = dir
        .add_provider(&new_provider("acme", "nowhere"), &Environment::default())
        .unwrap_err();
    let AddProviderError::Refused { source } = &error else {
        panic!("{error}")
    };
    assert!(
        source.to_string().contains("\"nowhere\" is no URL"),
        "{source}"
    );
    assert_eq!(
        fs::read_to_string(place.dir("config/openvaala.yaml")).unwrap(),
        main
    );
    assert_eq!(
        fs::read_dir(place.dir("config/providers")).unwrap().count(),
        0
    );

    let good = new_provider("acme", "https://x/v1");
    dir.add_provider(&good, &Environment::default()).unwrap();
    let expected = "# mine\nstep_limit: 7\ndefault_model:\n  provider: \"acme\"\n";
    assert_eq!(
        fs::read_to_string(place.dir("config/openvaala.yaml")).unwrap(),
        expected
    );

    place.write("providers/broken.yaml", "type: [\n");
    let error = dir
        .add_provider(
            &new_provider("more", "https://x/v1"),
            &Environment::default(),
        )
        .unwrap_err();
    assert!(
        matches!(error, AddProviderError::BrokenBefore { .. }),
        "{error}"
    );
}

#[test]
fn an_agent_is_read_with_all_that_it_has() {
    let place = Place::new();
    place.write("providers/acme.yaml", GOOD);
    let text = "description: Finds faults.\ninstructions: |\n  Review the change.\n  Be brief.\n\
                model: acme/big\neffort: high\ntools: [read_file, bash]\n";
    place.write("agents/reviewer.yaml", text);
    place.write("agents/thinker.yaml", "model: acme\n");
    let config = ConfigDir::new(place.dir("config"))
        .load(&Environment::default())
        .unwrap();
    let reviewer = &config.agents["reviewer"];
    assert_eq!(
        (
            reviewer.description.as_deref(),
            reviewer.instructions.as_deref(),
            reviewer.effort.as_deref(),
            reviewer.tools.as_deref(),
        ),
        (
            Some("Finds faults."),
            Some("Review the change.\nBe brief."),
            Some("high"),
            Some(&["read_file".to_owned(), "bash".to_owned()][..]),
        )
    );
    let models = ["reviewer", "thinker"].map(|name| config.agents[name].model.clone().unwrap());
    let models = models.map(|choice| (choice.provider, choice.model));
    assert_eq!(
        models,
        [
            ("acme".to_owned(), Some("big".to_owned())),
            ("acme".to_owned(), None)
        ]
    );
}

#[test]
fn u_141_the_time_of_questions_is_read() {
    let place = Place::new();
    let main = |time: &str| {
        place.write(
            "openvaala.yaml",
            &format!("approval: {{mode: ask{time}}}\n"),
        )
    };
    let times = ["", ", answer_within_seconds: 90"].map(|time| {
        main(time);
        let config = ConfigDir::new(place.dir("config")).load(&Environment::default());
        config.unwrap().approval.answer_within
    });
    assert_eq!(times, [None, Some(Duration::from_secs(90))]);
    main(", answer_within_seconds: 0");
    let config = ConfigDir::new(place.dir("config")).load(&Environment::default());
    let error = config.unwrap_err().to_string();
    assert!(
        error.contains("0 is out of range: expected 1 to 604800 seconds"),
        "{error}"
    );
}

#[test]
fn what_every_conversation_is_told_is_read_and_broken_skills_are_named() {
    let place = Place::new();
    place.write("AGENTS.md", "Be kind.\n");
    place.write(
        "skills/b/SKILL.md",
        "---\nname: pdf\ndescription: Fills in forms.\n---\nOpen it.\n",
    );
    place.write("skills/a/SKILL.md", "# No head\n");
    place.write("skills/c/notes.md", "no skill\n");
    let dir = place.dir("config");
    let config = ConfigDir::new(dir.clone())
        .load(&Environment::default())
        .unwrap();
    let path = |name: &str| dir.join(name).display().to_string();
    assert_eq!(
        config.instructions,
        Some(Instructions::new(
            path("AGENTS.md"),
            "Be kind.\n".to_owned(),
            9
        ))
    );
    assert_eq!(
        config.skills,
        [Skill::new(
            "pdf",
            "Fills in forms.",
            path("skills/b/SKILL.md")
        )]
    );
    let broken = format!(
        "{} is skipped: it does not begin with front matter between two lines of `---`",
        path("skills/a/SKILL.md")
    );
    assert_eq!(config.warnings, [broken]);
}
