//! The results that clients give with an ACK.

use crate::redis::{memory, CommandResult};
use dq_queue::limits::MAX_RESULT_WHEN_FULL;

use super::config::MAX_PAYLOAD;

/// Checks the length of results. Short ones are taken even if the server has no memory left, so that
/// consumers can always finish messages.
///
/// Errors: a result is longer than `dq.max-payload`, or it is long and no memory is left.
pub fn check<'a>(results: impl IntoIterator<Item = &'a [u8]>) -> CommandResult {
    let Some(longest) = results.into_iter().map(<[u8]>::len).max() else {
        return Ok(());
    };
    let most = MAX_PAYLOAD.unsigned();
    if longest as u64 > most {
        return Err(format!(
            "ERR a result must be at most {most} bytes long (dq.max-payload), not {longest}"
        )
        .into());
    }
    if longest > MAX_RESULT_WHEN_FULL && memory::is_full() {
        return Err(format!(
            "OOM a result of more than {MAX_RESULT_WHEN_FULL} bytes is not allowed when used memory > \
             'maxmemory'"
        )
        .into());
    }
    Ok(())
}
