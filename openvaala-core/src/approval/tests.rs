use openvaala_protocol::approval::{ApprovalMode, ApprovalRule, RuleDecision};
use openvaala_protocol::id::ExecutorId;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::{ApprovalPolicy, Asked, Verdict};

const FOLDER: &str = "/home/me/work";

/// What a policy does with a call: `+` runs, `?` asks, `-` denies.
fn verdict(policy: &ApprovalPolicy, tool: &str, arguments: &str) -> char {
    match judge(policy, tool, arguments) {
        Verdict::Allow => '+',
        Verdict::Ask { .. } => '?',
        Verdict::Deny { .. } => '-',
    }
}

fn judge(policy: &ApprovalPolicy, tool: &str, arguments: &str) -> Verdict {
    judge_in(policy, tool, arguments, FOLDER)
}

fn judge_in(policy: &ApprovalPolicy, tool: &str, arguments: &str, folder: &str) -> Verdict {
    policy.judge(&Asked {
        tool,
        read_only: tool == "read_file",
        executor: Some(&ExecutorId::local()),
        folder: Some(folder),
        arguments,
    })
}

fn bash(policy: &ApprovalPolicy, command: &str) -> char {
    verdict(policy, "bash", &json!({ "command": command }).to_string())
}

fn patch(policy: &ApprovalPolicy, path: &str) -> char {
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n+a\n*** End Patch");
    verdict(
        policy,
        "apply_patch",
        &json!({ "patch": patch }).to_string(),
    )
}

fn allow() -> ApprovalRule {
    ApprovalRule::new(RuleDecision::Allow)
}

fn deny() -> ApprovalRule {
    ApprovalRule::new(RuleDecision::Deny)
}

