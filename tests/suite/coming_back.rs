//! A client whose connection breaks again and again, and whose server is killed, sees what a new one sees.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use openvaala_protocol::client::{
    Client, ClientError, ConnectOptions, Locate, Located, SteadyClient, SteadyOptions, Watch,
    WatchEvent,
};
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{ConversationStatus, WorkLocation};
use openvaala_protocol::event::{ResumeCursor, Snapshot};
use openvaala_protocol::id::{ConversationId, ItemId};
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::conversation::{
    CreateParams, SubscribeParams, SubscribeResult, UnsubscribeParams,
};
use openvaala_protocol::rpc::params::session::{SendMode, SendParams};
use openvaala_tests::cutter::Cutter;
use openvaala_tests::dice::Dice;
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Discovery;
use openvaala_tests::wait;
use pretty_assertions::assert_eq;
use uuid::Uuid;

use crate::support::stop;

/// How many connections are cut.
const CUTS: u64 = 1_000;
/// How many bytes of the server a connection sees at the most: a turn is a little longer.
const LONGEST: u64 = 24_000;
/// How many entries of a session are compared.
const COMPARED: usize = 20;

/// A model that prints something, and then says much in many pieces.
fn prints_and_talks(asked: &Asked) -> Answer {
    if asked.step() == 0 {
        let command = r#"{"command":"for n in 1 2 3 4 5; do echo line $n; done"}"#;
        return Answer::tool("call_1", "bash", command);
    }
    let mut answer = Answer::stream();
    for n in 0..20 {
        answer = answer.say(&format!("piece {n} "));
    }
    answer.end()
}

fn sandbox() -> (Sandbox, FakeModel) {
    let model = FakeModel::start(prints_and_talks);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    (sandbox, model)
}

