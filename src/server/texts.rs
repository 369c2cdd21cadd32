//! The texts that clients leave with messages by commands that are allowed at `maxmemory`: results,
//! errors and what signals say.

use std::borrow::Cow;

use crate::redis::{memory, CommandResult};
use dq_queue::limits::MAX_RESULT_WHEN_FULL;
use dq_queue::text::cut;

use super::config::MAX_PAYLOAD;

/// The longest text of a signal that is taken while the server has no memory left, in bytes, and the
/// longest error text that is kept then. The end of a longer error is cut off.
const MAX_TEXT_WHEN_FULL: usize = 256;

/// Checks the length of results. Short ones are taken even if the server has no memory left, so that
/// consumers can always finish messages.
///
/// Errors: a result is longer than `dq.max-payload`, or it is long and no memory is left.
pub fn check_results<'a>(results: impl IntoIterator<Item = &'a [u8]>) -> CommandResult {
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
    check_room("a result", longest, MAX_RESULT_WHEN_FULL)
}

/// Checks the length of what a signal says.
///
/// Error: it is long, and the server has no memory left.
pub fn check_signal(text: &[u8]) -> CommandResult {
    check_room("the DATA of a signal", text.len(), MAX_TEXT_WHEN_FULL)
}

/// Cuts an error text if the server has no memory left. A NACK is never refused for it, because it
/// brings its message on.
pub fn cut_error(error: &mut Option<Cow<'_, [u8]>>) {
    let long = error
        .as_mut()
        .filter(|text| text.len() > MAX_TEXT_WHEN_FULL);
    if let Some(text) = long {
        if memory::is_full() {
            *text = cut(text, MAX_TEXT_WHEN_FULL).to_vec().into();
        }
    }
}

fn check_room(what: &str, len: usize, most: usize) -> CommandResult {
    if len > most && memory::is_full() {
        return Err(format!(
            "OOM {what} of more than {most} bytes is not allowed when used memory > 'maxmemory'"
        )
        .into());
    }
    Ok(())
}
