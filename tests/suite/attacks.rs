//! Clients that want too much: too large, too deep, too slow, too many, too fast.
//!
//! Whole with `OPENVAALA_LONG`, else a part of it below the same bars.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use openvaala_tests::notice::is_long;
use openvaala_tests::raw_client::{RawClient, RawMessage};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::wait;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::memory::{of_status, open_files, peak, resident};

/// In KiB, as the system tells memory.
const MIB: u64 = 1 << 10;

fn serve(limits: &Value) -> (Sandbox, Server) {
    let sandbox = Sandbox::new();
    sandbox.write_config(&format!("listen: 127.0.0.1:0\nlimits: {limits}\n"));
    let server = sandbox.serve();
    (sandbox, server)
}

fn client(server: &Server) -> RawClient {
    RawClient::initialized(&server.discovery.address, &server.discovery.token())
}

fn clients(client: &mut RawClient) -> u64 {
    let status = client.call("server/status", &json!({}));
    status["result"]["clients"]
        .as_u64()
        .expect("it is a number")
}

/// How much of a processor a process has used, in all.
fn used(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|n| n.parse::<u64>().unwrap())
        .sum();
    // The unit is a hundredth of a second on every Linux.
    Duration::from_millis(ticks * 10)
}

#[test]
fn s_130_messages_that_are_too_large_cost_no_memory() {
    let (_sandbox, server) = serve(&json!({}));
    let mut other = client(&server);
    let before = peak(server.pid());
    for how in ["one frame", "many frames", "only its head"] {
        let mut large = client(&server);
        // The server may close while this is still being written.
        match how {
            "one frame" => drop(large.send_frame(0x81, &vec![b' '; (16 << 20) + 1])),
            "many frames" => {
                let piece = vec![b' '; 1 << 20];
                let mut first = 0x01;
                for _ in 0..64 {
                    if large.send_frame(first, &piece).is_err() {
                        break;
                    }
                    first = 0x00;
                }
            }
            _ => {
                let mut head = vec![0x81, 0x80 | 127];
                head.extend((1_u64 << 60).to_be_bytes());
                head.extend([1, 2, 3, 4]);
                large.send_bytes(&head).unwrap();
            }
        }
        let end = large.read_message();
        assert!(
            matches!(end, RawMessage::Close(1009) | RawMessage::Ended),
            "{how}: {end:?}"
        );
    }
    // Who has not shown that it holds the token may send a head of a few KiB, and nothing else.
    for request in [
        format!(
            "GET /healthz HTTP/1.1\r\nX-Long: {}\r\n\r\n",
            "x".repeat(1 << 20)
        ),
        format!(
            "POST /healthz HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{}",
            server.discovery.address,
            64 << 20,
            "x".repeat(64 << 20)
        ),
    ] {
        let mut stranger = RawClient::connect(&server.discovery.address);
        let sent = stranger.send_bytes(request.as_bytes());
        assert!(sent.is_err() || stranger.ends(), "it was taken whole");
    }
    let grown = peak(server.pid()).saturating_sub(before);
    println!("messages that are too large: {grown} KiB more than the {before} KiB before");
    assert!(grown < 32 * MIB, "{grown} KiB");
    assert_eq!(clients(&mut other), 1);
}

#[test]
fn s_132_a_message_of_any_shape_is_refused_within_bounds() {
    let (_sandbox, server) = serve(&json!({}));
    let mut client = client(&server);
    let before = peak(server.pid());
    let keys: Vec<String> = (0..1_000_000).map(|n| format!("\"k{n}\":1")).collect();
    let shapes = [
        format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000)),
        format!("{}1{}", "{\"a\":".repeat(1_000_000), "}".repeat(1_000_000)),
        format!("[{}1]", "1,".repeat(8_000_000)),
        format!("{{{}}}", keys.join(",")),
        format!("\"{}\"", "\\u0000".repeat(2_000_000)),
        format!("1{}", "0".repeat(1_000_000)),
    ];
    for shape in shapes {
        let method = "conversation/get";
        client.send_text(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{shape}}}"#
        ));
        let code = client.read_response()["error"]["code"].clone();
        let is_refusal = [-32700, -32600, -32602].contains(&code.as_i64().unwrap_or_default());
        assert!(is_refusal, "{shape:.40}: {code}");
    }
    let grown = peak(server.pid()).saturating_sub(before);
    println!("JSON of every shape: {grown} KiB more than the {before} KiB before");
    // The largest of them has 16 MiB, and is there as bytes, as a text and as its parameters.
    assert!(grown < 96 * MIB, "{grown} KiB");
    assert_eq!(clients(&mut client), 1);
}

