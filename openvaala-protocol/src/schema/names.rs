//! Which type belongs to which row of a table.

use schemars::JsonSchema;
use ts_rs::TS;

use super::VisitTypes;
use crate::item::{ItemKind, body_types};
use crate::rpc::{
    METHODS, MethodInfo, NOTIFICATIONS, NotificationInfo, method_types, notification_types,
};

/// Collects the names of the types that it is shown.
struct Names(Vec<String>);

impl VisitTypes for Names {
    fn visit<T: JsonSchema + TS + 'static>(&mut self) {
        self.0.push(T::schema_name().into_owned());
    }
}

/// A method with the names of the types of its parameters and of its result.
pub(super) struct MethodTypes {
    pub(super) info: &'static MethodInfo,
    pub(super) params: String,
    pub(super) result: String,
}

pub(super) fn methods() -> Vec<MethodTypes> {
    let mut names = Names(Vec::new());
    method_types(&mut names);
    let mut names = names.0.into_iter();
    let rows = METHODS.iter().map_while(|info| {
        Some(MethodTypes {
            info,
            params: names.next()?,
            result: names.next()?,
        })
    });
    rows.collect()
}

/// The notifications with the names of the types of their parameters.
pub(super) fn notifications() -> Vec<(&'static NotificationInfo, String)> {
    let mut names = Names(Vec::new());
    notification_types(&mut names);
    NOTIFICATIONS.iter().zip(names.0).collect()
}

/// The kinds of items with the names of the types of their bodies.
pub(super) fn items() -> Vec<(&'static ItemKind, String)> {
    let mut names = Names(Vec::new());
    body_types(&mut names);
    ItemKind::KNOWN.iter().zip(names.0).collect()
}

/// A comment of the table as a text of paragraphs.
pub(super) fn about(comment: &str) -> String {
    let lines: Vec<&str> = comment.trim().lines().map(str::trim).collect();
    lines.join("\n")
}
