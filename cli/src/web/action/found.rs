//! Actions on all messages that are found, in steps.

use crate::failure::Failure;
use crate::model::find::{self, Act, Filter, Step};
use crate::server::Server;
use crate::web::jobs::Job;

/// Number of messages that one step changes. The server serves others between
/// two steps.
const STEP: usize = 200;

/// Applies the action to all messages that match. The job shows the progress, and can stop it.
pub fn change(
    server: &mut Server,
    queues: &[Vec<u8>],
    filter: &Filter,
    act: Act,
    job: &Job,
) -> Result<(), Failure> {
    for queue in queues {
        let mut step = Step::first(STEP);
        loop {
            if job.is_stopped() {
                return Ok(());
            }
            let (next, changed) = find::act(server, queue, filter, &step, act)?;
            job.add(changed);
            match next {
                Some(cursor) => step.cursor = Some(cursor),
                None => break,
            }
        }
    }
    Ok(())
}
