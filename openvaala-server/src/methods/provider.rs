//! `provider/…`.

use std::time::Duration;

use futures::StreamExt;
use openvaala_core::dialect::http::Secret;
use openvaala_core::model::{Message, ModelError, ModelEvent, ModelRequest};
use openvaala_core::{ModelProvider, RuntimeError};
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::rpc::params::provider::{
    AddParams, AddResult, EditParams, EditResult, ListResult, RemoveParams, RemoveResult,
    TestParams, TestResult,
};
use openvaala_protocol::rpc::{ErrorCode, RpcError};
use tokio::time::{Instant, timeout};

use super::error::{rpc_error, with_causes};
use super::server;
use crate::config::{ConfigEdit, KeyEdit, NewKey, NewProvider, ProviderEdit, ProviderType};
use crate::context::{ConfigChange, Context};

/// How long a provider has to say one word.
const LIMIT: Duration = Duration::from_secs(30);
/// How much of the answer is shown.
const SHOWN: usize = 200;

pub(crate) fn list(context: &Context) -> ListResult {
    let assembled = context.assembled();
    ListResult {
        providers: assembled.providers.clone(),
        default_model: assembled.default_model.clone(),
    }
}

pub(crate) async fn add(context: &Context, params: AddParams) -> Result<AddResult, RpcError> {
    let invalid = |message: String| RpcError::new(ErrorCode::InvalidParams, message);
    let speaks: Result<ProviderType, _> = params.dialect.parse();
    let speaks = speaks.map_err(|error| invalid(format!("type: {error}")))?;
    let key = match (params.api_key, params.api_key_env) {
        (None, None) => NewKey::None,
        (Some(key), None) => NewKey::Given(Secret::new(key)),
        (None, Some(variable)) => NewKey::Variable(variable),
        (Some(_), Some(_)) => {
            let message = "api_key and api_key_env are both given: leave one out";
            return Err(invalid(message.to_owned()));
        }
    };
    let mut provider = NewProvider::new(params.name, params.base_url, key, params.default_model);
    provider.speaks = speaks;
    provider.make_default = params.make_default;
    let change = ConfigChange::AddProvider(Box::new(provider));
    let default_model = changed(context, change).await?;
    Ok(AddResult { default_model })
}

pub(crate) async fn remove(
    context: &Context,
    params: RemoveParams,
) -> Result<RemoveResult, RpcError> {
    let change = ConfigChange::RemoveProvider(params.name);
    let default_model = changed(context, change).await?;
    Ok(RemoveResult { default_model })
}

pub(crate) async fn edit(context: &Context, params: EditParams) -> Result<EditResult, RpcError> {
    let invalid = |message: String| RpcError::new(ErrorCode::InvalidParams, message);
    let speaks = params
        .dialect
        .map(|dialect| dialect.parse::<ProviderType>());
    let speaks = speaks.transpose();
    let key = match (params.api_key, params.api_key_env) {
        (None, None) => None,
        (Some(key), None) => Some(KeyEdit::Given(Secret::new(key))),
        (None, Some(variable)) => Some(KeyEdit::Variable(variable)),
        (Some(_), Some(_)) => {
            let message = "api_key and api_key_env are both given: leave one out";
            return Err(invalid(message.to_owned()));
        }
    };
    let edit = ProviderEdit {
        name: params.name,
        speaks: speaks.map_err(|error| invalid(format!("type: {error}")))?,
        base_url: params.base_url,
        key,
        default_model: params.default_model,
    };
    let change = ConfigChange::Edit(ConfigEdit::Provider(Box::new(edit)));
    let default_model = changed(context, change).await?;
    Ok(EditResult { default_model })
}

/// Changes the configuration and puts it in force; gives the default model from then on.
async fn changed(context: &Context, change: ConfigChange) -> Result<ModelRef, RpcError> {
    let reloaded = server::change(context, Some(change)).await?;
    Ok(reloaded.default_model)
}

pub(crate) async fn test(context: &Context, params: TestParams) -> Result<TestResult, RpcError> {
    let definitions = context.runtime.definitions();
    let assembled = context.assembled();
    let configured = assembled
        .providers
        .iter()
        .find(|provider| provider.name == params.name);
    let (Some(provider), Some(configured)) = (definitions.providers.get(&params.name), configured)
    else {
        let known = definitions.providers.keys().cloned().collect();
        return Err(rpc_error(&RuntimeError::UnknownProvider {
            name: params.name,
            known,
        }));
    };
    let model = params
        .model
        .unwrap_or_else(|| configured.default_model.clone());
    let started = Instant::now();
    let answer = timeout(LIMIT, ask(provider.as_ref(), model)).await;
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (ok, message) = match answer {
        Ok(Ok(text)) => (true, text),
        Ok(Err(error)) => (false, with_causes(&error)),
        Err(_) => (
            false,
            format!("no whole answer within {} seconds", LIMIT.as_secs()),
        ),
    };
    Ok(TestResult {
        ok,
        message,
        millis,
    })
}

/// Asks for a word and gives the beginning of what comes.
async fn ask(provider: &dyn ModelProvider, model: String) -> Result<String, ModelError> {
    let mut request = ModelRequest::default();
    request.model = model;
    request
        .messages
        .push(Message::User(vec![Content::text("Say OK")]));
    let mut events = provider.stream(request).await?;
    let mut text = String::new();
    while let Some(event) = events.next().await {
        if let ModelEvent::Delta { text: delta, .. } = event?
            && text.len() < 4 * SHOWN
        {
            text.push_str(&delta);
        }
    }
    let shown: String = text.trim().chars().take(SHOWN).collect();
    Ok(if shown.is_empty() {
        "(an empty answer)".to_owned()
    } else {
        shown
    })
}
