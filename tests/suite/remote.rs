//! Clients of other machines: what lets them in, and how they use a server that is not theirs.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use openvaala_protocol::handshake::{CHALLENGE_PATH, NONCE_HEADER};
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::raw_client::RawClient;
use openvaala_tests::running::Outcome;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::wait;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// A sandbox with a token `laptop`, and the files of a certificate for 127.0.0.1.
struct Elsewhere {
    sandbox: Sandbox,
    token: PathBuf,
}

impl Elsewhere {
    fn new(configuration: &str) -> Self {
        let sandbox = Sandbox::new();
        let created = sandbox.run(&[
            "token",
            "create",
            "laptop",
            "--rights",
            "watch,send,approve",
        ]);
        let token = sandbox.root().join("laptop.token");
        fs::write(&token, created.expect_code(0).stdout).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        sandbox.stop_server();
        new_certificate(&sandbox);
        sandbox.write_config(&format!("listen: 127.0.0.1:0\n{configuration}"));
        Self { sandbox, token }
    }

    /// With TLS, listening at all addresses.
    fn encrypted(more: &str) -> Self {
        let remote = "remote: {listen: \"0.0.0.0:0\", certificate: server.crt, key: server.key}\n";
        Self::new(&format!("{remote}{more}"))
    }

    fn certificate(&self) -> PathBuf {
        self.sandbox.config().join("server.crt")
    }

    /// Runs a command against a URL, with token and certificate.
    fn run(&self, url: &str, arguments: &[&str]) -> Outcome {
        let (token, certificate) = (self.token.clone(), self.certificate());
        let (token, certificate) = (token.to_str().unwrap(), certificate.to_str().unwrap());
        let named = [
            "--url",
            url,
            "--token-file",
            token,
            "--ca-file",
            certificate,
        ];
        self.sandbox.run(&[&named, arguments].concat())
    }
}

/// Puts a new certificate, which vouches for itself, where the configuration has it.
fn new_certificate(sandbox: &Sandbox) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    fs::write(sandbox.config().join("server.crt"), made.cert.pem()).unwrap();
    fs::write(
        sandbox.config().join("server.key"),
        made.signing_key.serialize_pem(),
    )
    .unwrap();
}

fn status(sandbox: &Sandbox) -> Value {
    let said = sandbox.run(&["serve", "status", "--json"]).expect_code(0);
    serde_json::from_str(&said.stdout).unwrap()
}

/// The port that other machines reach.
fn port(sandbox: &Sandbox) -> u16 {
    let status = status(sandbox);
    let address = status["remote"]["address"].as_str();
    let address: SocketAddr = address
        .unwrap_or_else(|| panic!("{status}"))
        .parse()
        .unwrap();
    address.port()
}

/// The addresses that a process listens at, as the system has them: whether each is of this machine only.
fn listens_locally(pid: u32) -> Vec<bool> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let sockets: Vec<String> = files
        .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
        .map(|link| link.to_string_lossy().into_owned())
        .filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut local = Vec::new();
    for table in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // 0A is LISTEN; addresses are in hex, the bytes of each group of four turned round.
            if fields[3] == "0A" && sockets.iter().any(|inode| inode == fields[9]) {
                let address = fields[1].split(':').next().unwrap();
                local.push(address == "0100007F" || address.ends_with("00000000000001000000"));
            }
        }
    }
    local
}

fn text(outcome: &Outcome) -> String {
    format!("{}{}", outcome.stdout, outcome.stderr)
}

#[test]
fn s_02_a_server_listens_on_this_machine_only_unless_others_get_encryption_and_a_token() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    assert_eq!(listens_locally(server.pid()), [true]);
    let _ = server.terminate();

    let address = "0.0.0.0:0";
    let refused = sandbox.run(&["serve", "--listen", address]).expect_code(1);
    let _ = refused.expect_stderr(&["needs TLS", "--tls-certificate", "--insecure-listen"]);
    let open = ["serve", "--listen", address, "--insecure-listen"];
    let refused = sandbox.run(&open).expect_code(1);
    let _ = refused.expect_stderr(&["no token lets them in", "openvaala token create NAME"]);
    assert!(sandbox.servers().is_empty());

    // By the configuration the server starts all the same: it is the one who makes the token.
    new_certificate(&sandbox);
    sandbox.write_config(
        "listen: 127.0.0.1:0\nremote: {listen: \"0.0.0.0:0\", certificate: server.crt, key: server.key}\n",
    );
    let server = sandbox.serve();
    assert_eq!(listens_locally(server.pid()), [true]);
    let degraded = status(&sandbox)["degraded"].to_string();
    assert!(
        degraded.contains("openvaala token create NAME"),
        "{degraded}"
    );
    let rights = ["token", "create", "laptop", "--rights", "watch"];
    let _ = sandbox.run(&rights).expect_code(0);
    let _ = server.terminate();

    let server = sandbox.serve();
    let mut local = listens_locally(server.pid());
    local.sort_unstable();
    assert_eq!(local, [false, true]);
    assert_eq!(status(&sandbox)["remote"]["encrypted"], true);
}

