//! What the requests of all dialects have in common.

use serde::Serialize;

use crate::model::{ModelError, ModelErrorKind};

/// What stands in the place of an image whose bytes are not there.
pub(super) const NO_IMAGE: &str = "[an image that is not available any more]";

/// The body of a request as JSON.
pub(super) fn encode(body: &impl Serialize) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec(body).map_err(|error| {
        let message = "the request cannot be written as JSON";
        ModelError::new(ModelErrorKind::BadRequest, message).with_source(error)
    })
}

/// An image as an address that has all of its bytes in it.
pub(super) fn data_url(media_type: &str, base64: &str) -> String {
    format!("data:{media_type};base64,{base64}")
}
