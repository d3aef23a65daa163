//! JSON-RPC 2.0 messages, parsed and written without touching what they carry.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::error::{ErrorCode, RpcError};

/// The id of a request: a number or a text, chosen by who asks.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// A request: has an id and wants a response.
#[derive(Clone, Debug)]
pub struct Request {
    /// The id that the response will have.
    pub id: RequestId,
    /// The method's name.
    pub method: String,
    /// The parameters as they came; `None` means none.
    pub params: Option<Box<RawValue>>,
}

/// A notification: has no id and gets no response.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The notification's name.
    pub method: String,
    /// The parameters as they came.
    pub params: Option<Box<RawValue>>,
}

/// A response to the request with the same id.
#[derive(Clone, Debug)]
pub struct Response {
    /// The id of the request; `None` where it could not be read.
    pub id: Option<RequestId>,
    /// What came of it.
    pub result: Result<Box<RawValue>, RpcError>,
}

/// A message as the other side sent it.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// It wants a response.
    Request(Request),
    /// It wants none.
    Notification(Notification),
    /// It answers one of our requests.
    Response(Response),
}

/// The fields that any message may have.
#[derive(Deserialize)]
struct Parts {
    jsonrpc: Option<String>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Option<RequestId>>,
    method: Option<String>,
    params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
}

/// Tells a field that is `null` (an id of an error response, a result) from no field at all.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// How deep the parameters of a request may be nested; what others parse recursively is bounded with it.
const MAX_DEPTH: usize = 127;

/// How deep arrays and objects stand within each other in a text that is known to be JSON.
fn deepest(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_text, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

impl Incoming {
    /// Reads one message.
    ///
    /// # Errors
    /// `parse_error` if the text is no JSON or the parameters of a request are nested too deep, `invalid_request` if it is no JSON-RPC 2.0 message. The id to
    /// answer to comes with it where one could be read.
    pub fn parse(text: &str) -> Result<Self, Box<Response>> {
        Self::parse_within(text, MAX_DEPTH)
    }

    /// As [`Self::parse`], with parameters that are nested at most `depth` levels deep, if that is less than 127.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_within(text: &str, depth: usize) -> Result<Self, Box<Response>> {
        let most = depth.min(MAX_DEPTH);
        let refuse = |id, code, message: String| {
            Box::new(Response {
                id,
                result: Err(RpcError::new(code, message)),
            })
        };
        if text.trim_start().starts_with('[') {
            let message = "batches are not taken: send one message at a time".to_owned();
            return Err(refuse(None, ErrorCode::InvalidRequest, message));
        }
        let parts: Parts = serde_json::from_str(text).map_err(|error| {
            let code = if error.is_data() {
                ErrorCode::InvalidRequest
            } else {
                ErrorCode::Parse
            };
            refuse(None, code, error.to_string())
        })?;
        let id = parts.id.clone().flatten();
        let wrong =
            |message: &str| refuse(id.clone(), ErrorCode::InvalidRequest, message.to_owned());
        if parts.jsonrpc.as_deref() != Some("2.0") {
            return Err(wrong("the field \"jsonrpc\" must be \"2.0\""));
        }
        match (parts.method, parts.id, parts.result, parts.error) {
            (Some(_), Some(Some(_)), None, None)
                if parts
                    .params
                    .as_deref()
                    .is_some_and(|params| deepest(params.get()) > most) =>
            {
                let message = format!("the parameters are nested deeper than {most} levels");
                Err(refuse(id, ErrorCode::Parse, message))
            }
            (Some(method), Some(Some(id)), None, None) => Ok(Self::Request(Request {
                id,
                method,
                params: parts.params,
            })),
            (Some(method), None, None, None) => Ok(Self::Notification(Notification {
                method,
                params: parts.params,
            })),
            (None, Some(id), Some(result), None) => Ok(Self::Response(Response {
                id,
                result: Ok(result),
            })),
            (None, Some(id), None, Some(error)) => Ok(Self::Response(Response {
                id,
                result: Err(error),
            })),
            (Some(_), Some(None), ..) => {
                Err(wrong("the id of a request must be a number or a text"))
            }
            _ => Err(wrong(
                "a message has a method, or a result, or an error, and only one of them",
            )),
        }
    }
}

/// A message as this side sends it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outgoing<'a> {
    /// Asks for a response.
    Request {
        /// Always `2.0`.
        jsonrpc: Version,
        /// The id that the response will have.
        id: &'a RequestId,
        /// The method's name.
        method: &'a str,
        /// The parameters.
        params: &'a RawValue,
    },
    /// Tells something.
    Notification {
        /// Always `2.0`.
        jsonrpc: Version,
        /// The notification's name.
        method: &'a str,
        /// The parameters.
        params: &'a RawValue,
    },
    /// Answers well.
    Result {
        /// Always `2.0`.
        jsonrpc: Version,
        /// The id of the request.
        id: &'a RequestId,
        /// What came of it.
        result: &'a RawValue,
    },
    /// Answers with an error.
    Error {
        /// Always `2.0`.
        jsonrpc: Version,
        /// The id of the request, if it could be read.
        id: Option<&'a RequestId>,
        /// What went wrong.
        error: &'a RpcError,
    },
}

/// The text `2.0`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Version;

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("2.0")
    }
}

impl Request {
    /// The message as JSON text.
    ///
    /// # Errors
    /// Fails only if the text cannot be allocated as JSON.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let none = to_raw_value(&serde_json::Map::new())?;
        let params = self.params.as_deref().unwrap_or(&none);
        let (id, method) = (&self.id, self.method.as_str());
        serde_json::to_string(&Outgoing::Request {
            jsonrpc: Version,
            id,
            method,
            params,
        })
    }
}

impl Notification {
    /// The message as JSON text.
    ///
    /// # Errors
    /// Fails only if the text cannot be allocated as JSON.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let none = to_raw_value(&serde_json::Map::new())?;
        let params = self.params.as_deref().unwrap_or(&none);
        let method = self.method.as_str();
        serde_json::to_string(&Outgoing::Notification {
            jsonrpc: Version,
            method,
            params,
        })
    }
}

impl Response {
    /// The message as JSON text.
    ///
    /// # Errors
    /// Fails if an error response has no id and yet a result, which is no valid message.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        match (&self.id, &self.result) {
            (Some(id), Ok(result)) => serde_json::to_string(&Outgoing::Result {
                jsonrpc: Version,
                id,
                result,
            }),
            (None, Ok(_)) => {
                let error = RpcError::new(ErrorCode::InvalidRequest, "a result without an id");
                serde_json::to_string(&Outgoing::Error {
                    jsonrpc: Version,
                    id: None,
                    error: &error,
                })
            }
            (id, Err(error)) => {
                let id = id.as_ref();
                serde_json::to_string(&Outgoing::Error {
                    jsonrpc: Version,
                    id,
                    error,
                })
            }
        }
    }
}
