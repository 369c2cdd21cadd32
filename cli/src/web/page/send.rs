//! The form for a test message.

use maud::html;

use super::layout::{layout, token, trail};
use crate::model::change::Target;
use crate::text::printable;
use crate::web::address::{of_target, queue};
use crate::web::answer::{Answer, Ask, HttpError};

/// Shows the form.
pub fn show(ask: &Ask) -> Result<Answer, HttpError> {
    let key = queue(&ask.query)?;
    let target = of_target(&Target::Queue(key.clone()));
    let address = target.clone().with("act", b"send").link("do");
    let content = html! {
        h1 { "Send a test message to " (printable(&key)) }
        form.stack method="post" action=(address) {
            (token(ask))
            label { "Payload" textarea name="payload" rows="8" autofocus {} }
            label { "Id" input name="id" placeholder="a new one"; }
            label { "Type" input name="type"; }
            label { "Group" input name="group"; }
            label { "Priority" input name="priority" inputmode="numeric" placeholder="0; lower goes first"; }
            label { "Delay" input name="delay" placeholder="10s, 5m, 2h"; }
            p.actions {
                button.main #yes { "Send" }
                a.button href=(target.link("queue")) data-key="u" { "Back" }
            }
        }
    };
    let mut steps = trail(&key);
    steps.push(("send".to_owned(), target.link("send")));
    Ok(layout(
        ask,
        &format!("send to {}", printable(&key)),
        &steps,
        content,
    ))
}
