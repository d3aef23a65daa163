//! A request as the script sees it, and the check that it is sound.

use std::collections::BTreeSet;

use serde_json::Value;

/// A request for an answer.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The body of the request.
    pub body: Value,
}

/// The result of a tool call as it stands in a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ToolMessage {
    /// The id of the call.
    pub call_id: String,
    /// What the tool said.
    pub content: String,
}

impl Asked {
    /// The text of the last message of the user.
    #[must_use]
    pub fn last_user(&self) -> String {
        let messages = self.messages().iter().rev();
        let mut of_user = messages.filter(|message| message["role"] == "user");
        of_user
            .next()
            .map(|message| text(&message["content"]))
            .unwrap_or_default()
    }

    /// The results that have come since the last message of the user, in order.
    #[must_use]
    pub fn results(&self) -> Vec<ToolMessage> {
        let messages = self.messages();
        let user = messages
            .iter()
            .rposition(|message| message["role"] == "user");
        let recent = messages.iter().skip(user.map_or(0, |place| place + 1));
        recent
            .filter(|message| message["role"] == "tool")
            .map(|message| ToolMessage {
                call_id: message["tool_call_id"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                content: text(&message["content"]),
            })
            .collect()
    }

    /// How many answers of the model there have been since the last message of the user.
    #[must_use]
    pub fn step(&self) -> usize {
        let messages = self.messages().iter().rev();
        let recent = messages.take_while(|message| message["role"] != "user");
        recent
            .filter(|message| message["role"] == "assistant")
            .count()
    }

    fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Checks what every provider checks: roles in order, and each call answered once, at once.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.body["stream"] != true {
            return Err("the request does not ask for a stream".to_owned());
        }
        let mut open: BTreeSet<&str> = BTreeSet::new();
        for (index, message) in self.messages().iter().enumerate() {
            let place = format!("messages[{index}]");
            if message["role"] == "tool" {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                if !open.remove(id) {
                    return Err(format!("{place}: {id:?} answers no open call"));
                }
                continue;
            }
            if !open.is_empty() {
                return Err(format!(
                    "{place}: the calls {open:?} have no result before it"
                ));
            }
            match message["role"].as_str() {
                Some("system" | "developer" | "user") => {}
                Some("assistant") => {
                    let calls = message["tool_calls"]
                        .as_array()
                        .map_or(&[][..], Vec::as_slice);
                    for call in calls {
                        let id = call["id"].as_str().unwrap_or_default();
                        let arguments = call["function"]["arguments"].as_str();
                        let parsed = arguments.map(serde_json::from_str::<Value>);
                        if !parsed.is_some_and(|value| value.is_ok_and(|value| value.is_object())) {
                            return Err(format!("{place}: arguments that are no JSON object"));
                        }
                        if id.is_empty() || !open.insert(id) {
                            return Err(format!("{place}: the call id {id:?} is empty or double"));
                        }
                    }
                }
                role => return Err(format!("{place}: unknown role {role:?}")),
            }
        }
        if open.is_empty() {
            Ok(())
        } else {
            Err(format!("the calls {open:?} have no result"))
        }
    }
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn asked(messages: Value) -> Asked {
        Asked {
            body: json!({ "stream": true, "messages": messages }),
        }
    }

    fn call(id: &str) -> Value {
        json!({ "id": id, "type": "function", "function": { "name": "bash", "arguments": "{}" } })
    }

    #[test]
    fn calls_and_results_must_belong_together() {
        let user = json!({ "role": "user", "content": "hi" });
        let calls = json!({ "role": "assistant", "tool_calls": [call("a"), call("b")] });
        let result = |id| json!({ "role": "tool", "tool_call_id": id, "content": "done" });
        let check = |messages| asked(messages).check();
        assert_eq!(
            check(json!([user, calls, result("b"), result("a"), user])),
            Ok(())
        );
        for wrong in [
            json!([user, calls, result("a")]),
            json!([user, calls, result("a"), user]),
            json!([user, calls, result("a"), result("a"), result("b")]),
            json!([user, result("a")]),
        ] {
            assert!(check(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_script_sees_what_has_happened_since_the_user_spoke() {
        let asked = asked(json!([
            { "role": "user", "content": "first" },
            { "role": "assistant", "tool_calls": [call("old")] },
            { "role": "tool", "tool_call_id": "old", "content": "gone" },
            { "role": "user", "content": [{ "type": "text", "text": "second" }] },
            { "role": "assistant", "tool_calls": [call("new")] },
            { "role": "tool", "tool_call_id": "new", "content": "here" },
        ]));
        let new = ToolMessage {
            call_id: "new".to_owned(),
            content: "here".to_owned(),
        };
        assert_eq!(
            (asked.last_user(), asked.results(), asked.step()),
            ("second".to_owned(), vec![new], 1)
        );
    }
}
