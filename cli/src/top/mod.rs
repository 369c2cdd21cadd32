//! `dq top`: the live view.
//!
//! `sampler` asks the server in a thread of its own, so that a slow network never
//! delays a key. `app` is the state and how keys change it. `view` draws the state.
//! Only this file uses the terminal.

mod app;
mod sampler;
mod view;

use std::io::{self, IsTerminal};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::failure::Failure;
use crate::model::instance;
use crate::model::watch::Watch;
use crate::server::Endpoint;
use crate::time_text::{parse_interval, Millis};
use app::App;
use sampler::Sampler;

/// Options of `dq top`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Only these queues, or those that match: 'jobs:*'; without, all of the server
    #[arg(value_name = "QUEUE")]
    queues: Vec<String>,
    /// Only queues whose names match, as of KEYS: 'jobs:*'
    #[arg(long = "match", value_name = "GLOB", conflicts_with = "queues")]
    pattern: Option<String>,
    /// How often the server is asked
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: Millis,
}

/// Maximum time until a key press or an update of the sampler shows on the screen.
const TICK: Duration = Duration::from_millis(50);

/// Runs until the user quits.
pub fn run(endpoint: &Endpoint, args: &Args) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::mistake(
            "top needs a terminal; dq ls prints the same figures",
        ));
    }
    // A wrong URL or password is reported before the screen changes.
    let watch = Watch::of(&args.queues, args.pattern.as_deref())?;
    let mut server = endpoint.connect()?;
    instance::must_have_module(&mut server)?;
    let mut app = App::new(server.place());
    let (requests, inbox) = mpsc::channel();
    let (outbox, updates) = mpsc::channel();
    let sampler = Sampler::new(endpoint.clone(), watch, args.interval, inbox, outbox);
    thread::spawn(move || sampler.run(server));

    let mut terminal = ratatui::try_init()?;
    let mut drawn = None::<Instant>;
    let result = loop {
        let mut changed = drawn.is_none_or(|at| at.elapsed() >= Duration::from_secs(1));
        while let Ok(update) = updates.try_recv() {
            app.take(update);
            changed = true;
        }
        let rows = terminal.size().map_or(0, |size| usize::from(size.height));
        if let Some(focus) = app.new_focus(view::room(rows)) {
            // The sampler ends only when this program does, so sending cannot fail.
            let _ = requests.send(focus);
        }
        if changed {
            if let Err(error) = terminal.draw(|frame| view::draw(frame, &app)) {
                break Err(error.into());
            }
            drawn = Some(Instant::now());
        }
        match event::poll(TICK).and_then(|ready| ready.then(event::read).transpose()) {
            Ok(Some(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                if let Some(request) = app.press(key) {
                    let _ = requests.send(request);
                }
                drawn = None;
            }
            Ok(Some(_)) => drawn = None,
            Ok(None) => {}
            Err(error) => break Err(error.into()),
        }
        if app.quits() {
            break Ok(());
        }
    };
    ratatui::try_restore()?;
    result
}
