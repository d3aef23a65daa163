//! The work on the requests of one client, in one task: what takes effect at once does so in the order it was asked for.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::task::unconstrained;

/// The work on one request, with its answer.
pub(super) type Work = BoxFuture<'static, ()>;

/// Works until no more can come and all is done.
///
/// All of it goes on at the same time, and whatever is ready is polled in the order it became ready. So two requests that go
/// the same way, to the same conversation, arrive there in the order they came; tasks of their own would overtake each other
/// whenever one of the machine's cores is busy.
pub(super) async fn run(more: mpsc::UnboundedReceiver<Work>) {
    // A budget that ends in the middle would send back one that is ready, behind those that came after it.
    unconstrained(work(more)).await;
}

async fn work(mut more: mpsc::UnboundedReceiver<Work>) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            work = more.recv() => match work {
                Some(work) => running.push(work),
                None => break,
            },
            Some(()) = running.next() => {}
        }
    }
    while running.next().await.is_some() {}
}
