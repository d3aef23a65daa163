//! What a server says, read by a client.

use openvaala_tests::sandbox::Sandbox;
use rustix::process::Signal;

#[test]
fn the_log_of_a_server_is_shown_and_followed_to_its_end() {
    let sandbox = Sandbox::new();
    let _ = sandbox.run(&["serve", "logs"]).expect_code(1);
    let server = sandbox.serve();
    let shown = sandbox.run(&["serve", "logs"]).expect_code(0);
    assert!(shown.stdout.contains("the server listens"), "{shown:?}");
    let last = sandbox.run(&["serve", "logs", "-n", "1"]).expect_code(0);
    assert_eq!(last.stdout.lines().count(), 1, "{last:?}");

    let mut follower = sandbox.start(&["serve", "logs", "--follow"]);
    follower.wait_for_stdout("the server listens");
    server.signal(Signal::HUP);
    follower.wait_for_stdout("the configuration was loaded anew");
    let _ = server.terminate();
    let outcome = follower.finish().expect_code(0);
    let times = |words: &str| outcome.stdout.matches(words).count();
    assert_eq!(
        [
            times("the server listens"),
            times("the configuration was loaded anew")
        ],
        [1, 1]
    );
}