#[test]
fn s_134_hundreds_of_slow_clients_are_ended_and_others_are_served_meanwhile() {
    let (_sandbox, server) = serve(&json!({ "handshake_seconds": 3 }));
    let address = &server.discovery.address;
    let starts = [
        "GET /healthz HTTP/1.1\r\nX-Slow: ".to_owned(),
        format!("POST /healthz HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100000\r\n\r\n"),
        String::new(),
    ];
    let mut slow = Vec::new();
    for start in starts.iter().cycle().take(500) {
        let mut client = RawClient::connect(address);
        // The oldest are ended while the others come.
        let _ = client.send_bytes(start.as_bytes());
        slow.push(client);
    }
    let mut took: Vec<Duration> = (0..9)
        .map(|_| {
            let begin = Instant::now();
            drop(client(&server));
            begin.elapsed()
        })
        .collect();
    took.sort();
    println!("beside 500 slow connections a client is let in after {took:?}");
    wait::within(Duration::from_secs(30), "the end of the slow ones", || {
        slow.retain_mut(|client| client.send_bytes(b"x").is_ok());
        match slow.len() {
            0 => Ok(()),
            left => Err(format!("{left} are left")),
        }
    });
    assert_eq!(clients(&mut client(&server)), 1);
}

#[test]
fn s_135_the_server_serves_its_clients_whatever_number_of_others_connects() {
    let (many, limits) = if is_long() {
        (5_000, json!({}))
    } else {
        (300, json!({ "connections": 60, "waiting_connections": 10 }))
    };
    let (_sandbox, server) = serve(&limits);
    let mut other = client(&server);
    let before = open_files(server.pid());
    let all: Vec<RawClient> = (0..many)
        .map(|_| RawClient::connect(&server.discovery.address))
        .collect();
    assert_eq!(clients(&mut other), 1);
    let most = limits["waiting_connections"].as_u64().unwrap_or(64) as usize;
    wait::until("all to be taken or ended", || {
        match open_files(server.pid()) - before {
            files if files <= most => Ok(()),
            files => Err(format!("{files} files")),
        }
    });
    drop(client(&server));
    drop(all);
    wait::until("the end of all of them", || {
        match open_files(server.pid()) {
            files if files <= before => Ok(()),
            files => Err(format!("{files} files")),
        }
    });
}

#[test]
fn s_135_a_server_without_files_to_open_waits_without_spinning() {
    let sandbox = Sandbox::new();
    sandbox.write_config("listen: 127.0.0.1:0\nlimits: {handshake_seconds: 2}\n");
    let wrapper = ["bash", "-c", "ulimit -n 64 && exec \"$@\"", "bash"].map(str::to_owned);
    let server = sandbox
        .serve_under(&wrapper)
        .unwrap_or_else(|outcome| panic!("{outcome:?}"));
    let mut other = client(&server);
    let (begin, before) = (Instant::now(), used(server.pid()));
    let mut all: Vec<RawClient> = (0..120)
        .map(|_| RawClient::connect(&server.discovery.address))
        .collect();
    wait::until("the last file to be taken", || {
        match open_files(server.pid()) {
            64.. => Ok(()),
            files => Err(format!("{files} files")),
        }
    });
    assert_eq!(clients(&mut other), 1);
    // Each is taken once others have gone, and then is too slow.
    for client in &mut all {
        assert!(client.ends(), "it goes on");
    }
    let (took, used) = (begin.elapsed(), used(server.pid()) - before);
    println!("without files to open for a while: {used:?} of {took:?}");
    assert!(took > Duration::from_secs(3), "{took:?}");
    assert!(used < took / 4, "{used:?} of {took:?}");
    drop(client(&server));
    assert_eq!(clients(&mut other), 1);
}

