//! Ids, times and token counts.

use openvaala_protocol::id::{ConversationId, ExecutorId, SessionId};
use openvaala_protocol::time::Timestamp;
use openvaala_protocol::usage::Usage;
use pretty_assertions::assert_eq;
use proptest::prelude::*;

const ID: &str = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";

/// Texts that would be another path, another spelling, or no id at all.
const WRONG_IDS: &[&str] = &[
    "",
    ".",
    "..",
    "../0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d",
    "../../etc/passwd",
    "/etc/passwd",
    "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d/..",
    "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d\0",
    "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d ",
    " 0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d",
    "0192D3F5-8C1E-7A5B-9C2D-3E4F5A6B7C8D",
    "0192d3f58c1e7a5b9c2d3e4f5a6b7c8d",
    "{0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d}",
    "urn:uuid:0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d",
    "0192d3f5_8c1e_7a5b_9c2d_3e4f5a6b7c8d",
    "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8",
    "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8g",
    "０192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c",
];

#[test]
fn s_41_ids_with_traversal_or_another_spelling_are_refused() {
    for wrong in WRONG_IDS {
        assert!(wrong.parse::<ConversationId>().is_err(), "{wrong:?}");
        let json = serde_json::to_string(wrong).unwrap();
        assert!(
            serde_json::from_str::<SessionId>(&json).is_err(),
            "{wrong:?}"
        );
    }
    for wrong in ["", "..", "a/b", "a b", "a.b", "ö", "a\0", &"x".repeat(65)] {
        assert!(wrong.parse::<ExecutorId>().is_err(), "{wrong:?}");
    }
}

#[test]
fn a_refused_id_is_told_with_what_a_right_one_looks_like() {
    let error = "../../etc/passwd".parse::<ConversationId>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"../../etc/passwd\" is no conversation id: \
         expected a lower-case UUID such as 0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d"
    );
    let long = "x".repeat(10_000).parse::<ExecutorId>().unwrap_err();
    assert_eq!(long.value.len(), 80);
}

#[test]
fn m_40_what_a_provider_did_not_say_stays_unknown_and_is_never_zero() {
    let mut one = Usage::default();
    one.input_tokens = Some(10);
    let mut two = Usage::default();
    two.input_tokens = Some(5);
    two.output_tokens = Some(7);
    let mut sum = Usage::default();
    sum.input_tokens = Some(15);
    sum.output_tokens = Some(7);
    assert_eq!(one.plus(two), sum);
    assert_eq!(Usage::default().plus(Usage::default()), Usage::default());
    assert_eq!(
        serde_json::to_string(&one).unwrap(),
        r#"{"input_tokens":10,"cached_input_tokens":null,"output_tokens":null,"reasoning_tokens":null}"#
    );
    assert_eq!(
        serde_json::from_str::<Usage>(r#"{"input_tokens":10}"#).unwrap(),
        one
    );
}

#[test]
fn m_40_a_negative_count_is_refused_and_a_sum_never_overflows() {
    assert!(serde_json::from_str::<Usage>(r#"{"output_tokens":-1}"#).is_err());
    let mut most = Usage::default();
    most.output_tokens = Some(u64::MAX);
    assert_eq!(most.plus(most), most);
}

#[test]
fn times_of_other_zones_and_precisions_are_read_and_written_in_one_form() {
    for (text, written) in [
        ("2026-12-02T04:22:41Z", "2026-12-02T04:22:41.000Z"),
        (
            "2026-12-02T05:22:41.123999+01:00",
            "2026-12-02T04:22:41.123Z",
        ),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
    ] {
        assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), written);
    }
    for wrong in [
        "",
        "now",
        "2026-12-02",
        "2026-13-02T04:22:41Z",
        "2026-12-02T04:22:41",
        "1733113361",
    ] {
        assert!(wrong.parse::<Timestamp>().is_err(), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn a_time_comes_back_as_the_same_millisecond(millis in any::<i64>()) {
        let time = Timestamp::from_millis(millis);
        prop_assert_eq!(time.to_string().parse::<Timestamp>(), Ok(time));
        let json = serde_json::to_string(&time).unwrap();
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time);
    }

    #[test]
    fn the_text_of_times_sorts_as_the_times_do(a in -62_135_596_800_000..253_402_207_200_000_i64, b in -62_135_596_800_000..253_402_207_200_000_i64) {
        let (a, b) = (Timestamp::from_millis(a), Timestamp::from_millis(b));
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
    }

    #[test]
    fn s_41_an_id_has_exactly_one_spelling(bytes: [u8; 16]) {
        let id = ConversationId::from_uuid(uuid::Uuid::from_bytes(bytes));
        prop_assert_eq!(id.to_string().parse::<ConversationId>(), Ok(id));
        let upper = id.to_string().to_uppercase();
        prop_assert_eq!(upper.parse::<ConversationId>().is_ok(), upper == id.to_string());
    }

    #[test]
    fn s_41_only_the_36_characters_of_an_id_are_an_id(text in "[0-9a-f./-]{34,38}") {
        if let Ok(id) = text.parse::<ConversationId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn adding_usage_does_not_hang_on_the_order(a: Option<u64>, b: Option<u64>, c: Option<u64>) {
        let usage = |count| { let mut usage = Usage::default(); usage.input_tokens = count; usage };
        let (a, b, c) = (usage(a), usage(b), usage(c));
        prop_assert_eq!(a.plus(b).plus(c), a.plus(c.plus(b)));
    }
}

#[test]
fn an_id_is_shown_with_its_type_in_debug_text() {
    let id: ConversationId = ID.parse().unwrap();
    assert_eq!(
        (format!("{id:?}"), id.to_string()),
        (format!("ConversationId({ID})"), ID.to_owned())
    );
}
