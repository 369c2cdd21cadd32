//! The state of the live view, and how keys change it. It uses neither the terminal
//! nor the server.

use std::collections::HashMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::history::History;
use super::sampler::{Deed, Detail, Focus, Request, Sample, Update};
use crate::model::group::{Group, Wanted};
use crate::model::queue::Queue;
use crate::text::{plural, printable};

/// Number of lines that PgUp and PgDn move.
const PAGE: usize = 10;

/// Number of groups that are asked for on screens that show only the first few.
const FEW: usize = 5;
/// Number of groups that are asked for on the screen of groups.
const MANY: usize = 200;

/// The screen that is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Screen {
    /// All queues.
    #[default]
    Queues,
    /// One queue.
    Queue,
    /// The groups of a queue.
    Groups,
}

/// How the queues are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// By name.
    #[default]
    Name,
    /// The one whose oldest ready message has waited longest, first.
    Oldest,
    /// The one with the most ready and running messages first.
    Load,
    /// The one with the most dead messages first.
    Dead,
}

impl Sort {
    fn next(self) -> Sort {
        match self {
            Sort::Name => Sort::Oldest,
            Sort::Oldest => Sort::Load,
            Sort::Load => Sort::Dead,
            Sort::Dead => Sort::Name,
        }
    }

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Name => "name",
            Sort::Oldest => "oldest ready",
            Sort::Load => "ready + running",
            Sort::Dead => "dead",
        }
    }
}

/// A question that the user must answer before something is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub words: String,
    deed: Deed,
}

/// The state of the live view.
#[derive(Debug, Default)]
pub struct App {
    /// Where the server is.
    pub place: String,
    /// The last figures.
    pub sample: Option<Sample>,
    /// Which screen is shown.
    pub screen: Screen,
    /// How the queues are sorted.
    pub sort: Sort,
    /// Which groups are looked at.
    pub wanted: Wanted,
    /// The question that waits for its answer.
    pub question: Option<Question>,
    /// Whether the help is shown.
    pub help: bool,
    /// The result of the last action.
    pub note: Option<String>,
    /// Why there are no new figures.
    pub lost: Option<String>,
    histories: HashMap<Vec<u8>, History>,
    queue: Option<Vec<u8>>,
    group: Option<Vec<u8>>,
    focus: Option<Focus>,
    quits: bool,
}

impl App {
    /// Creates the state before the first figures have come.
    pub fn new(place: &str) -> App {
        App {
            place: place.to_owned(),
            ..App::default()
        }
    }

    /// Returns whether the user wants to leave.
    pub fn quits(&self) -> bool {
        self.quits
    }

    /// Applies an update of the sampler.
    pub fn take(&mut self, update: Update) {
        match update {
            Update::Sample(sample) => {
                self.histories
                    .retain(|name, _| sample.queues.iter().any(|q| q.name == *name));
                for queue in &sample.queues {
                    let history = self.histories.entry(queue.name.clone()).or_default();
                    history.add(sample.at, queue);
                }
                self.sample = Some(sample);
                self.lost = None;
                if self.selected().is_none() {
                    let first = self.queues().first().map(|queue| queue.name.clone());
                    self.queue = first;
                    self.screen = Screen::Queues;
                }
            }
            Update::Done(note) => self.note = Some(note),
            Update::Lost(why) => self.lost = Some(why),
        }
    }

    /// Returns what the sampler is to ask for in detail, if that has changed.
    pub fn new_focus(&mut self) -> Option<Request> {
        let focus = Focus {
            queue: self.queue.clone()?,
            wanted: match self.screen {
                Screen::Groups => self.wanted,
                _ => Wanted::Blocked,
            },
            most: match self.screen {
                Screen::Groups => MANY,
                _ => FEW,
            },
        };
        if self.focus.as_ref() == Some(&focus) {
            return None;
        }
        self.focus = Some(focus.clone());
        Some(Request::Focus(focus))
    }

    /// Returns the queues in their order on the screen.
    pub fn queues(&self) -> Vec<&Queue> {
        let mut queues: Vec<&Queue> = match &self.sample {
            Some(sample) => sample.queues.iter().collect(),
            None => Vec::new(),
        };
        // The sort is stable: equal queues stay in the order of their names.
        queues.sort_by_key(|queue| {
            std::cmp::Reverse(match self.sort {
                Sort::Name => 0,
                Sort::Oldest => queue.oldest_ready_age.map_or(0, |age| age + 1),
                Sort::Load => queue.count("ready") + queue.count("running"),
                Sort::Dead => queue.count("dead"),
            })
        });
        queues
    }

    /// The selected queue.
    pub fn selected(&self) -> Option<&Queue> {
        let name = self.queue.as_ref()?;
        self.sample
            .as_ref()?
            .queues
            .iter()
            .find(|queue| queue.name == *name)
    }

    /// Returns the last samples of a queue.
    pub fn history(&self, queue: &Queue) -> Option<&History> {
        self.histories.get(&queue.name)
    }

    /// Returns the details of the selected queue, once they have come. Details of
    /// another queue or another choice of groups do not count.
    pub fn detail(&self) -> Option<&Detail> {
        let detail = self.sample.as_ref()?.detail.as_ref()?;
        let focus = self.focus.as_ref()?;
        let same = detail.focus.queue == focus.queue && detail.focus.wanted == focus.wanted;
        same.then_some(detail)
    }

