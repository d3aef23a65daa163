//! `openvaala pending …`: the inputs that wait.

use std::process::ExitCode;

use openvaala_core::environment::{Clock, SystemClock};
use openvaala_protocol::client::{Client, Notices};
use openvaala_protocol::id::{ConversationId, ItemId};
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::pending::{
    ChangeResult, ListParams, ListResult, ReorderParams, ResumeParams, UpdateParams, WithdrawParams,
};
use serde::Serialize;

use super::{find, prompt};
use crate::args::{EditArgs, MoveArgs, PendingArgs, PendingCommand, SteerArgs, WithdrawArgs};
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{ago, note, one_line, out};
use crate::start::connect;

/// How much of an input a list shows.
const SHOWN: usize = 200;
/// The shortest part of an id that is looked for.
const MIN_ID: usize = 4;

pub(super) async fn run(dirs: &Dirs, command: PendingCommand) -> Result<ExitCode, CliError> {
    match command {
        PendingCommand::List(args) => list(dirs, &args).await,
        PendingCommand::Edit(args) => edit(dirs, args).await,
        PendingCommand::Withdraw(args) => withdraw(dirs, &args).await,
        PendingCommand::Move(args) => put(dirs, &args).await,
        PendingCommand::Steer(args) => steer(dirs, &args).await,
        PendingCommand::Resume(args) => resume(dirs, &args).await,
    }?;
    Ok(ExitCode::SUCCESS)
}

/// A conversation and what waited in it when it was looked at.
struct Queue {
    client: Client,
    /// Kept, since the connection ends without them.
    _notices: Notices,
    conversation_id: ConversationId,
    listed: ListResult,
}

impl Queue {
    async fn open(dirs: &Dirs, args: &PendingArgs) -> Result<Self, CliError> {
        let (client, notices) = connect(dirs).await?;
        let conversation_id = find::id(&client, &args.conversation).await?;
        let params = ListParams {
            conversation_id,
            session_id: None,
        };
        let listed = client.call::<method::SessionPendingList>(params).await?;
        Ok(Self {
            client,
            _notices: notices,
            conversation_id,
            listed,
        })
    }

    fn ids(&self) -> Vec<ItemId> {
        let inputs = self.listed.inputs.iter();
        inputs.map(|input| input.item_id).collect()
    }

    fn input(&self, text: &str) -> Result<ItemId, CliError> {
        the_only_one(text, &self.ids())
    }

    fn nothing(&self, item_id: ItemId) -> UpdateParams {
        UpdateParams {
            conversation_id: self.conversation_id,
            session_id: None,
            item_id,
            content: None,
            steer: None,
        }
    }
}

async fn list(dirs: &Dirs, args: &PendingArgs) -> Result<(), CliError> {
    let queue = Queue::open(dirs, args).await?;
    queue.client.close().await;
    let ListResult { inputs, held } = queue.listed;
    if args.json {
        return lines(&inputs);
    }
    if inputs.is_empty() {
        note("nothing waits in this conversation");
    }
    for (place, input) in (1..).zip(&inputs) {
        let since = ago(input.queued_at, SystemClock.now());
        let kind = if input.is_steer { "steer" } else { "queue" };
        let images = match input.image_count {
            0 => String::new(),
            count => format!("  [images: {count}]"),
        };
        let (id, said) = (input.item_id, one_line(&input.preview, SHOWN));
        if !out(&format!("{place}  {id}  {since}  {kind}  {said}{images}\n"))? {
            break;
        }
    }
    if held {
        note(&format!(
            "they are held: `openvaala pending resume {}` lets them go on, and so does the next message",
            queue.conversation_id
        ));
    }
    Ok(())
}

async fn edit(dirs: &Dirs, args: EditArgs) -> Result<(), CliError> {
    let content = prompt::read(args.prompt).await?;
    let queue = Queue::open(dirs, &args.of).await?;
    let params = UpdateParams {
        content: Some(content),
        ..queue.nothing(queue.input(&args.input)?)
    };
    let changed = queue.client.call::<method::SessionPendingUpdate>(params);
    tell(changed.await?, &args.of, "changed", queue).await
}

async fn withdraw(dirs: &Dirs, args: &WithdrawArgs) -> Result<(), CliError> {
    let queue = Queue::open(dirs, &args.of).await?;
    let item_ids: Result<Vec<_>, _> = args.inputs.iter().map(|text| queue.input(text)).collect();
    let params = WithdrawParams {
        conversation_id: queue.conversation_id,
        session_id: None,
        item_ids: item_ids?,
    };
    let changed = queue.client.call::<method::SessionPendingWithdraw>(params);
    tell(changed.await?, &args.of, "withdrawn", queue).await
}

