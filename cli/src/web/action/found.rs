//! Actions on all messages that are found, in steps.

use crate::failure::Failure;
use crate::model::find::{self, Act, Filter, Step};
use crate::model::search::{self, Walk};
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
    let places = search::places(server, queues, &filter.state)?;
    let fits = places.into_iter().filter(|place| act.fits(place.state));
    let mut walk = Walk::new(fits.collect(), Step::first(STEP));
    while let (Some((place, step)), false) = (walk.now(), job.is_stopped()) {
        let (next, changed) = find::act(server, place, filter, step, act)?;
        job.add(changed);
        walk.go_on(next);
    }
    Ok(())
}
