//! `openvaala reindex`.

use std::process::ExitCode;
use std::sync::Arc;

use openvaala_core::Runtime;
use openvaala_core::dialect::demo::DemoProvider;
use openvaala_protocol::rpc::Notice;
use openvaala_protocol::rpc::method::ServerReindex;
use openvaala_protocol::rpc::params::server::ReindexParams;
use tokio::sync::mpsc;

use super::meter::Meter;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, out};
use crate::start::connect_running;

pub(super) async fn run(dirs: &Dirs) -> Result<ExitCode, CliError> {
    let mut meter = Meter::new();
    let (count, damaged) = match connect_running(dirs).await? {
        Some((client, mut notices)) => {
            let result = {
                let call = client.call::<ServerReindex>(ReindexParams::default());
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
            (result.conversations, result.damaged)
        }
        None => alone(dirs, &mut meter).await?,
    };
    meter.end();
    for line in &damaged {
        note(&format!("damaged, its files are left as they are: {line}"));
    }
    out(&format!("{count} conversations are in the index\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Without a server the directory is taken for as long as it takes.
async fn alone(dirs: &Dirs, meter: &mut Meter) -> Result<(u64, Vec<String>), CliError> {
    let fail = |error| CliError::user("the index cannot be built").because(error);
    let demo = Arc::new(DemoProvider::new());
    let runtime = Runtime::builder()
        .data_dir(&dirs.data)
        .provider("demo", demo)
        .index_only();
    let runtime = runtime.build().await.map_err(fail)?;
    let (tell, mut progress) = mpsc::channel::<openvaala_core::Progress>(64);
    let show = async {
        while let Some(step) = progress.recv().await {
            meter.show(step.done, step.total);
        }
    };
    let (report, ()) = tokio::join!(runtime.reindex(tell), show);
    runtime.shutdown().await;
    let report = report.map_err(fail)?;
    Ok((report.conversations, report.damaged))
}