#[test]
fn s_139_a_client_that_floods_the_server_is_refused_and_slows_nobody() {
    let rounds = if is_long() { 10 } else { 1 };
    let (_sandbox, server) = serve(&json!({}));
    let mut flood = client(&server);
    let flooding = thread::spawn(move || {
        let request = r#"{"jsonrpc":"2.0","id":7,"method":"server/status"}"#;
        let mut refused = 0;
        for _ in 0..rounds {
            for _ in 0..10_000 {
                flood.send_text(request);
            }
            for _ in 0..10_000 {
                let answer = flood.read_response();
                if let Some(error) = answer.get("error") {
                    assert_eq!(error["code"], -32005, "{answer}");
                    refused += 1;
                }
            }
        }
        refused
    });
    let mut other = client(&server);
    let mut took = Vec::new();
    while !flooding.is_finished() || took.len() < 100 {
        let begin = Instant::now();
        clients(&mut other);
        took.push(begin.elapsed());
        // As fast as one who is shown the status, not as one who is refused, too.
        thread::yield_now();
        if took.len() % 500 == 0 {
            wait::until("the next second", || {
                if begin.elapsed() > Duration::from_millis(500) {
                    Ok(())
                } else {
                    Err("it has not come")
                }
            });
        }
    }
    let refused = flooding.join().unwrap();
    took.sort();
    let p99 = took[took.len() * 99 / 100];
    println!(
        "{refused} requests were refused; {} others, p99 {p99:?}",
        took.len()
    );
    assert!(refused > 0);
}

/// Memory in KiB, open files and threads.
fn cost(server: &Server) -> (u64, usize, u64) {
    let pid = server.pid();
    (resident(pid), open_files(pid), of_status(pid, "Threads:"))
}

#[test]
fn s_143_clients_and_subscriptions_that_come_and_go_leave_nothing_behind() {
    let (subscriptions, connections) = if is_long() {
        (100_000, 10_000)
    } else {
        (2_000, 200)
    };
    let (_sandbox, server) = serve(&json!({ "requests_per_second": 1_000_000 }));
    let mut steady = client(&server);
    let created = steady.call("conversation/create", &json!({}));
    let watch = json!({ "conversation_id": created["result"]["conversation"]["id"] });
    let mut after = Vec::new();
    // The first round warms up: what a server keeps for later use it has by then.
    for share in [4, 1] {
        for _ in 0..subscriptions / share {
            let answer = steady.call("conversation/subscribe", &watch);
            assert!(answer.get("error").is_none(), "{answer}");
            let answer = steady.call("conversation/unsubscribe", &watch);
            assert_eq!(answer["result"]["was_subscribed"], true, "{answer}");
        }
        for _ in 0..connections / share {
            let mut client = client(&server);
            let _ = client.call("conversation/subscribe", &watch);
        }
        wait::until("the server to be left by all but one", || {
            match clients(&mut steady) {
                1 => Ok(()),
                more => Err(format!("{more} clients")),
            }
        });
        after.push(cost(&server));
    }
    println!("KiB, files and threads, after a part and after all: {after:?}");
    let [(early, files, threads), (late, files_late, threads_late)] = after[..] else {
        panic!("{after:?}");
    };
    assert_eq!((files_late, threads_late), (files, threads));
    assert!(late < early + early / 20, "{after:?}");
}

#[test]
fn a_thousand_idle_clients_cost_less_than_32_mebibytes() {
    let (many, bar) = if is_long() {
        (1_000, 32 * MIB)
    } else {
        (200, 32 * MIB / 5)
    };
    let (_sandbox, server) = serve(&json!({}));
    // The first ten warm up.
    let mut all: Vec<RawClient> = (0..10).map(|_| client(&server)).collect();
    let before = resident(server.pid());
    all.extend((0..many).map(|_| client(&server)));
    let grown = resident(server.pid()).saturating_sub(before);
    println!("{many} idle clients: {grown} KiB more than the {before} KiB before");
    assert_eq!(clients(&mut all[0]), many + 10);
    assert!(grown < bar, "{many} idle clients cost {grown} KiB");
}
