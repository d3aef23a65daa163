//! Several clients that steer one conversation, and servers that are killed while they do.

use std::collections::BTreeSet;
use std::time::Duration;

use openvaala_protocol::client::ClientError;
use openvaala_protocol::content::{Content, joined_text};
use openvaala_protocol::conversation::{Conversation, ModelRef, Session, TurnStatus};
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ConversationId, ItemId};
use openvaala_protocol::item::{Item, UserMessage};
use openvaala_protocol::rpc::params::pending::{
    ListParams, ReorderParams, ResumeParams, UpdateParams, WithdrawParams,
};
use openvaala_protocol::rpc::params::session::{InterruptParams, InterruptScope};
use openvaala_protocol::rpc::params::update::{
    ConversationUpdateParams, ForkParams, SessionUpdateParams,
};
use openvaala_protocol::rpc::{ErrorCode, Notice, method};
use openvaala_tests::checker::{When, check};
use openvaala_tests::dice::Dice;
use openvaala_tests::fake_model::{Answer, FakeModel, Gate};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::support::conversations_on_disk;

/// How many times the server is killed.
const KILLS: u64 = 20;

fn update(conversation_id: ConversationId) -> ConversationUpdateParams {
    ConversationUpdateParams {
        conversation_id,
        title: None,
        archived: None,
        executors: None,
    }
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ErrorCode {
    match result {
        Err(ClientError::Rpc(error)) => error.kind().expect("a known code"),
        other => panic!("it is not refused: {other:?}"),
    }
}

/// Waits until a client is told a state of the root session that is like that.
async fn session_told(watcher: &mut Watcher, is_it: impl Fn(&Session) -> bool) {
    loop {
        if let Some(Notice::ConversationEntry(told)) = watcher.next().await
            && let Entry::Session { session, .. } = told.entry
            && is_it(&session)
        {
            return;
        }
    }
}

async fn conversation_told(watcher: &mut Watcher, is_it: impl Fn(&Conversation) -> bool) {
    loop {
        if let Some(Notice::ConversationEntry(told)) = watcher.next().await
            && let Entry::Conversation { conversation, .. } = told.entry
            && is_it(&conversation)
        {
            return;
        }
    }
}

fn pending_ids(session: &Session) -> Vec<ItemId> {
    session.pending.iter().map(|input| input.item_id).collect()
}

#[tokio::test]
async fn two_clients_see_each_others_changes() {
    let gate = Gate::new();
    let behind = gate.clone();
    let mut model = FakeModel::start(move |asked| match asked.last_user().as_str() {
        "wait" => Answer::stream().say("I ").wait(&behind).say("waited").end(),
        said => Answer::text(&format!("heard: {said}")),
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut one = Watcher::connect(&server.discovery).await;
    let conversation_id = one.create(&sandbox.project()).await;
    let session_id = None;
    let running = one.send(conversation_id, "wait").await.unwrap();
    let mut two = Watcher::connect(&server.discovery).await;
    two.subscribe(conversation_id, None).await;
    let first = one.send(conversation_id, "first").await.unwrap();
    let second = one.send(conversation_id, "second").await.unwrap();

    let item_ids = vec![second, first];
    let params = ReorderParams {
        conversation_id,
        session_id,
        item_ids: item_ids.clone(),
    };
    two.client
        .call::<method::SessionPendingReorder>(params)
        .await
        .unwrap();
    session_told(&mut one, |session| pending_ids(session) == item_ids).await;
    let params = UpdateParams {
        conversation_id,
        session_id,
        item_id: first,
        content: Some(vec![Content::text("the very first")]),
        steer: None,
    };
    one.client
        .call::<method::SessionPendingUpdate>(params.clone())
        .await
        .unwrap();
    let edited = |session: &Session| {
        let mut previews = session.pending.iter().map(|input| input.preview.as_str());
        previews.any(|preview| preview == "the very first")
    };
    session_told(&mut two, edited).await;
    let params = UpdateParams {
        item_id: running,
        ..params
    };
    let taken = two
        .client
        .call::<method::SessionPendingUpdate>(params)
        .await;
    assert_eq!(code(taken), ErrorCode::InputTaken);
    let withdraw = |item_ids| WithdrawParams {
        conversation_id,
        session_id,
        item_ids,
    };
    let gone = withdraw(vec![second]);
    two.client
        .call::<method::SessionPendingWithdraw>(gone.clone())
        .await
        .unwrap();
    session_told(&mut one, |session| pending_ids(session) == [first]).await;
    let again = one
        .client
        .call::<method::SessionPendingWithdraw>(gone)
        .await;
    assert_eq!(code(again), ErrorCode::InputNotFound);
    let params = ReorderParams {
        conversation_id,
        session_id,
        item_ids,
    };
    let stale = one
        .client
        .call::<method::SessionPendingReorder>(params)
        .await;
    assert_eq!(code(stale), ErrorCode::QueueChanged);
    let params = ListParams {
        conversation_id,
        session_id,
    };
    let listed = one
        .client
        .call::<method::SessionPendingList>(params)
        .await
        .unwrap();
    let texts: Vec<String> = listed
        .inputs
        .iter()
        .map(|it| joined_text(&it.content))
        .collect();
    assert_eq!(
        (texts, listed.held),
        (vec!["the very first".to_owned()], false)
    );

    let title = Some("what we do".to_owned());
    let params = ConversationUpdateParams {
        title: title.clone(),
        ..update(conversation_id)
    };
    one.client
        .call::<method::ConversationUpdate>(params)
        .await
        .unwrap();
    conversation_told(&mut two, |it| it.title == title).await;
    let to = ModelRef {
        provider: "fake".to_owned(),
        model: "fake-2".to_owned(),
        effort: None,
    };
    let params = SessionUpdateParams {
        conversation_id,
        session_id,
        model: Some(to.clone()),
        effort: None,
        agent: None,
    };
    two.client
        .call::<method::SessionUpdate>(params.clone())
        .await
        .unwrap();
    session_told(&mut one, |session| session.model == to).await;
    let params = SessionUpdateParams {
        agent: Some("nobody".to_owned()),
        ..params
    };
    let unknown = two.client.call::<method::SessionUpdate>(params).await;
    assert_eq!(code(unknown), ErrorCode::InvalidParams);

    let interrupt = InterruptParams {
        conversation_id,
        session_id,
        scope: InterruptScope::Turn,
    };
    two.client
        .call::<method::SessionInterrupt>(interrupt)
        .await
        .unwrap();
    session_told(&mut one, |session| session.held).await;
    let params = ResumeParams {
        conversation_id,
        session_id,
    };
    let resumed = two
        .client
        .call::<method::SessionResume>(params)
        .await
        .unwrap();
    assert!(resumed.resumed);
    let turn = loop {
        let turn = one.turn_end(conversation_id).await;
        if turn.inputs == [first] {
            break turn;
        }
    };
    assert_eq!((turn.status, turn.model), (TurnStatus::Completed, to));
    assert_eq!(
        one.last_answer(conversation_id).await,
        "heard: the very first"
    );
    gate.open();
    model.expect_sound_requests();
}

#[test]
fn conversations_are_renamed_archived_forked_and_moved_from_the_command_line() {
    let model = FakeModel::start(|asked| {
        Answer::text(&format!(
            "{} says {}",
            asked.body["model"].as_str().unwrap_or_default(),
            asked.last_user()
        ))
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let _ = sandbox.run(&["exec", "hello"]).expect_code(0);
    let [source] = conversations_on_disk(&sandbox).try_into().unwrap();
    let id = source.to_string();
    let said = sandbox.run(&["rename", &id, "a plan"]).expect_code(0);
    assert_eq!(said.stdout, format!("renamed {id} to a plan\n"));
    let fork = sandbox.run(&["fork", &id]).expect_code(0).stdout;
    let fork = fork.trim_end();
    let _ = sandbox.run(&["archive", &id]).expect_code(0);
    let ids = |arguments: &[&str]| -> Vec<String> {
        let listed = sandbox.run(arguments).expect_code(0).stdout;
        let lines = listed.lines().skip(1);
        lines.map(|line| line[..36].to_owned()).collect()
    };
    assert_eq!(ids(&["list"]), [fork]);
    assert_eq!(ids(&["list", "--archived"]), [id.as_str()]);
    // An archived one is still found by the beginning of its id.
    let _ = sandbox.run(&["unarchive", &id[..35]]).expect_code(0);
    assert_eq!(ids(&["list"]).len(), 2);

    let elsewhere = sandbox.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let elsewhere = elsewhere.to_str().unwrap();
    let set = ["set", fork, "--model", "fake/fake-2", "--cwd", elsewhere];
    let _ = sandbox.run(&set).expect_code(0);
    let said = sandbox
        .run(&["exec", "--resume", fork, "again"])
        .expect_code(0);
    assert_eq!(said.stdout.trim_end(), "fake-2 says again");
    let _ = sandbox
        .run(&["set", fork, "--model", "nobody/x"])
        .expect_code(1)
        .expect_stderr(&["nobody", "fake"]);
    let _ = sandbox
        .run(&["fork", fork, "--at", fork])
        .expect_code(1)
        .expect_stderr(&["has no item"]);
    let _ = sandbox.run(&["set", fork]).expect_code(2);
}

/// One conversation, and what its client knows of it.
struct Run {
    server: Server,
    watcher: Watcher,
    conversation: ConversationId,
    /// Inputs that may still wait.
    waiting: Vec<ItemId>,
    /// The last title that was acknowledged, and those that were asked for since.
    titles: Vec<Option<String>>,
    archived: Vec<bool>,
    models: Vec<String>,
    forks: BTreeSet<ConversationId>,
}

impl Run {
    async fn step(&mut self, n: u64, dice: &mut Dice) -> Result<(), ClientError> {
        let conversation_id = self.conversation;
        match dice.below(9) {
            0..3 => {
                let sent = self
                    .watcher
                    .send(conversation_id, &format!("task {n}"))
                    .await?;
                self.waiting.push(sent);
            }
            3 => self.withdraw(dice).await?,
            4 => self.reorder().await?,
            5 => {
                let title = Some(format!("title {n}"));
                self.titles.push(title.clone());
                let archived = dice.below(2) == 0;
                self.archived.push(archived);
                let params = ConversationUpdateParams {
                    title,
                    archived: Some(archived),
                    ..update(conversation_id)
                };
                let client = &self.watcher.client;
                client.call::<method::ConversationUpdate>(params).await?;
                self.titles.drain(..self.titles.len() - 1);
                self.archived.drain(..self.archived.len() - 1);
            }
            6 => {
                let model = format!("fake-{n}");
                self.models.push(model.clone());
                let params = SessionUpdateParams {
                    conversation_id,
                    session_id: None,
                    model: Some(ModelRef {
                        provider: "fake".to_owned(),
                        model,
                        effort: None,
                    }),
                    effort: None,
                    agent: None,
                };
                self.watcher
                    .client
                    .call::<method::SessionUpdate>(params)
                    .await?;
                self.models.drain(..self.models.len() - 1);
            }
            7 => {
                let params = ForkParams {
                    conversation_id,
                    session_id: None,
                    item_id: None,
                    new_id: None,
                };
                let forked = self
                    .watcher
                    .client
                    .call::<method::ConversationFork>(params)
                    .await;
                match forked {
                    Ok(forked) => drop(self.forks.insert(forked.conversation.id)),
                    // No turn has ended yet.
                    refused @ Err(ClientError::Rpc(_)) => {
                        assert_eq!(code(refused), ErrorCode::InvalidParams);
                    }
                    Err(error) => return Err(error),
                }
            }
            _ => {
                let params = InterruptParams {
                    conversation_id,
                    session_id: None,
                    scope: InterruptScope::Turn,
                };
                self.watcher
                    .client
                    .call::<method::SessionInterrupt>(params)
                    .await?;
                let params = ResumeParams {
                    conversation_id,
                    session_id: None,
                };
                self.watcher
                    .client
                    .call::<method::SessionResume>(params)
                    .await?;
            }
        }
        Ok(())
    }

    async fn withdraw(&mut self, dice: &mut Dice) -> Result<(), ClientError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let at = usize::try_from(dice.below(self.waiting.len() as u64)).unwrap();
        let (conversation_id, input) = (self.conversation, self.waiting.swap_remove(at));
        self.watcher.journal.withdraw(conversation_id, input);
        let params = WithdrawParams {
            conversation_id,
            session_id: None,
            item_ids: vec![input],
        };
        let client = &self.watcher.client;
        match client.call::<method::SessionPendingWithdraw>(params).await {
            Ok(_) => self.watcher.journal.withdrawn(conversation_id, input),
            refused @ Err(ClientError::Rpc(_)) => {
                assert_eq!(code(refused), ErrorCode::InputTaken);
                self.watcher.journal.accept(conversation_id, input);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn reorder(&self) -> Result<(), ClientError> {
        let conversation_id = self.conversation;
        let params = ListParams {
            conversation_id,
            session_id: None,
        };
        let listed = self
            .watcher
            .client
            .call::<method::SessionPendingList>(params)
            .await?;
        let ids = listed.inputs.iter().rev().map(|input| input.item_id);
        let params = ReorderParams {
            conversation_id,
            session_id: None,
            item_ids: ids.collect(),
        };
        let reordered = self
            .watcher
            .client
            .call::<method::SessionPendingReorder>(params)
            .await;
        if let Err(ClientError::Rpc(_)) = &reordered {
            assert_eq!(code(reordered), ErrorCode::QueueChanged);
            return Ok(());
        }
        reordered.map(drop)
    }

    async fn restart(&mut self, sandbox: &Sandbox) {
        let journal = std::mem::take(&mut self.watcher.journal);
        let cursor = self.watcher.cursors.remove(&self.conversation);
        self.server = sandbox.serve();
        self.watcher = Watcher::with_journal(&self.server.discovery, journal).await;
        self.watcher.subscribe(self.conversation, cursor).await;
    }

    /// What was acknowledged is so, or what was asked for after it; each fork is whole.
    async fn expect_kept(&mut self, sandbox: &Sandbox) {
        let state = self.watcher.get(self.conversation).await.unwrap();
        let title = state.conversation.title;
        assert!(
            self.titles.contains(&title),
            "{title:?} of {:?}",
            self.titles
        );
        self.titles = vec![title];
        let archived = state.conversation.archived;
        assert!(self.archived.contains(&archived), "{:?}", self.archived);
        self.archived = vec![archived];
        let model = state.sessions[0].model.model.clone();
        assert!(self.models.contains(&model), "{model} of {:?}", self.models);
        self.models = vec![model];

        let items = self.watcher.items(self.conversation).await;
        let on_disk: BTreeSet<ConversationId> =
            conversations_on_disk(sandbox).into_iter().collect();
        assert!(self.forks.is_subset(&on_disk), "a fork is lost");
        for fork in on_disk.into_iter().filter(|id| *id != self.conversation) {
            let state = self.watcher.get(fork).await.unwrap();
            let origin = state.conversation.forked_from.expect("it is a fork");
            let last = items.iter().find(|item| item.head().id == origin.item_id);
            let last = last.expect("the origin is there").head().pos;
            let before = items.iter().filter(|item| item.head().pos <= last);
            let copied = self.watcher.items(fork).await;
            assert_eq!(
                copied,
                before.cloned().collect::<Vec<_>>(),
                "a fork is whole"
            );
        }
        assert!(
            !sandbox.data().join("forks").exists(),
            "no half fork is left"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_while_it_is_steered_loses_and_doubles_nothing() {
    let mut model = FakeModel::start(|_| {
        Answer::stream()
            .say("so ")
            .pause(Duration::from_millis(15))
            .say("be it")
            .end()
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut dice = Dice::from_environment("steering");
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    watcher.ask(conversation, "begin").await;
    let mut run = Run {
        server,
        watcher,
        conversation,
        waiting: Vec::new(),
        titles: vec![Some("begin".to_owned())],
        archived: vec![false],
        models: vec!["fake-1".to_owned()],
        forks: BTreeSet::new(),
    };
    for kill in 0..KILLS {
        let micros = dice.below(300_000);
        println!("kill {kill} after {micros} µs");
        let steps = async {
            for n in 0..1_000 {
                if let Err(error) = run.step(kill * 1_000 + n, &mut dice).await {
                    panic!("the server refused or ended by itself: {error}");
                }
            }
        };
        // The fault itself is what waits here.
        let _ = tokio::time::timeout(Duration::from_micros(micros), steps).await;
        let pid = run.server.pid();
        crate::crash::kill(pid);
        while run.watcher.next().await.is_some() {}
        check(sandbox.data(), &run.watcher.journal, When::Crashed);
        run.restart(&sandbox).await;
        let turn = run.watcher.ask(conversation, &format!("ping {kill}")).await;
        assert_eq!(turn.status, TurnStatus::Completed, "kill {kill}: {turn:?}");
        run.expect_kept(&sandbox).await;
        run.waiting.clear();
        run.forks.clear();
    }
    let said = run.watcher.items(conversation).await;
    let said = said.iter().filter_map(Item::body::<UserMessage>).count();
    println!("{KILLS} kills, {said} inputs");
    model.expect_sound_requests();
    run.watcher.client.close().await;
    let stopped = tokio::task::spawn_blocking(|| run.server.terminate()).await;
    let _ = stopped.unwrap().expect_code(0);
    check(sandbox.data(), &run.watcher.journal, When::Settled);
}