#[test]
fn each_mode_treats_reading_editing_and_the_unknown_as_it_says() {
    let row = |mode| {
        let policy = ApprovalPolicy::new(mode);
        [
            verdict(&policy, "read_file", r#"{"path":"/etc/passwd"}"#),
            bash(&policy, "ls | wc -l"),
            patch(&policy, "src/a.rs"),
            patch(&policy, "../a.rs"),
            patch(&policy, ".git/hooks/pre-commit"),
            bash(&policy, "rm x"),
            verdict(&policy, "mcp_thing", "{}"),
            verdict(&policy, "apply_patch", "no patch"),
        ]
        .iter()
        .collect::<String>()
    };
    let rows = ApprovalMode::ALL.map(row);
    assert_eq!(rows, ["++------", "++??????", "+++?????", "++++++++"]);
}

#[test]
fn an_embedder_who_says_nothing_lets_everything_run() {
    assert_eq!(bash(&ApprovalPolicy::default(), "rm -rf /"), '+');
}

#[test]
fn deny_beats_ask_and_ask_beats_allow_whatever_their_order() {
    let ask = ApprovalRule::new(RuleDecision::Ask).with_command("make *");
    let policy = ApprovalPolicy::new(ApprovalMode::Full)
        .with_rule(allow().with_tool("bash"))
        .with_rule(ask)
        .with_rule(deny().with_command("make clean"));
    let found = ["make clean", "make all", "touch x"].map(|line| bash(&policy, line));
    assert_eq!(found, ['-', '?', '+']);
}

#[test]
fn u_164_a_rule_that_allows_a_command_allows_nothing_beside_it() {
    let policy =
        ApprovalPolicy::new(ApprovalMode::Ask).with_rule(allow().with_command("cargo test *"));
    let cases = [
        ("cargo test", '+'),
        ("cargo test --workspace 'a b'", '+'),
        ("cargo test | tail -n 3", '+'),
        ("timeout 60 cargo test", '+'),
        ("cargo testing", '?'),
        ("cargo test; rm x", '?'),
        ("cargo test $(rm x)", '?'),
        ("cargo test > x", '?'),
        ("'cargo test' x", '?'),
        ("./cargo test", '?'),
        ("sudo cargo test", '?'),
        ("RUSTC_WRAPPER=x cargo test", '?'),
    ];
    assert_eq!(cases.map(|(line, _)| (line, bash(&policy, line))), cases);
}

#[test]
fn u_164_a_rule_that_denies_a_command_finds_it_wherever_it_stands() {
    let policy =
        ApprovalPolicy::new(ApprovalMode::Full).with_rule(deny().with_command("git push *"));
    let cases = [
        ("git push", '-'),
        ("git push --force", '-'),
        ("ls; git push", '-'),
        ("bash -c 'git push'", '-'),
        ("sudo /usr/bin/git push", '-'),
        ("echo $(git push)", '-'),
        ("gi''t \"push\"", '-'),
        ("env A=1 xargs git push", '-'),
        ("git pull", '+'),
        ("$x push", '?'),
        ("source x", '+'),
        ("ls 'unclosed", '?'),
    ];
    assert_eq!(cases.map(|(line, _)| (line, bash(&policy, line))), cases);
}

#[test]
fn a_rule_that_denies_files_finds_them_in_every_tool() {
    let policy = ApprovalPolicy::new(ApprovalMode::Full).with_rule(deny().with_path(".env"));
    assert_eq!(
        verdict(&policy, "read_file", r#"{"path":"a/../.env"}"#),
        '-'
    );
    assert_eq!(patch(&policy, "sub/.env"), '-');
    let cases = [
        ("cat .env", '-'),
        ("cat ./sub/.env", '-'),
        ("cat < .env", '-'),
        ("grep --file=.env x", '-'),
        ("cat .e''nv", '-'),
        ("cat .e*", '?'),
        ("cat $x", '?'),
        ("cat README.md", '+'),
    ];
    assert_eq!(cases.map(|(line, _)| (line, bash(&policy, line))), cases);
}

#[test]
fn a_rule_that_allows_files_counts_if_all_of_them_fit() {
    let policy = ApprovalPolicy::new(ApprovalMode::Ask).with_rule(
        allow()
            .with_tool("apply_patch")
            .with_path(format!("{FOLDER}/src/**")),
    );
    assert_eq!(patch(&policy, "src/a/b.rs"), '+');
    assert_eq!(patch(&policy, "src/../b.rs"), '?');
    let two = "*** Begin Patch\n*** Add File: src/a\n+a\n*** Delete File: b\n*** End Patch";
    let two = json!({ "patch": two }).to_string();
    assert_eq!(verdict(&policy, "apply_patch", &two), '?');
}

#[test]
fn no_rule_widens_what_is_read_only() {
    let policy = ApprovalPolicy::new(ApprovalMode::ReadOnly).with_rule(allow());
    assert_eq!(bash(&policy, "touch x"), '-');
}

#[test]
fn a_rule_of_another_executor_or_tool_does_not_count() {
    let elsewhere: ExecutorId = "elsewhere".parse().unwrap();
    let policy = ApprovalPolicy::new(ApprovalMode::Ask)
        .with_rule(allow().with_executor(elsewhere))
        .with_rule(allow().with_tool("mcp_*"));
    assert_eq!(bash(&policy, "touch x"), '?');
    assert_eq!(verdict(&policy, "mcp_x", "{}"), '+');
}

#[test]
fn the_rule_of_a_question_lets_that_call_run_and_no_other() {
    let policy = ApprovalPolicy::new(ApprovalMode::Ask);
    let lines = ["rm *.o", "touch 'a b'", "make && make install > log", "$x"];
    for line in lines {
        let arguments = json!({ "command": line }).to_string();
        let Verdict::Ask { rule, .. } = judge(&policy, "bash", &arguments) else {
            panic!("{line} is asked");
        };
        let policy = policy.clone().with_rule(rule.unwrap());
        assert_eq!(bash(&policy, line), '+', "{line}");
        for other in lines.iter().filter(|other| **other != line) {
            assert_eq!(bash(&policy, other), '?', "{line}, {other}");
        }
        assert_eq!(bash(&policy, "rm x.o"), '?');
    }
}

#[test]
fn the_rule_of_a_question_counts_in_its_work_location_only() {
    let policy = ApprovalPolicy::new(ApprovalMode::Ask);
    let patch = json!({ "patch": "*** Begin Patch\n*** Add File: a\n+a\n*** End Patch" });
    let calls = [
        ("bash", json!({ "command": "make" })),
        ("apply_patch", patch),
        ("mcp_thing", json!({})),
    ];
    for (tool, arguments) in calls {
        let arguments = arguments.to_string();
        let Verdict::Ask { rule, .. } = judge(&policy, tool, &arguments) else {
            panic!("{tool} is asked");
        };
        let rule = rule.unwrap();
        assert_eq!(rule.folder.as_deref(), Some(FOLDER));
        let policy = policy.clone().with_rule(rule);
        let found = [
            FOLDER,
            "/home/me/work/",
            "/home/me/work/sub",
            "/home/me",
            "/",
        ]
        .map(|folder| judge_in(&policy, tool, &arguments, folder) == Verdict::Allow);
        assert_eq!(found, [true, true, false, false, false], "{tool}");
    }
}

#[test]
fn a_rule_from_before_folders_were_named_counts_in_all() {
    let old = r#"{"decision":"allow","tool":"bash","command":"make"}"#;
    let rule: ApprovalRule = serde_json::from_str(old).unwrap();
    assert_eq!(serde_json::to_string(&rule).unwrap(), old);
    let policy = ApprovalPolicy::new(ApprovalMode::Ask).with_rule(rule);
    let make = json!({ "command": "make" }).to_string();
    let found = ["/a", "/b"].map(|folder| judge_in(&policy, "bash", &make, folder));
    assert_eq!(found, [Verdict::Allow, Verdict::Allow]);
}

fn bash_in(policy: &ApprovalPolicy, command: &str, workdir: &str) -> char {
    let arguments = json!({ "command": command, "workdir": workdir });
    verdict(policy, "bash", &arguments.to_string())
}

#[test]
fn s_89_a_rule_that_allows_a_command_counts_in_the_work_location_only() {
    let policy = ApprovalPolicy::new(ApprovalMode::Ask)
        .with_rule(allow().with_command("make"))
        .with_rule(allow().with_command("cargo test *"));
    let found = [
        bash(&policy, "make"),
        bash(&policy, "cd sub && make"),
        bash_in(&policy, "make", "sub"),
        bash_in(&policy, "make", "/tmp/other"),
        bash_in(&policy, "make", "../other"),
        bash(&policy, "cd /tmp/other && make"),
        bash(&policy, "cd .. && cargo test"),
        bash(&policy, "cd $x && cargo test"),
        bash(&policy, "cd && cargo test"),
        bash(&policy, "cd - && cargo test"),
        bash(&policy, "pushd sub && cargo test"),
        bash(&policy, "bash -c 'cd /tmp/other && make'"),
        bash_in(&policy, "cd ..; cd ..; make", "a/b"),
    ];
    assert_eq!(found.iter().collect::<String>(), "+++??????????");
    let elsewhere = json!({ "command": "make", "workdir": "/tmp/other" }).to_string();
    let policy = ApprovalPolicy::new(ApprovalMode::Ask);
    let Verdict::Ask { rule, .. } = judge(&policy, "bash", &elsewhere) else {
        panic!("it is asked");
    };
    assert_eq!(rule, None, "no rule says in which folder");
}

#[test]
fn git_is_asked_in_any_folder_but_the_work_location() {
    let policy = ApprovalPolicy::new(ApprovalMode::Ask);
    let found = [
        bash(&policy, "git status"),
        bash_in(&policy, "git status", FOLDER),
        bash_in(&policy, "git status", "."),
        bash_in(&policy, "git status", "sub"),
        bash_in(&policy, "ls", "sub"),
        bash(&policy, "cd sub && git status"),
        bash(&policy, "ls | (cd sub; xargs git log)"),
    ];
    assert_eq!(found.iter().collect::<String>(), "+++?+??");
}

#[test]
fn s_45_s_65_a_patch_of_files_that_programs_obey_is_asked_in_every_mode_that_asks() {
    let policy = ApprovalPolicy::new(ApprovalMode::AutoEdit);
    let guarded = [
        ".git/hooks/pre-commit",
        ".GIT/config",
        "sub/.git",
        "sub/HEAD",
        "AGENTS.md",
        "sub/agents.md",
        ".envrc",
        ".bashrc",
        ".vscode/tasks.json",
        ".mcp.json",
        "openvaala.yaml",
        "../work2/a",
        "/etc/passwd",
        "a/../../b",
    ];
    let found: String = guarded.iter().map(|path| patch(&policy, path)).collect();
    assert_eq!(found, "?".repeat(guarded.len()));
    let own = [
        "src/lib.rs",
        "a/../b",
        "docs/agents.md.txt",
        "src/head.rs",
        "head/a.rs",
    ];
    let found: String = own.iter().map(|path| patch(&policy, path)).collect();
    assert_eq!(found, "+".repeat(own.len()));
}

#[test]
fn a_rule_that_denies_is_not_passed_by_options_that_are_not_known() {
    let policy = ApprovalPolicy::new(ApprovalMode::Full).with_rule(deny().with_command("rm *"));
    let denied = [
        "sudo -nu root rm x",
        "timeout -vs KILL 5 rm x",
        "bash -ce 'rm x'",
        "sudo rm x",
    ];
    let found: String = denied.iter().map(|line| bash(&policy, line)).collect();
    assert_eq!(found, "-".repeat(denied.len()));
    let asked = [
        "sudo --us root rm x",
        "xargs -a ls rm",
        "timeout --sig KILL 5 rm x",
    ];
    let found: String = asked.iter().map(|line| bash(&policy, line)).collect();
    assert_eq!(found, "?".repeat(asked.len()));
}
