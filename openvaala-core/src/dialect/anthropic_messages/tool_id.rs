//! Ids of tool calls as this API takes them.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// The id itself if the API takes it (`[a-zA-Z0-9_-]+`), or else always the same other one for the same id.
///
/// Other providers use ids with dots, bars and colons, and a conversation may move from one to another.
pub(super) fn tool_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let readable = id.chars().map(|c| if fits(c) { c } else { '_' });
    let mut mapped: String = readable.chain(['-']).collect();
    // Ids that read the same once they are mapped stay apart.
    for byte in Sha256::digest(id.as_bytes()).iter().take(4) {
        mapped.push_str(&format!("{byte:02x}"));
    }
    Cow::Owned(mapped)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::tool_id;

    #[test]
    fn an_id_that_fits_stays() {
        assert!(matches!(tool_id("toolu_01-A"), Cow::Borrowed("toolu_01-A")));
    }

    #[test]
    fn an_id_that_does_not_fit_is_replaced_always_in_the_same_way() {
        assert_eq!(tool_id("call.1"), "call_1-e8b7b7b3");
        assert_eq!(tool_id(""), "-e3b0c442");
    }

    proptest! {
        #[test]
        fn every_id_fits_and_different_ones_stay_different(a in ".{0,12}", b in "[.:|_]{0,4}", c in "[.:|_]{0,4}") {
            for id in [&a, &b, &c] {
                let mapped = tool_id(id);
                let fits = !mapped.is_empty()
                    && mapped.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
                prop_assert!(fits, "{mapped}");
            }
            prop_assert_eq!(b == c, tool_id(&b) == tool_id(&c));
        }
    }
}