#[test]
fn a_client_elsewhere_uses_a_server_by_its_url_and_never_starts_one() {
    let mut model = FakeModel::start(|_: &Asked| Answer::text("all is well"));
    let elsewhere = Elsewhere::encrypted("");
    let sandbox = &elsewhere.sandbox;
    let remote = "listen: 127.0.0.1:0\nremote: {listen: \"0.0.0.0:0\", certificate: server.crt, key: server.key}\n";
    sandbox.use_model(&model.base_url());
    let main = sandbox.config().join("openvaala.yaml");
    let rest = fs::read_to_string(&main).unwrap();
    let rest: Vec<&str> = rest
        .lines()
        .filter(|line| !line.starts_with("listen"))
        .collect();
    fs::write(&main, format!("{remote}{}\n", rest.join("\n"))).unwrap();
    let server = sandbox.serve();
    let url = format!("wss://127.0.0.1:{}", port(sandbox));

    let folder = sandbox.project();
    let folder = folder.to_str().unwrap();
    let said = elsewhere
        .run(&url, &["exec", "--cwd", folder, "how are you?"])
        .expect_code(0);
    assert_eq!(said.stdout, "all is well\n");
    // A folder of this machine is none of the server's.
    let said = elsewhere.run(&url, &["exec", "and where?"]).expect_code(0);
    assert_eq!(said.stdout, "all is well\n");
    let _ = elsewhere
        .run(&url, &["exec", "--cwd", "here", "no"])
        .expect_code(2);
    let _ = elsewhere
        .run(&url, &["exec", "--last", "no"])
        .expect_code(2);
    let listed = elsewhere.run(&url, &["list", "--json"]).expect_code(0);
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.stdout);
    let refused = elsewhere.run(&url, &["token", "list"]);
    assert!(
        text(&refused).contains("needs the right `admin`"),
        "{refused:?}"
    );
    for here in [["serve", "stop"], ["config", "check"]] {
        let refused = elsewhere.run(&url, &here).expect_code(2);
        let _ = refused.expect_stderr(&["works on this machine only"]);
    }
    let pid = server.pid();
    let _ = server.terminate();
    let refused = elsewhere.run(&url, &["list"]);
    assert!(text(&refused).contains("nobody listens"), "{refused:?}");
    let left: Vec<u32> = sandbox
        .servers()
        .iter()
        .map(|process| process.pid)
        .collect();
    assert!(left.is_empty(), "{left:?}, before: {pid}");
    model.expect_sound_requests();
}

#[test]
fn a_client_elsewhere_trusts_nobody_by_mistake() {
    let elsewhere = Elsewhere::encrypted("");
    let (sandbox, token) = (&elsewhere.sandbox, elsewhere.token.to_str().unwrap());
    let _server = sandbox.serve();
    let port = port(sandbox);
    let url = format!("wss://127.0.0.1:{port}");
    let refused = |arguments: &[&str], words: &str| {
        let outcome = sandbox.run(&[arguments, &["list"]].concat());
        assert!(
            outcome.code != Some(0) && text(&outcome).contains(words),
            "{outcome:?}"
        );
    };
    refused(&["--url", &url, "--token-file", token], "is not trusted");
    refused(&["--url", &url], "wants a token");
    let plain = format!("ws://127.0.0.1:{port}");
    refused(&["--url", &plain, "--token-file", token], "127.0.0.1");
    let elsewhere_in_clear = "ws://192.0.2.1:8791";
    refused(
        &["--url", elsewhere_in_clear, "--token-file", token],
        "read and changed on its way",
    );
    fs::set_permissions(token, fs::Permissions::from_mode(0o640)).unwrap();
    refused(&["--url", &url, "--token-file", token], "chmod 600");
    // A token of another server: neither side believes the other.
    fs::write(token, format!("laptop:{}\n", "ab".repeat(32))).unwrap();
    fs::set_permissions(token, fs::Permissions::from_mode(0o600)).unwrap();
    let outcome = elsewhere.run(&url, &["list"]);
    assert!(
        text(&outcome).contains("does not hold the token"),
        "{outcome:?}"
    );
    fs::write(token, format!("phone:{}\n", "ab".repeat(32))).unwrap();
    let outcome = elsewhere.run(&url, &["list"]);
    assert!(
        text(&outcome).contains("there is no token of that name"),
        "{outcome:?}"
    );
}

