//! `openvaala check`.

use std::process::ExitCode;
use std::sync::Arc;

use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::{CheckOptions, Progress, Runtime, RuntimeError, check_data_dir};
use openvaala_protocol::rpc::Notice;
use openvaala_protocol::rpc::method::ServerCheck;
use openvaala_protocol::rpc::params::check::{CheckParams, CheckResult, Finding};
use tokio::sync::mpsc;

use super::meter::Meter;
use crate::args::CheckArgs;
use crate::dirs::Dirs;
use crate::error::{CliError, FAILED};
use crate::output::{one_line, out};
use crate::start::connect_running;

/// How much of what is wrong is shown in a line.
const SHOWN: usize = 300;

pub(super) async fn run(dirs: &Dirs, args: CheckArgs) -> Result<ExitCode, CliError> {
    let mut meter = Meter::new();
    let result = if args.repair {
        repair(dirs, &args, &mut meter).await
    } else {
        let (options, progress) = options(&args);
        watched(check_data_dir(&dirs.data, options), progress, &mut meter).await
    };
    meter.end();
    let result = result?;
    if args.json {
        out(&format!("{}\n", serde_json::to_string(&result)?))?;
    } else {
        out(&text(&result))?;
    }
    let sound = result.findings.iter().all(|finding| finding.repaired);
    Ok(if sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

fn options(args: &CheckArgs) -> (CheckOptions, mpsc::Receiver<Progress>) {
    let (tell, progress) = mpsc::channel(64);
    let options = CheckOptions::default()
        .conversation(args.id)
        .repair(args.repair)
        .progress(tell);
    (options, progress)
}

/// Shows how far a check is while it runs.
async fn watched(
    check: impl Future<Output = Result<CheckResult, RuntimeError>>,
    mut progress: mpsc::Receiver<Progress>,
    meter: &mut Meter,
) -> Result<CheckResult, CliError> {
    let show = async {
        while let Some(step) = progress.recv().await {
            meter.show(step.done, step.total);
        }
    };
    let (result, ()) = tokio::join!(check, show);
    result.map_err(|error| CliError::user("the data directory cannot be checked").because(error))
}

/// Only the owner of the data directory repairs: the server, or else this process.
async fn repair(dirs: &Dirs, args: &CheckArgs, meter: &mut Meter) -> Result<CheckResult, CliError> {
    if let Some((client, mut notices)) = connect_running(dirs).await? {
        let params = CheckParams {
            conversation_id: args.id,
            repair: true,
        };
        let result = {
            let call = client.call::<ServerCheck>(params);
            tokio::pin!(call);
            loop {
                tokio::select! {
                    result = &mut call => break result?,
                    Some(notice) = notices.recv() => if let Notice::ServerProgress(step) = notice {
                        meter.show(step.done, step.total);
                    },
                }
            }
        };
        client.close().await;
        return Ok(result);
    }
    if !dirs.data.is_dir() {
        let message = format!("there is no data directory {}", dirs.data.display());
        return Err(CliError::user(message));
    }
    let fail = |error| CliError::user("the data directory cannot be repaired").because(error);
    let runtime = Runtime::builder()
        .data_dir(&dirs.data)
        .provider("demo", Arc::new(DemoProvider::new()))
        .index_only();
    let runtime = runtime.build().await.map_err(fail)?;
    let (options, progress) = options(args);
    let result = watched(runtime.check(options), progress, meter).await;
    runtime.shutdown().await;
    result
}

fn text(result: &CheckResult) -> String {
    let mut text = String::new();
    for finding in &result.findings {
        text.push_str(&lines(finding));
    }
    let found = match result.findings.len() {
        0 => "all is sound".to_owned(),
        count => {
            let repaired = result.findings.iter().filter(|it| it.repaired).count();
            format!("{count} findings, {repaired} of them put right")
        }
    };
    let (conversations, streams, entries) = (result.conversations, result.streams, result.entries);
    text.push_str(&format!(
        "{conversations} conversations, {streams} streams, {entries} entries: {found}\n"
    ));
    text
}

fn lines(finding: &Finding) -> String {
    let mut place = finding.place.clone();
    if let Some(seq) = finding.seq {
        place.push_str(&format!(", entry {seq}"));
    }
    if let (Some(offset), Some(length)) = (finding.offset, finding.length) {
        place.push_str(&format!(", {length} bytes at {offset}"));
    }
    let repair = if finding.repaired {
        "repaired"
    } else {
        "repair"
    };
    format!(
        "{place}\n  {}\n  {repair}: {}\n",
        one_line(&finding.message, SHOWN),
        one_line(&finding.remedy, SHOWN)
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use openvaala_protocol::rpc::params::check::FindingKind;

    use super::*;

    #[test]
    fn a_finding_names_the_place_what_is_wrong_and_what_a_repair_does() {
        let finding = Finding {
            kind: FindingKind::TornTail,
            place: "conversations/x/metadata".to_owned(),
            seq: None,
            offset: Some(120),
            length: Some(7),
            message: "the end is torn".to_owned(),
            remedy: "the bytes are cut and kept in a side file".to_owned(),
            repaired: false,
        };
        let damaged = Finding {
            kind: FindingKind::DamagedEntry,
            seq: Some(3),
            message: "bad\u{1b}[2J crc".to_owned(),
            remedy: "nothing".to_owned(),
            ..finding.clone()
        };
        let result = CheckResult {
            conversations: 1,
            streams: 2,
            entries: 30,
            findings: vec![finding, damaged],
        };
        assert_snapshot!(text(&result), @r"
        conversations/x/metadata, 7 bytes at 120
          the end is torn
          repair: the bytes are cut and kept in a side file
        conversations/x/metadata, entry 3, 7 bytes at 120
          bad [2J crc
          repair: nothing
        1 conversations, 2 streams, 30 entries: 2 findings, 0 of them put right
        ");
        assert_snapshot!(text(&CheckResult::default()), @"0 conversations, 0 streams, 0 entries: all is sound");
    }
}
