//! The request to the model and what comes back from it.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;

use super::{Prepared, SessionLoop, with_causes};
use crate::agent::{AgentEvent, Failure};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use crate::session::event::Event;

/// A running request and its answer.
pub(super) type Asked = Option<(Question, BoxStream<'static, Result<ModelEvent, ModelError>>)>;

/// What was asked, with its number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    /// What to do next.
    Step(u64),
    /// A summary.
    Summary(u64),
}

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
        self.put_question(
            Question::Step(request),
            &prepared,
            model.provider,
            question,
            Duration::ZERO,
        );
    }

    /// Sends a question after that time.
    pub(super) fn put_question(
        &mut self,
        number: Question,
        prepared: &Arc<Prepared>,
        provider: String,
        question: ModelRequest,
        wait: Duration,
    ) {
        let definitions = Arc::clone(&prepared.definitions);
        let answer = async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            let provider = definitions
                .provider(&provider)
                .map_err(|error| ModelError::new(ModelErrorKind::NotFound, error.to_string()))?;
            provider.stream(question).await
        };
        let stream = futures::stream::once(answer).flat_map(|answer| match answer {
            Ok(stream) => stream,
            Err(error) => futures::stream::once(async { Err(error) }).boxed(),
        });
        self.model = Some((number, stream.boxed()));
    }

    pub(super) async fn model_event(
        &mut self,
        question: Question,
        event: Option<Result<ModelEvent, ModelError>>,
    ) {
        let event = match event {
            Some(Ok(event)) => {
                if matches!(event, ModelEvent::Finished { .. }) {
                    self.model = None;
                }
                Ok(event)
            }
            Some(Err(error)) => {
                self.model = None;
                Err(Failure {
                    kind: error.kind,
                    message: with_causes(&error),
                    status: error.status,
                    retry_after: error.retry_after,
                })
            }
            None => {
                self.model = None;
                let message = "the model's answer was cut off before it was complete".to_owned();
                Err(Failure::new(ModelErrorKind::Connection, message))
            }
        };
        let event = match (question, event) {
            (Question::Summary(request), event) => Event::Summary { request, event },
            (Question::Step(request), Ok(event)) => {
                Event::Agent(AgentEvent::Model { request, event })
            }
            (Question::Step(request), Err(failure)) => {
                Event::Agent(AgentEvent::ModelFailed { request, failure })
            }
        };
        self.event(event).await;
    }
}

/// Waits for the next piece of the answer; for ever if nothing was asked.
pub(super) async fn next_model_event(
    model: &mut Asked,
) -> (Question, Option<Result<ModelEvent, ModelError>>) {
    match model {
        Some((request, stream)) => (*request, stream.next().await),
        None => std::future::pending().await,
    }
}
