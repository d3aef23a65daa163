//! The tools of several workspaces as the model sees them: each name once.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use openvaala_protocol::id::ExecutorId;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::raw::RawObject;
use super::typed::is_tool_name;
use super::{Tool, ToolSpec};

/// The parameter that says where a tool runs, when several executors offer it.
const EXECUTOR: &str = "executor";

/// A tool, and where it runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Offer {
    /// The executor that offers it; `None` for a tool of the runtime itself.
    pub executor: Option<ExecutorId>,
    /// The tool.
    pub tool: Arc<dyn Tool>,
}

impl Offer {
    /// A tool that the runtime itself offers.
    #[must_use]
    pub const fn runtime(tool: Arc<dyn Tool>) -> Self {
        Self {
            executor: None,
            tool,
        }
    }

    /// A tool that an executor offers.
    #[must_use]
    pub const fn on(executor: ExecutorId, tool: Arc<dyn Tool>) -> Self {
        Self {
            executor: Some(executor),
            tool,
        }
    }
}

/// The tools of one turn, sorted by name and frozen.
///
/// A tool that one executor offers is shown as it is. One that several offer is shown once, with a
/// required parameter `executor` that names where it runs.
#[derive(Clone, Debug)]
pub struct Toolbox {
    entries: BTreeMap<String, Entry>,
}

/// The offers of one tool, in the order of their executors.
#[derive(Clone, Debug)]
struct Entry {
    spec: ToolSpec,
    first: Offer,
    others: Vec<Offer>,
}

/// A call with all that is needed to run it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Routed {
    /// The tool to call.
    pub tool: Arc<dyn Tool>,
    /// Where it runs; `None` for a tool of the runtime itself.
    pub executor: Option<ExecutorId>,
    /// The arguments for the tool, the executor taken out, all else as it was written.
    pub arguments: String,
}

/// Why some tools can't be offered together.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolboxError {
    /// Two tools have one name and nothing to tell them apart.
    #[error("the tool {name} is offered twice {place}; rename one of them")]
    Duplicate {
        /// The name.
        name: String,
        /// Where both are, such as `by executor local`.
        place: String,
    },
    /// Executors offer different tools under one name.
    #[error("the tool {name} has other parameters on {first} than on {second}; rename one of them")]
    DifferentParameters {
        /// The name.
        name: String,
        /// One executor.
        first: ExecutorId,
        /// Another one.
        second: ExecutorId,
    },
    /// A name that providers refuse.
    #[error("{name:?} can't be the name of a tool: it must be 1 to 64 of a-z A-Z 0-9 _ -")]
    InvalidName {
        /// The name.
        name: String,
    },
    /// A schema that providers refuse.
    #[error("the parameters of the tool {name} are no JSON Schema of an object: {reason}")]
    InvalidParameters {
        /// The tool.
        name: String,
        /// What is wrong with the schema.
        reason: String,
    },
}

/// Why a call goes nowhere; the text is what the model reads.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The arguments have to name an executor but can't be read.
    #[error("invalid arguments for {tool}: {message}")]
    InvalidArguments {
        /// The tool.
        tool: String,
        /// What is wrong with them.
        message: String,
    },
    /// The call does not say where it runs.
    #[error("{tool} needs the parameter `executor`, one of: {}", known.join(", "))]
    MissingExecutor {
        /// The tool.
        tool: String,
        /// The executors that offer it.
        known: Vec<String>,
    },
    /// The executor does not offer this tool.
    #[error("there is no executor {executor:?} with the tool {tool}; there is: {}", known.join(", "))]
    UnknownExecutor {
        /// The tool.
        tool: String,
        /// The executor that the call named.
        executor: String,
        /// The executors that offer it.
        known: Vec<String>,
    },
    /// No tool has this name.
    #[error("there is no tool {name:?}; there is: {}", known.join(", "))]
    UnknownTool {
        /// The name that the call used.
        name: String,
        /// The tools that there are.
        known: Vec<String>,
    },
}