    /// Returns the groups of the selected queue that are known.
    pub fn groups(&self) -> &[Group] {
        match self.detail().map(|detail| &detail.groups) {
            Some(Ok(groups)) => &groups.found,
            _ => &[],
        }
    }

    /// Returns the selected group, or the first one if that is gone.
    pub fn selected_group(&self) -> Option<&Group> {
        let groups = self.groups();
        let found = groups
            .iter()
            .find(|group| Some(&group.name) == self.group.as_ref());
        found.or(groups.first())
    }

    /// Handles a key press. Returns the request that it makes of the sampler.
    pub fn press(&mut self, key: KeyEvent) -> Option<Request> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            self.quits = true;
            return None;
        }
        if let Some(question) = self.question.take() {
            return match key.code {
                KeyCode::Char('y' | 'Y') => Some(Request::Do(question.deed)),
                _ => {
                    self.note = Some("nothing was changed".to_owned());
                    None
                }
            };
        }
        if self.help {
            self.help = false;
            return None;
        }
        self.note = None;
        match key.code {
            KeyCode::Char('q') => self.quits = true,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.help = true,
            KeyCode::Up | KeyCode::Char('k') => self.step(|at, _| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.step(|at, _| at + 1),
            KeyCode::PageUp => self.step(|at, _| at.saturating_sub(PAGE)),
            KeyCode::PageDown => self.step(|at, _| at + PAGE),
            KeyCode::Home => self.step(|_, _| 0),
            KeyCode::End => self.step(|_, last| last),
            KeyCode::Enter | KeyCode::Right if self.selected().is_some() => {
                self.screen = match self.screen {
                    Screen::Queues => Screen::Queue,
                    Screen::Queue | Screen::Groups => Screen::Groups,
                }
            }
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => {
                self.screen = match self.screen {
                    Screen::Groups => Screen::Queue,
                    Screen::Queue | Screen::Queues => Screen::Queues,
                }
            }
            KeyCode::Char('g') if self.selected().is_some() => self.screen = Screen::Groups,
            KeyCode::Char('f') if self.screen == Screen::Groups => self.wanted = self.wanted.next(),
            KeyCode::Char('s') if self.screen == Screen::Queues => self.sort = self.sort.next(),
            KeyCode::Char('p') => self.ask_pause(),
            KeyCode::Char('r') => self.ask_redrive(),
            _ => {}
        }
        None
    }

    /// Moves the selection. `to` gets its index and the last index, and returns the new
    /// one.
    fn step(&mut self, to: impl Fn(usize, usize) -> usize) {
        match self.screen {
            Screen::Queues => {
                let names: Vec<_> = self
                    .queues()
                    .iter()
                    .map(|queue| queue.name.clone())
                    .collect();
                self.queue = moved(&names, self.queue.as_ref(), to);
                self.group = None;
            }
            Screen::Groups => {
                let names: Vec<_> = self
                    .groups()
                    .iter()
                    .map(|group| group.name.clone())
                    .collect();
                self.group = moved(&names, self.group.as_ref(), to);
            }
            Screen::Queue => {}
        }
    }

    fn ask_pause(&mut self) {
        let Some(queue) = self.selected() else {
            return;
        };
        let (name, shown) = (queue.name.clone(), printable(&queue.name));
        let question = if self.screen == Screen::Groups {
            let Some(group) = self.selected_group() else {
                self.note = Some("no group is selected".to_owned());
                return;
            };
            let shown = format!("group {} of {shown}", printable(&group.name));
            match group.state == "paused" {
                true => resume(&shown, Deed::Resume(name, Some(group.name.clone()))),
                false => pause(&shown, Deed::Pause(name, Some(group.name.clone()))),
            }
        } else {
            match queue.paused {
                true => resume(&shown, Deed::Resume(name, None)),
                false => pause(&shown, Deed::Pause(name, None)),
            }
        };
        self.question = Some(question);
    }

    fn ask_redrive(&mut self) {
        let Some(queue) = self.selected() else {
            return;
        };
        let (dead, shown) = (queue.count("dead"), printable(&queue.name));
        if dead == 0 {
            self.note = Some(format!("{shown} has no dead messages"));
            return;
        }
        let deed = Deed::Redrive(queue.name.clone());
        self.question = Some(Question {
            words: format!("Redrive {} of {shown}?", plural(dead, "dead message")),
            deed,
        });
    }
}

fn pause(what: &str, deed: Deed) -> Question {
    Question {
        words: format!("Pause {what}? Sends and acks go on."),
        deed,
    }
}

fn resume(what: &str, deed: Deed) -> Question {
    Question {
        words: format!("Resume {what}?"),
        deed,
    }
}

fn moved(
    names: &[Vec<u8>],
    selected: Option<&Vec<u8>>,
    to: impl Fn(usize, usize) -> usize,
) -> Option<Vec<u8>> {
    let last = names.len().checked_sub(1)?;
    let at = names
        .iter()
        .position(|name| Some(name) == selected)
        .unwrap_or(0);
    names.get(to(at, last).min(last)).cloned()
}

#[cfg(test)]
mod tests;
