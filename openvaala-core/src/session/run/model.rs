//! The request to the model and what comes back from it.

use futures::StreamExt;
use futures::stream::BoxStream;

use super::{SessionLoop, with_causes};
use crate::agent::{AgentEvent, Failure};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use crate::session::machine::Event;

/// A running request and its answer.
pub(super) type Asked = Option<(u64, BoxStream<'static, Result<ModelEvent, ModelError>>)>;

impl SessionLoop {
    pub(super) fn ask_model(&mut self, request: u64) {
        let Some(prepared) = self.prepared.clone() else {
            return;
        };
        let model = self.machine.model().clone();
        let messages = self
            .machine
            .messages(prepared.account.as_deref(), &self.images);
        let question = ModelRequest {
            model: model.model.clone(),
            effort: model.effort.clone(),
            instructions: prepared.prompt.clone(),
            messages,
            tools: prepared.toolbox.specs(),
            output_schema: self.machine.output_schema().cloned(),
        };
        let answer = async move {
            let provider = prepared
                .definitions
                .provider(&model.provider)
                .map_err(|error| ModelError::new(ModelErrorKind::NotFound, error.to_string()))?;
            provider.stream(question).await
        };
        let stream = futures::stream::once(answer).flat_map(|answer| match answer {
            Ok(stream) => stream,
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        });
        self.model = Some((request, stream.boxed()));
    }

    pub(super) async fn model_event(
        &mut self,
        request: u64,
        event: Option<Result<ModelEvent, ModelError>>,
    ) {
        let event = match event {
            Some(Ok(event)) => {
                if matches!(event, ModelEvent::Finished { .. }) {
                    self.model = None;
                }
                AgentEvent::Model { request, event }
            }
            Some(Err(error)) => {
                self.model = None;
                let failure = Failure {
                    kind: error.kind,
                    message: with_causes(&error),
                    status: error.status,
                    retry_after: error.retry_after,
                };
                AgentEvent::ModelFailed { request, failure }
            }
            None => {
                self.model = None;
                let message = "the model's answer was cut off before it was complete".to_owned();
                let failure = Failure::new(ModelErrorKind::Connection, message);
                AgentEvent::ModelFailed { request, failure }
            }
        };
        self.event(Event::Agent(event)).await;
    }
}

/// Waits for the next piece of the answer; for ever if nothing was asked.
pub(super) async fn next_model_event(
    model: &mut Asked,
) -> (u64, Option<Result<ModelEvent, ModelError>>) {
    match model {
        Some((request, stream)) => (*request, stream.next().await),
        None => std::future::pending().await,
    }
}
