//! How clients find a server.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use openvaala_protocol::PROTOCOL_VERSION;
use openvaala_server::discovery::{DiscoveryError, find};
use pretty_assertions::assert_eq;

use crate::support::{Place, Running};

#[tokio::test]
async fn p_09_the_discovery_file_is_private_true_and_gone_after_a_clean_end() {
    let server = Running::start().await;
    let (state, data) = (server.place.dir("state"), server.place.dir("data"));
    let path = state.join("runtime-server.yaml");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(&state).unwrap().mode() & 0o7777, 0o700);
    let found = find(&state, &data).unwrap().unwrap();
    assert_eq!(
        (found.pid, found.address, found.token.to_hex()),
        (std::process::id(), server.address, server.token.to_hex())
    );
    assert_eq!(
        (found.data_dir, found.protocol_version.as_str(), found.path),
        (
            fs::canonicalize(&data).unwrap(),
            PROTOCOL_VERSION,
            path.clone()
        )
    );
    let names: Vec<_> = fs::read_dir(&state)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["runtime-server.yaml"]);
    let _place = server.stop().await;
    assert!(state.exists() && !path.exists());
}

#[tokio::test]
async fn p_06_another_data_directory_has_a_file_of_its_own_under_any_of_its_names() {
    let place = Place::new();
    let mut options = place.options();
    options.is_default_data_dir = false;
    let server = Running::start_with(place, options).await.unwrap();
    let (state, data) = (server.place.dir("state"), server.place.dir("data"));
    let link = server.place.dir("link");
    symlink(&data, &link).unwrap();
    let found = find(&state, &link).unwrap().unwrap();
    assert_eq!(found.address, server.address);
    let name = found.path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(
        name.starts_with("runtime-server-") && name.len() == "runtime-server-.yaml".len() + 16,
        "{name}"
    );
    fs::create_dir(server.place.dir("other")).unwrap();
    assert!(find(&state, &server.place.dir("other")).unwrap().is_none());
    assert!(
        find(&state, &server.place.dir("missing"))
            .unwrap()
            .is_none()
    );
    server.stop().await;
}

#[tokio::test]
async fn s_15_a_file_or_directory_that_others_could_have_written_is_not_trusted() {
    let server = Running::start().await;
    let (state, data) = (server.place.dir("state"), server.place.dir("data"));
    let path = state.join("runtime-server.yaml");
    let set_mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for mode in [0o640, 0o604, 0o620] {
        set_mode(&path, mode);
        let error = find(&state, &data).unwrap_err();
        assert!(
            matches!(error, DiscoveryError::Untrusted { .. }),
            "{mode:o}: {error}"
        );
    }
    set_mode(&path, 0o600);
    set_mode(&state, 0o777);
    let error = find(&state, &data).unwrap_err();
    assert!(matches!(error, DiscoveryError::Untrusted { .. }), "{error}");
    set_mode(&state, 0o700);
    assert!(find(&state, &data).unwrap().is_some());

    let target = server.place.dir("target");
    fs::rename(&path, &target).unwrap();
    symlink(&target, &path).unwrap();
    assert!(matches!(
        find(&state, &data).unwrap_err(),
        DiscoveryError::Untrusted { .. }
    ));
    fs::remove_file(&path).unwrap();
    fs::hard_link(&target, &path).unwrap();
    assert!(matches!(
        find(&state, &data).unwrap_err(),
        DiscoveryError::Untrusted { .. }
    ));
    fs::remove_file(&path).unwrap();

    fs::write(&path, format!("token: {}\n", server.token.to_hex())).unwrap();
    set_mode(&path, 0o600);
    let error = find(&state, &data).unwrap_err();
    assert!(matches!(error, DiscoveryError::Damaged { .. }), "{error}");
    assert!(!error.to_string().contains(&server.token.to_hex()));
    let _place = server.stop().await;
    assert!(path.exists(), "a file that is not the server's own stays");
}

#[tokio::test]
async fn s_15_a_link_at_the_place_of_the_file_is_replaced_and_its_target_untouched() {
    let place = Place::new();
    let target = place.dir("target");
    fs::write(&target, "mine").unwrap();
    fs::create_dir(place.dir("state")).unwrap();
    fs::set_permissions(place.dir("state"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&target, place.dir("state").join("runtime-server.yaml")).unwrap();
    let server = Running::start_in(place).await;
    let (state, data) = (server.place.dir("state"), server.place.dir("data"));
    assert_eq!(
        find(&state, &data).unwrap().unwrap().address,
        server.address
    );
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    server.stop().await;
}

#[tokio::test]
async fn a_file_that_a_crash_of_the_machine_has_left_empty_is_no_server_and_is_replaced() {
    let server = Running::start().await;
    let (state, data) = (server.place.dir("state"), server.place.dir("data"));
    let path = state.join("runtime-server.yaml");
    let place = server.stop().await;
    for left in ["", "\0\0\0\0"] {
        fs::write(&path, left).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(find(&state, &data).unwrap().is_none());
    }
    let options = place.options();
    let server = Running::start_with(place, options).await.unwrap();
    assert_eq!(
        find(&state, &data).unwrap().unwrap().address,
        server.address
    );
    server.stop().await;
}
