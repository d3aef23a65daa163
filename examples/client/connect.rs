//! Finds a running server, and sees that it is the right one.

use std::error::Error;
use std::fs;

use openvaala_protocol::client::{Client, ConnectOptions, Notices};
use openvaala_protocol::handshake::Token;
use openvaala_protocol::rpc::params::server::Peer;
use serde::Deserialize;

/// What a server writes down when it starts, readable by its user only.
#[derive(Deserialize)]
struct Discovery {
    address: String,
    token: String,
}

pub(crate) async fn connect(file: &str) -> Result<(Client, Notices), Box<dyn Error>> {
    let found: Discovery = serde_yaml::from_str(&fs::read_to_string(file)?)?;
    let (name, version) = ("example".to_owned(), "1".to_owned());
    // The token is never sent: both sides prove that they have it.
    let token: Token = found.token.parse()?;
    let options = ConnectOptions::new(found.address, token, Peer { name, version });
    Ok(Client::connect(options).await?)
}
