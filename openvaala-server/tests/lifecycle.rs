//! How a server starts, reloads and ends.

use std::fs;
use std::net::TcpListener;

use openvaala_protocol::client::ClientError;
use openvaala_protocol::rpc::method::{ProviderList, ServerReload, ServerStatus};
use openvaala_protocol::rpc::params::provider::ListParams;
use openvaala_protocol::rpc::params::server::{ReloadParams, StatusParams};
use openvaala_server::{Server, ServerError};
use pretty_assertions::assert_eq;
use tokio::time::timeout;

use crate::support::{LONG, Place, Running};

#[tokio::test]
async fn p_01_a_second_server_on_a_data_directory_says_who_has_it_and_the_first_goes_on() {
    let server = Running::start().await;
    let error = Server::start(server.place.options()).await.unwrap_err();
    let ServerError::DataDirInUse { pid, address, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        (*pid, address.clone()),
        (Some(std::process::id()), Some(server.address.to_string()))
    );
    let message = error.to_string();
    let data = fs::canonicalize(server.place.dir("data")).unwrap();
    let expected = format!(
        "{} is in use by process {} at {}: use that server, or stop it with `openvaala serve stop`",
        data.display(),
        std::process::id(),
        server.address
    );
    assert_eq!(message, expected);
    let (client, _notices) = server.client().await;
    client.call::<ServerStatus>(StatusParams {}).await.unwrap();
    // Once it has ended another one may begin.
    let place = server.stop().await;
    Running::start_in(place).await.stop().await;
}

#[tokio::test]
async fn p_11_a_taken_port_is_an_error_if_it_was_asked_for() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let place = Place::new();
    let mut options = place.options();
    options.listen = Some(address);
    let error = Server::start(options).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{address} is in use by another program: stop that, or listen somewhere else")
    );
    let mut options = place.options();
    options.listen = None;
    place.write("openvaala.yaml", &format!("listen: {address}\n"));
    let error = Server::start(options).await.unwrap_err();
    assert!(matches!(error, ServerError::AddressInUse { .. }), "{error}");
    assert!(!place.dir("state").join("runtime-server.yaml").exists());
}

#[tokio::test]
async fn p_11_without_a_wish_any_free_port_does() {
    // Whoever has the usual port, this test or another program: it is taken.
    let _taken = TcpListener::bind("127.0.0.1:8790");
    let place = Place::new();
    let mut options = place.options();
    options.listen = None;
    let server = Running::start_with(place, options).await.unwrap();
    assert!(server.address.ip().is_loopback());
    assert_ne!(server.address.port(), 8790);
    server.stop().await;
}

#[tokio::test]
async fn s_02_the_address_for_this_machine_is_one_of_this_machine() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8790"] {
        let place = Place::new();
        let mut options = place.options();
        options.listen = Some(address.parse().unwrap());
        let error = Server::start(options).await.unwrap_err();
        assert!(
            matches!(error, ServerError::NotLoopback { .. }),
            "{address}: {error}"
        );
    }
}

#[tokio::test]
async fn p_25_a_reload_with_a_broken_file_changes_nothing_and_says_where_it_is_broken() {
    let place = Place::new();
    place.write("openvaala.yaml", "idle_exit_seconds: 60\n");
    let server = Running::start_in(place).await;
    let (client, _notices) = server.client().await;
    server.place.write(
        "providers/acme.yaml",
        "type: openai_chat\nbase_url: ftp://x\n",
    );
    let error = client
        .call::<ServerReload>(ReloadParams {})
        .await
        .unwrap_err();
    let ClientError::Rpc(error) = error else {
        panic!("{error}")
    };
    assert_eq!(error.code, -32000);
    assert!(
        error.message.contains("providers/acme.yaml:2:11: base_url"),
        "{}",
        error.message
    );
    let begin = "the configuration before stays in force: the configuration has an error";
    assert!(error.message.starts_with(begin), "{}", error.message);
    let list = client.call::<ProviderList>(ListParams {}).await.unwrap();
    assert_eq!(list.providers.len(), 1);

    let text = "type: openai_chat\nbase_url: http://127.0.0.1:1/v1\ndefault_model: m\n";
    server.place.write("providers/acme.yaml", text);
    server
        .place
        .write("openvaala.yaml", "listen: 127.0.0.1:1\n");
    let result = client.call::<ServerReload>(ReloadParams {}).await.unwrap();
    assert_eq!(result.default_model.provider, "acme");
    let expected = format!(
        "listen: 127.0.0.1:1 (the server listens at {})",
        server.address
    );
    assert_eq!(result.after_restart, [expected]);
    // Who connects from now on is told so.
    let (client, _notices) = server.client().await;
    assert_eq!(client.initialized().default_model.model, "m");
    assert_eq!(client.initialized().notice, None);
    server.stop().await;
}

#[tokio::test]
async fn a_missing_key_variable_is_shown_as_trouble_and_not_as_a_broken_file() {
    let place = Place::new();
    let text = "type: openai_chat\nbase_url: http://127.0.0.1:1/v1\napi_key_env: ACME_LOGIN\ndefault_model: m\n";
    place.write("providers/acme.yaml", text);
    let server = Running::start_in(place).await;
    let (client, _notices) = server.client().await;
    let status = client.call::<ServerStatus>(StatusParams {}).await.unwrap();
    assert_eq!(status.degraded.len(), 1);
    assert!(
        status.degraded[0].contains("acme.yaml:3:1: api_key_env"),
        "{:?}",
        status.degraded
    );
    assert!(
        status.degraded[0].contains("ACME_LOGIN"),
        "{:?}",
        status.degraded
    );
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_a_client_started_ends_when_it_has_nothing_to_do() {
    let place = Place::new();
    place.write("openvaala.yaml", "idle_exit_seconds: 1\n");
    let mut options = place.options();
    options.started_by_client = true;
    let server = Running::start_with(place, options).await.unwrap();
    let (client, _notices) = server.client().await;
    client.call::<ServerStatus>(StatusParams {}).await.unwrap();
    client.close().await;
    timeout(LONG, server.task).await.unwrap().unwrap();
    let state = server.place.dir("state");
    assert!(state.exists() && !state.join("runtime-server.yaml").exists());
}

#[tokio::test]
async fn status_tells_what_the_server_is() {
    let server = Running::start().await;
    let (client, _notices) = server.client().await;
    let status = client.call::<ServerStatus>(StatusParams {}).await.unwrap();
    let data = fs::canonicalize(server.place.dir("data")).unwrap();
    assert_eq!(
        (
            status.pid,
            status.address,
            status.data_dir,
            status.clients,
            status.degraded
        ),
        (
            std::process::id(),
            server.address.to_string(),
            data.display().to_string(),
            1,
            Vec::new()
        )
    );
    server.stop().await;
}

#[tokio::test]
async fn a_broken_configuration_keeps_the_server_from_starting_and_leaves_nothing_behind() {
    let place = Place::new();
    place.write("openvaala.yaml", "listen: [\n");
    let error = Server::start(place.options()).await.unwrap_err();
    assert!(matches!(error, ServerError::Config(_)), "{error}");
    assert!(!place.dir("data").exists() && !place.dir("state").exists());
}