/// A server that other machines reach without encryption, and the port.
fn insecure(more: &str) -> (Elsewhere, Server, u16) {
    let remote = format!("remote: {{listen: \"0.0.0.0:0\", insecure: true{more}}}\n");
    let elsewhere = Elsewhere::new(&format!("{remote}origins: [\"https://app.example.org\"]\n"));
    let server = elsewhere.sandbox.serve();
    let port = port(&elsewhere.sandbox);
    (elsewhere, server, port)
}

#[test]
fn s_03_s_04_s_06_from_elsewhere_only_the_hosts_and_origins_of_the_configuration_are_taken() {
    let (_elsewhere, _server, port) = insecure(", hosts: [build.example.org]");
    let ask = |headers: &[(&str, &str)]| {
        let mut client = RawClient::connect(&format!("127.0.0.1:{port}"));
        client.get("/healthz", headers).status
    };
    let own = format!("127.0.0.1:{port}");
    let named = format!("build.example.org:{port}");
    for (host, status) in [
        (own.as_str(), 200),
        ("127.0.0.1", 200),
        ("build.example.org", 200),
        (&named, 200),
        ("BUILD.example.org", 200),
        (&format!("localhost:{port}"), 403),
        (&format!("127.0.0.2:{port}"), 403),
        (&format!("127.0.0.1.nip.io:{port}"), 403),
        (&format!("build.example.org.evil.example:{port}"), 403),
        ("0.0.0.0", 403),
    ] {
        assert_eq!(ask(&[("Host", host)]), status, "{host}");
    }
    for (origin, status) in [
        ("https://app.example.org", 200),
        ("http://build.example.org", 200),
        ("https://build.example.org", 403),
        ("https://app.example.org.evil.example", 403),
        ("https://evil.example", 403),
        ("null", 403),
    ] {
        assert_eq!(
            ask(&[("Host", &named), ("Origin", origin)]),
            status,
            "{origin}"
        );
    }
}

#[test]
fn s_01_the_token_of_this_machine_lets_nobody_in_from_elsewhere() {
    let (_elsewhere, server, port) = insecure("");
    let mut client = RawClient::connect(&format!("127.0.0.1:{port}"));
    let nonce = "ab".repeat(32);
    let reply = client.get(CHALLENGE_PATH, &[(NONCE_HEADER, &nonce)]);
    assert_eq!(
        (reply.status, reply.body.as_str()),
        (
            401,
            "clients on other machines need a token with a name: see `openvaala token`"
        )
    );
    assert!(!reply.head.contains(&server.discovery.token));
}