/// Comes back at once, so that much breaks in a short time.
fn at_once() -> SteadyOptions {
    let mut options = SteadyOptions::default();
    options.first_wait = Duration::from_millis(1);
    options.longest_wait = Duration::from_millis(50);
    options
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p_12_p_27_u_133_a_view_is_whole_after_a_thousand_cut_connections() {
    let dice = Dice::from_environment("coming_back");
    let (sandbox, mut model) = sandbox();
    let server = sandbox.serve();
    let options = server.discovery.connect_options();
    let cutter = Cutter::start(&server.discovery.address, dice, CUTS, LONGEST);
    let conversation = create(&options, &sandbox.project()).await;
    let client = connect(cutter.through(&options)).await;
    let mut watch = client.watch(conversation).expect("the client is open");
    let mut turns = 0;
    while cutter.cuts() < CUTS {
        let input = send(&client, conversation).await;
        turn(&mut watch, input).await;
        turns += 1;
        expect_same_as_new(&mut watch, &options).await;
        model.forget();
    }
    println!("{} connections cut in {turns} turns", cutter.cuts());
    client.close().await;
    stop(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_01_p_27_a_view_is_whole_after_each_of_many_killed_servers() {
    let kills = 200;
    let mut dice = Dice::from_environment("coming_back");
    let (sandbox, mut model) = sandbox();
    let mut server = sandbox.serve();
    let conversation = create(&server.discovery.connect_options(), &sandbox.project()).await;
    // Something is on disk before the first kill.
    let client = connect(Found(sandbox.state().to_owned())).await;
    let mut watch = client.watch(conversation).expect("the client is open");
    let input = send(&client, conversation).await;
    turn(&mut watch, input).await;
    for _ in 0..kills {
        let sending = tokio::spawn({
            let client = client.clone();
            async move { send(&client, conversation).await }
        });
        // Somewhere in the turn, or before it.
        for _ in 0..dice.below(40) {
            if matches!(watch.next().await, Some(WatchEvent::Ended { .. }) | None) {
                break;
            }
            if watch.view().is_some_and(|view| {
                view.conversation().status == ConversationStatus::Idle && sending.is_finished()
            }) {
                break;
            }
        }
        server.kill();
        server = sandbox.serve();
        let input = sending.await.expect("sending does not panic");
        turn(&mut watch, input).await;
        expect_same_as_new(&mut watch, &server.discovery.connect_options()).await;
        model.forget();
    }
    println!("{kills} servers killed");
    client.close().await;
    stop(server).await;
}

/// The server as its file says where it is.
struct Found(PathBuf);

impl Locate for Found {
    fn locate(&self) -> Located<'_> {
        Box::pin(async {
            let found = Discovery::all(&self.0);
            found
                .first()
                .map(Discovery::connect_options)
                .ok_or_else(|| ClientError::Refused {
                    address: "nowhere yet".to_owned(),
                    source: std::io::ErrorKind::NotFound.into(),
                })
        })
    }
}

/// The first connection may be cut as well.
async fn connect(locate: impl Locate) -> SteadyClient {
    let locate: Arc<dyn Locate> = Arc::new(locate);
    loop {
        let options = locate.locate().await.expect("there is a server");
        if let Ok(open) = Client::connect(options).await {
            return SteadyClient::with(locate, at_once(), open);
        }
    }
}

async fn create(options: &ConnectOptions, folder: &Path) -> ConversationId {
    let (client, _notices) = Client::connect(options.clone())
        .await
        .expect("the server is there");
    let root = folder
        .to_str()
        .expect("the folder has a plain name")
        .to_owned();
    let executor = "local".parse().expect("local is an executor id");
    let params = CreateParams {
        executors: vec![WorkLocation { executor, root }],
        ..CreateParams::default()
    };
    let created = client.call::<method::ConversationCreate>(params).await;
    let id = created.expect("a conversation is created").conversation.id;
    // It is on disk with its first message only: that is sent on this connection.
    client
        .call::<method::SessionSend>(say(id))
        .await
        .expect("the first message is taken");
    client.close().await;
    id
}

fn say(conversation_id: ConversationId) -> SendParams {
    SendParams {
        conversation_id,
        session_id: None,
        item_id: ItemId::from_uuid(Uuid::now_v7()),
        content: vec![Content::text("go on")],
        mode: SendMode::Queue,
        output_schema: None,
        approval_mode: None,
    }
}

/// Sends over whatever connection there is; taken once, however often it is sent.
async fn send(client: &SteadyClient, conversation: ConversationId) -> ItemId {
    let params = say(conversation);
    let item = params.item_id;
    let sent = client.call::<method::SessionSend>(params);
    wait::finished("the input to be taken", sent)
        .await
        .expect("the input is taken");
    item
}

/// Follows the view until a turn with that input has ended and nothing runs.
async fn turn(watch: &mut Watch, input: ItemId) {
    loop {
        let ended = watch.view().is_some_and(|view| {
            let session = &view.sessions()[0];
            view.conversation().status == ConversationStatus::Idle
                && session.pending.is_empty()
                && view
                    .turn(session.id)
                    .is_some_and(|turn| turn.ended_at.is_some() && turn.inputs.contains(&input))
        });
        if ended {
            return;
        }
        next(watch).await;
    }
}

async fn next(watch: &mut Watch) {
    let told = wait::finished("something to be told", watch.next()).await;
    match told {
        Some(WatchEvent::Ended { error }) => panic!("the watch has ended: {error}"),
        None => panic!("the watch has ended"),
        Some(_) => {}
    }
}

/// At an equal cursor the view is what a new client is given.
async fn expect_same_as_new(watch: &mut Watch, options: &ConnectOptions) {
    let (client, _notices) = Client::connect(options.clone())
        .await
        .expect("the server is there");
    loop {
        let new = subscribe(&client, watch.conversation()).await;
        while cursor(watch) != Some(&new.cursor) {
            next(watch).await;
        }
        let Some(view) = watch.view() else { continue };
        assert_eq!(new.partials, Vec::new());
        assert_eq!(
            serde_json::to_value(view.snapshot(COMPARED)).expect("a snapshot is JSON"),
            serde_json::to_value(cut(new)).expect("a snapshot is JSON"),
        );
        break;
    }
    client.close().await;
}

fn cursor(watch: &Watch) -> Option<&ResumeCursor> {
    watch.view().map(openvaala_protocol::client::View::cursor)
}

async fn subscribe(client: &Client, conversation_id: ConversationId) -> SubscribeResult {
    let params = SubscribeParams {
        conversation_id,
        cursor: None,
    };
    let subscribed = client.call::<method::ConversationSubscribe>(params).await;
    let params = UnsubscribeParams { conversation_id };
    client
        .call::<method::ConversationUnsubscribe>(params)
        .await
        .expect("a subscription can be ended");
    subscribed.expect("a client can subscribe")
}

/// Of a new client's snapshot as much as is compared.
fn cut(new: SubscribeResult) -> Snapshot {
    let view = openvaala_protocol::client::View::begin(new, COMPARED);
    view.expect("a new subscription has a snapshot")
        .snapshot(COMPARED)
}
