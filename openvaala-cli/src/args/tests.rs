//! What the command line takes, and what it refuses.

use clap::CommandFactory;
use clap::error::ErrorKind;
use openvaala_server::config::ProviderType;
use pretty_assertions::assert_eq;

use super::*;

#[track_caller]
fn refused(line: &[&str], kind: ErrorKind, names: &str) {
    let arguments = ["openvaala"].iter().chain(line);
    let error = Cli::try_parse_from(arguments).expect_err("it must be refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains(names), "{error}");
}

fn parsed(line: &[&str]) -> Cli {
    let arguments = ["openvaala"].iter().chain(line);
    Cli::try_parse_from(arguments).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

#[test]
fn the_commands_fit_together() {
    Cli::command().debug_assert();
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    use ErrorKind::{
        ArgumentConflict, InvalidSubcommand, MissingRequiredArgument, UnknownArgument,
        ValueValidation,
    };
    let conflict = [
        "provider",
        "add",
        "x",
        "--base-url",
        "http://h/v1",
        "--model",
        "m",
        "--api-key-env",
        "K",
        "--api-key-stdin",
    ];
    let table: &[(&[&str], ErrorKind, &str)] = &[
        (&["exec"], MissingRequiredArgument, "<PROMPT>"),
        (&["exec", "two", "words"], UnknownArgument, "words"),
        (&["exec", "--jsn", "x"], UnknownArgument, "--jsn"),
        (
            &["exec", "--resume", "a", "--last", "x"],
            ArgumentConflict,
            "--last",
        ),
        (&["send", "0192d3f5"], MissingRequiredArgument, "<PROMPT>"),
        (
            &["send", "0192d3f5", "--json", "x"],
            MissingRequiredArgument,
            "--follow",
        ),
        (&["interrupt"], MissingRequiredArgument, "<ID>"),
        (
            &["pending", "list"],
            MissingRequiredArgument,
            "<CONVERSATION>",
        ),
        (
            &["pending", "withdraw", "0192d3f5"],
            MissingRequiredArgument,
            "<INPUT>",
        ),
        (
            &["pending", "move", "0192d3f5", "9c2d3e4f", "0"],
            ValueValidation,
            "0",
        ),
        (&["completions", "tcsh"], ErrorKind::InvalidValue, "zsh"),
        (&["show"], MissingRequiredArgument, "<ID>"),
        (
            &["show", "--json", "--markdown", "0192"],
            ArgumentConflict,
            "--markdown",
        ),
        (
            &["list", "--status", "busy"],
            ErrorKind::InvalidValue,
            "running",
        ),
        (&["list", "--since", "yesterday"], ValueValidation, "7d"),
        (
            &["list", "--all", "--limit", "5"],
            ArgumentConflict,
            "--limit",
        ),
        (&["list", "--limit", "0"], ValueValidation, "1..=1000"),
        (&["list", "--limit", "1001"], ValueValidation, "1..=1000"),
        (&["serve", "--listen", "8790"], ValueValidation, "--listen"),
        (&["serve", "halt"], InvalidSubcommand, "halt"),
        (&["launch"], InvalidSubcommand, "launch"),
        (&["sho"], InvalidSubcommand, "show"),
        (
            &["provider", "add", "x", "--model", "m"],
            MissingRequiredArgument,
            "--base-url",
        ),
        (
            &["provider", "add", "x", "--base-url", "u"],
            MissingRequiredArgument,
            "--model",
        ),
        (&conflict, ArgumentConflict, "--api-key-stdin"),
        (
            &["list", "--data-dir", ""],
            ErrorKind::InvalidValue,
            "--data-dir",
        ),
    ];
    for (line, kind, names) in table {
        refused(line, *kind, names);
    }
}

#[test]
fn no_command_at_all_shows_the_help_and_is_wrong_usage() {
    let error = Cli::try_parse_from(["openvaala"]).expect_err("it must be refused");
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("Usage: openvaala"), "{error}");
}

#[test]
fn directories_may_stand_before_and_after_the_command() {
    for line in [["--data-dir", "/d", "list"], ["list", "--data-dir", "/d"]] {
        assert_eq!(parsed(&line).dirs.data_dir, Some(PathBuf::from("/d")));
    }
}

#[test]
fn exec_takes_a_prompt_that_begins_with_a_dash_after_two_dashes() {
    let Command::Exec(args) = parsed(&["exec", "--json", "--", "-v means what?"]).command else {
        panic!("another command");
    };
    let seen = (args.prompt.prompt.as_str(), args.json, args.cwd, args.model);
    assert_eq!(seen, ("-v means what?", true, None, None));
}

#[test]
fn provider_add_takes_what_its_example_says() {
    let line = "provider add openai --base-url https://api.openai.com/v1 --model gpt-5.4-mini \
                --api-key-env OPENAI_API_KEY --default";
    let line: Vec<&str> = line.split_whitespace().collect();
    let Command::Provider(ProviderCommand::Add(args)) = parsed(&line).command else {
        panic!("another command");
    };
    let key = args.api_key_env.as_deref();
    assert_eq!(
        (
            args.name.as_str(),
            args.base_url.as_str(),
            args.model.as_str(),
            key,
            args.default
        ),
        (
            "openai",
            "https://api.openai.com/v1",
            "gpt-5.4-mini",
            Some("OPENAI_API_KEY"),
            true
        )
    );
}

#[test]
fn every_command_has_a_description_and_an_example_that_it_takes() {
    fn check(command: &clap::Command, path: &str) {
        let path = format!("{path} {}", command.get_name());
        assert!(command.get_about().is_some(), "{path} has no description");
        for below in command
            .get_subcommands()
            .filter(|below| below.get_name() != "help")
        {
            check(below, path.trim());
        }
        if command.has_subcommands() && command.get_name() != "serve" {
            return;
        }
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let examples: Vec<&str> = help
            .lines()
            .filter(|line| line.contains("openvaala "))
            .collect();
        assert!(!examples.is_empty(), "{path} has no example");
        for example in examples {
            let line = example.replace('\\', " --model m ");
            let words = line
                .split('"')
                .enumerate()
                .flat_map(|(n, part)| match n % 2 {
                    0 => part.split_whitespace().collect(),
                    _ => vec![part],
                });
            // What stands before a pipe or after a redirection is of the shell.
            let words = words
                .skip_while(|word| *word != "openvaala")
                .take_while(|word| !["<", ">"].contains(word));
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
    check(&Cli::command(), "");
}

#[test]
fn images_may_be_given_more_than_once() {
    let line = ["exec", "--image", "a.png", "x", "--image", "b.png"];
    let Command::Exec(args) = parsed(&line).command else {
        panic!("another command");
    };
    assert_eq!(args.prompt.images, ["a.png", "b.png"].map(PathBuf::from));
}

#[test]
fn provider_add_takes_a_known_type_and_openai_chat_without_one() {
    let add = ["provider", "add", "x", "--base-url", "u", "--model", "m"];
    let speaks = |line: &[&str]| {
        let Command::Provider(ProviderCommand::Add(args)) = parsed(line).command else {
            panic!("another command");
        };
        args.speaks
    };
    assert_eq!(speaks(&add), ProviderType::OpenAiChat);
    let responses = [&add[..], &["--type", "openai_responses"]].concat();
    assert_eq!(speaks(&responses), ProviderType::OpenAiResponses);
    let unknown = [&["openvaala"], &add[..], &["--type", "telepathy"]].concat();
    let error = Cli::try_parse_from(unknown).unwrap_err().to_string();
    assert!(
        error.contains(
            "\"telepathy\" is no type of provider: expected openai_chat, openai_responses or \
             anthropic_messages"
        ),
        "{error}"
    );
}

#[test]
fn what_is_said_of_the_trash_fits_together_or_is_refused_by_name() {
    use ErrorKind::{InvalidSubcommand, MissingRequiredArgument, ValueValidation};

    refused(&["delete"], MissingRequiredArgument, "<ID>");
    refused(&["restore"], MissingRequiredArgument, "<ID>");
    refused(&["trash", "burn"], InvalidSubcommand, "burn");
    for odd in [
        "",
        "d",
        "7",
        "7w",
        "-1d",
        "1.5h",
        "d7",
        "99999999999d",
        "2026-12-01",
        "７d",
    ] {
        let flag = format!("--older-than={odd}");
        refused(&["trash", "empty", &flag], ValueValidation, "older-than");
    }
    refused(&["check", "0192"], ValueValidation, "0192");
    let Command::Trash(TrashCommand::Empty(args)) =
        parsed(&["trash", "empty", "--older-than", "30d", "--yes", "0192d3f5"]).command
    else {
        panic!("another command");
    };
    assert_eq!(args.older_than, Some(Duration::from_secs(30 * 86_400)));
    assert_eq!((args.yes, args.ids), (true, vec!["0192d3f5".to_owned()]));
}
