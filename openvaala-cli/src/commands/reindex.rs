//! `openvaala reindex`.

use std::process::ExitCode;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use openvaala_core::Runtime;
use openvaala_core::dialect::demo::DemoProvider;
use openvaala_protocol::rpc::Notice;
use openvaala_protocol::rpc::method::ServerReindex;
use openvaala_protocol::rpc::params::server::ReindexParams;
use tokio::sync::mpsc;

use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, out};
use crate::start::connect_running;

pub(super) async fn run(dirs: &Dirs) -> Result<ExitCode, CliError> {
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} conversations, {per_sec}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let (count, damaged) = match connect_running(dirs).await? {
        Some((client, mut notices)) => {
            let result = {
                let call = client.call::<ServerReindex>(ReindexParams::default());
                tokio::pin!(call);
                loop {
                    tokio::select! {
                        result = &mut call => break result?,
                        Some(Notice::ServerProgress(step)) = notices.recv() => {
                            bar.set_length(step.total);
                            bar.set_position(step.done);
                        }
                    }
                }
            };
            client.close().await;
            (result.conversations, result.damaged)
        }
        None => alone(dirs, &bar).await?,
    };
    bar.finish_and_clear();
    for line in &damaged {
        note(&format!("damaged, left as it is: {line}"));
    }
    out(&format!("{count} conversations are in the index\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Without a server the directory is taken for as long as it takes.
async fn alone(dirs: &Dirs, bar: &ProgressBar) -> Result<(u64, Vec<String>), CliError> {
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
            bar.set_length(step.total);
            bar.set_position(step.done);
        }
    };
    let (report, ()) = tokio::join!(runtime.reindex(tell), show);
    runtime.shutdown().await;
    let report = report.map_err(fail)?;
    Ok((report.conversations, report.damaged))
}