impl Toolbox {
    /// Merges tools by name.
    ///
    /// # Errors
    ///
    /// A [`ToolboxError`] that names the first tool which providers would refuse or which can't be
    /// told from another.
    pub fn new(mut offers: Vec<Offer>) -> Result<Self, ToolboxError> {
        offers.sort_by(|a, b| a.executor.cmp(&b.executor));
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        for offer in offers {
            check(offer.tool.spec())?;
            match entries.entry(offer.tool.spec().name.clone()) {
                btree_map::Entry::Vacant(place) => {
                    place.insert(Entry::new(offer));
                }
                btree_map::Entry::Occupied(mut entry) => entry.get_mut().add(offer)?,
            }
        }
        Ok(Self { entries })
    }

    /// What the model is told, sorted by name; the same bytes each time.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.entries
            .values()
            .map(|entry| entry.spec.clone())
            .collect()
    }

    /// Finds the tool that a call means, and the arguments for it.
    ///
    /// # Errors
    ///
    /// A [`RouteError`] that names what there is instead.
    pub fn route(&self, name: &str, arguments: &str) -> Result<Routed, RouteError> {
        let entry = self
            .entries
            .get(name)
            .ok_or_else(|| RouteError::UnknownTool {
                name: name.to_owned(),
                known: self.entries.keys().cloned().collect(),
            })?;
        if entry.others.is_empty() {
            entry.route_only(arguments)
        } else {
            entry.route_named(arguments)
        }
    }
}

impl Entry {
    fn new(offer: Offer) -> Self {
        Self {
            spec: offer.tool.spec().clone(),
            first: offer,
            others: Vec::new(),
        }
    }

    /// Adds an offer of the same name, whose executor comes after those there are.
    fn add(&mut self, offer: Offer) -> Result<(), ToolboxError> {
        check_pair(self.others.last().unwrap_or(&self.first), &offer)?;
        self.others.push(offer);
        self.spec = with_executor(self.first.tool.spec(), &self.executors())?;
        Ok(())
    }

    fn offers(&self) -> impl Iterator<Item = &Offer> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The names of the executors that offer it.
    fn executors(&self) -> Vec<String> {
        self.offers()
            .filter_map(|offer| offer.executor.as_ref())
            .map(ToString::to_string)
            .collect()
    }

    fn route_only(&self, arguments: &str) -> Result<Routed, RouteError> {
        let offer = &self.first;
        let plain = |arguments: String| Routed {
            tool: Arc::clone(&offer.tool),
            executor: offer.executor.clone(),
            arguments,
        };
        let Some(id) = &offer.executor else {
            return Ok(plain(arguments.to_owned()));
        };
        // A model may go on naming executors from a time when there were more of them. A call
        // meant for another machine must never run on this one.
        let Ok(mut object) = RawObject::parse(arguments) else {
            return Ok(plain(arguments.to_owned()));
        };
        let own_parameter = has_property(&self.spec.parameters, EXECUTOR);
        if own_parameter || object.get(EXECUTOR).is_none() {
            return Ok(plain(arguments.to_owned()));
        }
        for value in object.remove(EXECUTOR) {
            let named: Value = serde_json::from_str(&value).unwrap_or_default();
            if !named.is_null() && named != id.as_str() {
                return Err(self.unknown(&value));
            }
        }
        Ok(plain(object.to_text()))
    }

    fn route_named(&self, arguments: &str) -> Result<Routed, RouteError> {
        if arguments.trim().is_empty() {
            return Err(self.missing());
        }
        let invalid = |message: String| RouteError::InvalidArguments {
            tool: self.spec.name.clone(),
            message,
        };
        let mut object = RawObject::parse(arguments).map_err(|error| invalid(error.to_string()))?;
        let values = object.remove(EXECUTOR);
        let value = match values.as_slice() {
            [] => return Err(self.missing()),
            [value] => value,
            _ => return Err(invalid("`executor` is given more than once".to_owned())),
        };
        let Ok(named) = serde_json::from_str::<String>(value) else {
            return Err(self.unknown(value));
        };
        let matches = |offer: &&Offer| {
            offer
                .executor
                .as_ref()
                .is_some_and(|id| id.as_str() == named)
        };
        let offer = self
            .offers()
            .find(matches)
            .ok_or_else(|| self.unknown(value))?;
        Ok(Routed {
            tool: Arc::clone(&offer.tool),
            executor: offer.executor.clone(),
            arguments: object.to_text(),
        })
    }