#[test]
fn s_134_who_never_encrypts_or_speaks_plainly_is_cut_off_and_costs_the_others_nothing() {
    let elsewhere = Elsewhere::encrypted("limits: {handshake_seconds: 1}\n");
    let _server = elsewhere.sandbox.serve();
    let port = port(&elsewhere.sandbox);
    let address = format!("127.0.0.1:{port}");
    let mut silent: Vec<RawClient> = (0..20).map(|_| RawClient::connect(&address)).collect();
    let mut plain = RawClient::connect(&address);
    plain
        .send_bytes(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let url = format!("wss://{address}");
    let _ = elsewhere.run(&url, &["list"]).expect_code(0);
    assert!(plain.ends());
    assert!(silent.iter_mut().all(RawClient::ends));
}

#[test]
fn a_new_certificate_counts_after_a_reload_and_a_broken_one_never() {
    let elsewhere = Elsewhere::encrypted("");
    let sandbox = &elsewhere.sandbox;
    let server = sandbox.serve();
    let url = format!("wss://127.0.0.1:{}", port(sandbox));
    let old = sandbox.root().join("old.crt");
    fs::copy(elsewhere.certificate(), &old).unwrap();
    let trusts = |certificate: &Path| {
        let token = elsewhere.token.to_str().unwrap();
        let certificate = certificate.to_str().unwrap();
        let named = [
            "--url",
            &url,
            "--token-file",
            token,
            "--ca-file",
            certificate,
        ];
        sandbox.run(&[&named, ["list"].as_slice()].concat()).code == Some(0)
    };
    fs::write(sandbox.config().join("server.key"), "no key").unwrap();
    let (address, own) = (&server.discovery.address, server.discovery.token());
    let mut admin = RawClient::initialized(address, &own);
    let refused = admin.call("server/reload", &json!({}));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("server.key is no private key"),
        "{message}"
    );
    assert!(trusts(&old));
    new_certificate(sandbox);
    let reloaded = admin.call("server/reload", &json!({}));
    assert!(reloaded["result"].is_object(), "{reloaded}");
    assert!(trusts(&elsewhere.certificate()));
    assert!(!trusts(&old));
}

#[test]
fn s_13_a_turn_goes_on_when_the_token_of_its_client_is_revoked() {
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let mut model = FakeModel::start(move |_: &Asked| {
        // An answer only once the token is gone.
        let _ = gate.lock().unwrap().recv();
        Answer::text("done all the same")
    });
    let elsewhere = Elsewhere::new("");
    let sandbox = &elsewhere.sandbox;
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let url = format!("ws://{}", server.discovery.address);
    let token = elsewhere.token.to_str().unwrap();
    let named = [
        "--url",
        &url,
        "--token-file",
        token,
        "exec",
        "--json",
        "work",
    ];
    let mut client = sandbox.start(&named);
    client.wait_for_stdout("user_message");
    let _ = sandbox.run(&["token", "revoke", "laptop"]).expect_code(0);
    let ended = client.finish();
    assert!(ended.code != Some(0), "{ended:?}");
    let again = sandbox.run(&["--url", &url, "--token-file", token, "list"]);
    assert!(
        text(&again).contains("there is no token of that name"),
        "{again:?}"
    );
    open.send(()).unwrap();
    wait::until("the end of the turn", || {
        let listed = sandbox.run(&["show", &id(sandbox)]).expect_code(0).stdout;
        if listed.contains("done all the same") {
            Ok(())
        } else {
            Err(listed)
        }
    });
    model.expect_sound_requests();
}

fn id(sandbox: &Sandbox) -> String {
    let listed = sandbox.run(&["list", "--json"]).expect_code(0);
    let first: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    first["id"].as_str().unwrap().to_owned()
}

#[test]
fn tokens_are_made_listed_revoked_and_rotated_on_the_command_line() {
    let sandbox = Sandbox::new();
    let made = sandbox
        .run(&["token", "create", "phone", "--rights", "watch,approve"])
        .expect_code(0);
    let (name, digits) = made.stdout.trim().split_once(':').unwrap();
    assert_eq!((name, digits.len()), ("phone", 64));
    let twice = sandbox.run(&["token", "create", "phone", "--rights", "watch"]);
    assert!(
        twice.code != Some(0) && text(&twice).contains("phone"),
        "{twice:?}"
    );
    let listed = sandbox.run(&["token", "list", "--json"]).expect_code(0);
    assert!(listed.stdout.contains("\"phone\"") && !listed.stdout.contains(digits));
    // What is kept of it lets nobody in, and only its owner may read even that.
    let kept = sandbox.data().join("tokens.yaml");
    assert!(!fs::read_to_string(&kept).unwrap().contains(digits));
    assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o600);
    let token = |sandbox: &Sandbox| {
        let found = openvaala_tests::server::Discovery::all(sandbox.state());
        found[0].token.clone()
    };
    let before = token(&sandbox);
    let _ = sandbox.run(&["token", "rotate"]).expect_code(0);
    assert!(before != token(&sandbox));
    let _ = sandbox.run(&["token", "revoke", "phone"]).expect_code(0);
    let unknown = sandbox.run(&["token", "revoke", "phone"]);
    assert!(
        unknown.code != Some(0) && text(&unknown).contains("phone"),
        "{unknown:?}"
    );
    let _ = sandbox.run(&["list"]).expect_code(0);
}