async fn put(dirs: &Dirs, args: &MoveArgs) -> Result<(), CliError> {
    let queue = Queue::open(dirs, &args.of).await?;
    let input = queue.input(&args.input)?;
    let mut item_ids = queue.ids();
    item_ids.retain(|id| *id != input);
    let place = usize::try_from(args.place - 1).unwrap_or(usize::MAX);
    item_ids.insert(place.min(item_ids.len()), input);
    let params = ReorderParams {
        conversation_id: queue.conversation_id,
        session_id: None,
        item_ids,
    };
    let changed = queue.client.call::<method::SessionPendingReorder>(params);
    tell(changed.await?, &args.of, "moved", queue).await
}

async fn steer(dirs: &Dirs, args: &SteerArgs) -> Result<(), CliError> {
    let queue = Queue::open(dirs, &args.of).await?;
    let input = queue.input(&args.input)?;
    let params = UpdateParams {
        steer: Some(!args.undo),
        ..queue.nothing(input)
    };
    let changed = queue.client.call::<method::SessionPendingUpdate>(params);
    let changed = changed.await?;
    let waits = |pending: &ChangeResult| {
        let mut inputs = pending.pending.iter();
        inputs.any(|it| it.item_id == input && !it.is_steer)
    };
    let done = if waits(&changed) && !args.undo {
        "no turn runs that could read it: it goes on waiting"
    } else if args.undo {
        "it waits for the end of the turn"
    } else {
        "the running turn reads it before it goes on"
    };
    tell(changed, &args.of, done, queue).await
}

async fn resume(dirs: &Dirs, args: &PendingArgs) -> Result<(), CliError> {
    let queue = Queue::open(dirs, args).await?;
    let params = ResumeParams {
        conversation_id: queue.conversation_id,
        session_id: None,
    };
    let result = queue.client.call::<method::SessionResume>(params).await?;
    queue.client.close().await;
    if args.json {
        return lines(&[result]);
    }
    note(if result.resumed {
        "what waits goes on"
    } else {
        "nothing is held in this conversation"
    });
    Ok(())
}

async fn tell(
    changed: ChangeResult,
    args: &PendingArgs,
    done: &str,
    queue: Queue,
) -> Result<(), CliError> {
    queue.client.close().await;
    if args.json {
        return lines(&changed.pending);
    }
    note(done);
    Ok(())
}

fn lines<T: Serialize>(values: &[T]) -> Result<(), CliError> {
    for value in values {
        let line = serde_json::to_string(value).map_err(CliError::from)?;
        if !out(&format!("{line}\n"))? {
            break;
        }
    }
    Ok(())
}

/// Ids that were made at the same time begin alike, so the end is looked at as well.
fn the_only_one(text: &str, ids: &[ItemId]) -> Result<ItemId, CliError> {
    let part = text.to_ascii_lowercase();
    let fits = |id: &&ItemId| {
        let id = id.to_string();
        part.len() >= MIN_ID && (id.starts_with(&part) || id.ends_with(&part))
    };
    let matches: Vec<&ItemId> = ids.iter().filter(fits).collect();
    let hint = "`openvaala pending list CONVERSATION` shows the ids";
    match matches.as_slice() {
        [only] => Ok(**only),
        [] => Err(
            CliError::user(format!("no input that waits has an id like {text:?}"))
                .hint(format!("{hint}; a turn may have taken it")),
        ),
        several => Err(CliError::user(format!(
            "{} inputs that wait have an id like {text:?}",
            several.len()
        ))
        .hint(format!("write more of it; {hint}"))),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pretty_assertions::assert_eq;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_input_is_found_by_the_beginning_or_the_end_of_its_id() {
        let [a, b, c] = [0x11, 0x12, 0x13]
            .map(|n| ItemId::from_uuid(Uuid::from_u128((n.min(0x12) << 120) + n)));
        assert_eq!(the_only_one("1100", &[a, b]).unwrap(), a);
        assert_eq!(the_only_one("0012", &[a, b]).unwrap(), b);
        assert_snapshot!(the_only_one("beef", &[a, b]).unwrap_err().text(), @r#"
        error: no input that waits has an id like "beef"
        hint: `openvaala pending list CONVERSATION` shows the ids; a turn may have taken it
        "#);
        assert_snapshot!(the_only_one("00", &[a]).unwrap_err().text(), @r#"
        error: no input that waits has an id like "00"
        hint: `openvaala pending list CONVERSATION` shows the ids; a turn may have taken it
        "#);
        assert_snapshot!(the_only_one("1200", &[a, b, c]).unwrap_err().text(), @r#"
        error: 2 inputs that wait have an id like "1200"
        hint: write more of it; `openvaala pending list CONVERSATION` shows the ids
        "#);
    }
}