    fn missing(&self) -> RouteError {
        RouteError::MissingExecutor {
            tool: self.spec.name.clone(),
            known: self.executors(),
        }
    }

    /// `value` is the JSON text that stands in the call.
    fn unknown(&self, value: &str) -> RouteError {
        let executor = serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned());
        RouteError::UnknownExecutor {
            tool: self.spec.name.clone(),
            executor,
            known: self.executors(),
        }
    }
}

/// Refuses what providers would refuse.
fn check(spec: &ToolSpec) -> Result<(), ToolboxError> {
    let name = spec.name.clone();
    if !is_tool_name(&name) {
        return Err(ToolboxError::InvalidName { name });
    }
    let schema: Value = serde_json::from_str(spec.parameters.get()).unwrap_or_default();
    if schema["type"] != "object" {
        let reason = "\"type\" is not \"object\"".to_owned();
        return Err(ToolboxError::InvalidParameters { name, reason });
    }
    Ok(())
}

/// Two neighbours in the order of their executors.
fn check_pair(first: &Offer, second: &Offer) -> Result<(), ToolboxError> {
    let name = first.tool.spec().name.clone();
    let duplicate = |place: String| ToolboxError::Duplicate {
        name: name.clone(),
        place,
    };
    match (&first.executor, &second.executor) {
        (None, None) => Err(duplicate("by the runtime".to_owned())),
        (None, Some(id)) | (Some(id), None) => {
            Err(duplicate(format!("by the runtime and by executor {id}")))
        }
        (Some(a), Some(b)) if a == b => Err(duplicate(format!("by executor {a}"))),
        (Some(a), Some(b)) => {
            let parameters = |offer: &Offer| -> Value {
                serde_json::from_str(offer.tool.spec().parameters.get()).unwrap_or_default()
            };
            if parameters(first) == parameters(second) {
                return Ok(());
            }
            Err(ToolboxError::DifferentParameters {
                name,
                first: a.clone(),
                second: b.clone(),
            })
        }
    }
}

fn has_property(parameters: &RawValue, name: &str) -> bool {
    let schema: Value = serde_json::from_str(parameters.get()).unwrap_or_default();
    schema["properties"].get(name).is_some()
}

/// The same tool with a required parameter that names the executor.
fn with_executor(spec: &ToolSpec, executors: &[String]) -> Result<ToolSpec, ToolboxError> {
    let invalid = |reason: String| ToolboxError::InvalidParameters {
        name: spec.name.clone(),
        reason,
    };
    let broken = |error: serde_json::Error| invalid(error.to_string());
    if has_property(&spec.parameters, EXECUTOR) {
        let reason = "it has a parameter `executor` of its own and several executors offer it";
        return Err(invalid(reason.to_owned()));
    }
    let mut schema = RawObject::parse(spec.parameters.get()).map_err(broken)?;
    let mut properties = RawObject::parse(schema.get("properties").unwrap_or("{}"))
        .map_err(broken)?
        .into_owned();
    let mut required: Vec<String> =
        serde_json::from_str(schema.get("required").unwrap_or("[]")).map_err(broken)?;
    let property = json!({ "type": "string", "enum": executors, "description": "Where it runs." });
    properties.set(EXECUTOR, property.to_string());
    required.push(EXECUTOR.to_owned());
    schema.set("properties", properties.to_text());
    schema.set("required", Value::from(required).to_string());
    let parameters = RawValue::from_string(schema.to_text()).map_err(broken)?;
    Ok(
        ToolSpec::new(spec.name.clone(), spec.description.clone(), parameters)
            .with_read_only(spec.read_only),
    )
}

#[cfg(test)]
mod tests;
