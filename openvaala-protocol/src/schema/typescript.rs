//! The protocol as TypeScript types.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use ts_rs::{Config, TS, TypeVisitor};

use super::{VisitTypes, names};
use crate::item::{ItemShape, body_types};
use crate::rpc::{ERRORS, RpcError, method_types, notification_types};
use crate::{ENDPOINT, PROTOCOL_VERSION};

/// Every type of the protocol as TypeScript, with `Methods`, `Notifications` and `ItemBodies` as maps from the names on
/// the wire to the types, and the error codes as a constant.
#[must_use]
pub fn typescript() -> String {
    let mut text = format!(
        "// Generated from the Rust types of openvaala-protocol; do not edit.\n\n\
         /** The version of the wire protocol; must be the server's own. */\n\
         export const PROTOCOL_VERSION = \"{PROTOCOL_VERSION}\";\n\n\
         /** The path of the WebSocket endpoint. */\n\
         export const ENDPOINT = \"{ENDPOINT}\";\n\n"
    );
    text.push_str(&tables());
    for declaration in declarations().values() {
        let _ = write!(text, "\n{}", tidy(declaration));
    }
    text
}

/// Indents a declaration, puts comments of one line on one line, and speaks of `null` where Rust says `None`.
fn tidy(declaration: &str) -> String {
    let text = declaration
        .replace("`None`", "`null`")
        .replace("/**\n * ", "/** ");
    let mut tidy = String::new();
    let mut depth = 0_usize;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let comment = line.starts_with("/**") || line.starts_with(" *");
        let indent = "  ".repeat(depth);
        let is_whole = line.starts_with("/** ") && lines.next_if_eq(&" */").is_some();
        let end = if is_whole { " */" } else { "" };
        let _ = writeln!(tidy, "{indent}{}{end}", line.trim_end());
        if !comment {
            depth = (depth + line.matches('{').count()).saturating_sub(line.matches('}').count());
        }
    }
    tidy
}

/// The declaration of every type by its name.
pub(super) fn declarations() -> BTreeMap<String, String> {
    let mut types = Declarations {
        config: Config::new(),
        found: BTreeMap::new(),
    };
    method_types(&mut types);
    notification_types(&mut types);
    body_types(&mut types);
    TypeVisitor::visit::<ItemShape<'static>>(&mut types);
    TypeVisitor::visit::<RpcError>(&mut types);
    types.found
}

/// Finds types and all that they are made of.
struct Declarations {
    config: Config,
    found: BTreeMap<String, String>,
}

impl VisitTypes for Declarations {
    fn visit<T: JsonSchema + TS + 'static>(&mut self) {
        TypeVisitor::visit::<T>(self);
    }
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // Types without a file of their own are those that TypeScript has already.
        if T::output_path().is_some() {
            let name = T::ident(&self.config);
            if self.found.contains_key(&name) {
                return;
            }
            let docs = T::docs().unwrap_or_default();
            let declaration = format!("{docs}export {}", T::decl(&self.config));
            self.found.insert(name, declaration);
        }
        T::visit_dependencies(self);
        T::visit_generics(self);
    }
}

fn tables() -> String {
    let mut text =
        "/** Parameters and result of every method. */\nexport interface Methods {\n".to_owned();
    for method in names::methods() {
        let (name, params, result) = (method.info.name, method.params, method.result);
        let _ = writeln!(
            text,
            "  \"{name}\": {{ params: {params}; result: {result} }};"
        );
    }
    text.push_str(
        "}\n\n/** Parameters of every notification. */\nexport interface Notifications {\n",
    );
    for (info, params) in names::notifications() {
        let _ = writeln!(text, "  \"{}\": {params};", info.name);
    }
    text.push_str("}\n\n/** The body of every kind of item. */\nexport interface ItemBodies {\n");
    for (kind, body) in names::items() {
        let _ = writeln!(text, "  \"{kind}\": {body};");
    }
    text.push_str(
        "}\n\n/** An item of a kind that this version knows; there may be others. */\n\
         export type KnownItem = {\n  \
         [Kind in keyof ItemBodies]: Item & { kind: Kind; body: ItemBodies[Kind] };\n\
         }[keyof ItemBodies];\n\n/** The codes of errors by their names. */\nexport const ErrorCodes = {\n",
    );
    for error in ERRORS {
        let _ = writeln!(
            text,
            "  /** {} */\n  {}: {},",
            error.about,
            error.name,
            error.code.number()
        );
    }
    text.push_str("} as const;\n");
    text
}
