//! The state of the live view, and how keys change it. It uses neither the terminal
//! nor the server.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::sampler::{Detail, Focus, Request, Update};
use crate::model::change::{what, Change, Target};
use crate::model::group::{Group, Wanted};
use crate::model::overview::{rows, Row, Sort};
use crate::model::watch::{Board, Entry};
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

/// A question that the user must answer before something is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question to the user.
    pub words: String,
    change: Change,
}

/// The state of the live view.
#[derive(Debug, Default)]
pub struct App {
    /// The address of the server.
    pub place: String,
    /// The last figures of all queues.
    pub board: Board,
    /// Whether no colours are wanted.
    pub plain: bool,
    /// The family whose queues are listed, instead of all queues.
    pub inside: Option<Vec<u8>>,
    /// The screen that is shown.
    pub screen: Screen,
    /// The order of the queues.
    pub sort: Sort,
    /// The groups that are looked at.
    pub wanted: Wanted,
    /// The question that waits for its answer.
    pub question: Option<Question>,
    /// Whether the help is shown.
    pub help: bool,
    /// The result of the last action.
    pub note: Option<String>,
    /// The reason why there are no new figures.
    pub lost: Option<String>,
    /// The dangers for the queues, in words.
    pub warnings: Vec<String>,
    /// The part of a name by which the list is filtered.
    pub filter: String,
    /// Whether the filter is being typed.
    pub typing: bool,
    detail: Option<Detail>,
    /// The selected line of the list.
    line: Option<Target>,
    group: Option<Vec<u8>>,
    focus: Option<Focus>,
    quits: bool,
}

impl App {
    /// Creates the state before the first figures have come.
    pub fn new(place: &str) -> App {
        App {
            place: place.to_owned(),
            // An agreement of many programs: https://no-color.org
            plain: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            ..App::default()
        }
    }

    /// Returns the colour of something that is so, if colours are wanted.
    pub fn colour(&self, is_so: bool, colour: Color) -> Option<Color> {
        (is_so && !self.plain).then_some(colour)
    }

    /// Returns whether the user wants to leave.
    pub fn quits(&self) -> bool {
        self.quits
    }

    /// Applies an update of the sampler.
    pub fn take(&mut self, update: Update) {
        match update {
            Update::Sample(sample) => {
                self.board.take(sample.round);
                self.detail = sample.detail;
                self.lost = None;
                if let Some(warnings) = sample.warnings {
                    self.warnings = warnings;
                }
                if self.inside.is_some() && self.rows().is_empty() {
                    self.inside = None;
                }
                let is_listed = self.index(&self.rows()).is_some();
                if self.selected().is_none() {
                    let first = self.rows().first().map(Row::target);
                    self.line = first;
                    self.screen = Screen::Queues;
                } else if !is_listed && self.screen == Screen::Queues {
                    // The chosen line is not listed any more, such as a queue of a family when the
                    // next queue of it is found.
                    self.line = self.rows().first().map(Row::target);
                }
            }
            Update::Done(note) => self.note = Some(note),
            Update::Lost(why) => self.lost = Some(why),
        }
    }

    /// Returns the details that the sampler is to ask for, if they have changed. `room`
    /// is the number of lines of the list that fit on the screen.
    pub fn new_focus(&mut self, room: usize) -> Option<Request> {
        let queue = match self.line.clone()? {
            Target::Queue(name) => Some(name),
            _ => None,
        };
        let groups = self.screen == Screen::Groups;
        let focus = Focus {
            queue,
            seen: self.seen(room),
            wanted: if groups { self.wanted } else { Wanted::Held },
            most: if groups { MANY } else { FEW },
        };
        if self.focus.as_ref() == Some(&focus) {
            return None;
        }
        self.focus = Some(focus.clone());
        Some(Request::Focus(focus))
    }

    /// Returns the names of the queues that are on the screen, whose figures are to be
    /// new in each sample.
    fn seen(&self, room: usize) -> Vec<Vec<u8>> {
        let rows = self.rows();
        let first = first_shown(self.index(&rows).unwrap_or(0), room);
        let shown = rows.iter().skip(first).take(room);
        shown
            .filter(|row| row.family.is_none())
            .map(|row| row.name().to_vec())
            .collect()
    }

    /// Returns the lines of the list in their order.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = rows(&self.board, self.inside.as_deref(), self.sort);
        if !self.filter.is_empty() {
            let sought = self.filter.to_lowercase();
            rows.retain(|row| printable(row.name()).to_lowercase().contains(&sought));
        }
        rows
    }

    /// Returns the position of the selected line.
    pub fn index(&self, rows: &[Row]) -> Option<usize> {
        let line = self.line.as_ref()?;
        rows.iter().position(|row| match line {
            Target::Queue(name) => row.family.is_none() && row.name() == name,
            Target::Family(name) => row.family == Some(name),
            Target::Several(_) | Target::Matching(_) => false,
        })
    }

    /// The selected queue or family.
    pub fn selected(&self) -> Option<&Entry> {
        match self.line.as_ref()? {
            Target::Queue(name) => self.board.get(name),
            Target::Family(name) => self.board.family(name),
            Target::Several(_) | Target::Matching(_) => None,
        }
    }

    /// Returns the details of the selected queue, once they have come. Details of
    /// another queue or another choice of groups do not count.
    pub fn detail(&self) -> Option<&Detail> {
        let detail = self.detail.as_ref()?;
        let focus = self.focus.as_ref()?;
        let same = detail.focus.queue == focus.queue && detail.focus.wanted == focus.wanted;
        same.then_some(detail)
    }

    /// Returns the groups of the selected queue, as far as they are known.
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

    /// Handles a key press. Returns what the sampler is to do because of it, if anything.
    pub fn press(&mut self, key: KeyEvent) -> Option<Request> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            self.quits = true;
            return None;
        }
        if let Some(question) = self.question.take() {
            return match key.code {
                KeyCode::Char('y' | 'Y') => Some(Request::Do(question.change)),
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
        if self.typing {
            self.type_filter(key.code);
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
            KeyCode::Enter | KeyCode::Right if self.selected().is_some() => self.enter(),
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => self.leave(),
            KeyCode::Char('g') if matches!(self.line, Some(Target::Queue(_))) => {
                self.screen = Screen::Groups;
            }
            KeyCode::Char('f') if self.screen == Screen::Groups => self.wanted = self.wanted.next(),
            KeyCode::Char('s') if self.screen == Screen::Queues => self.sort = self.sort.next(),
            KeyCode::Char('/') if self.screen == Screen::Queues => self.typing = true,
            KeyCode::Char('p') => self.ask_pause(),
            KeyCode::Char('r') => self.ask_redrive(),
            _ => {}
        }
        None
    }

    /// Changes the filter by a key. Enter keeps it, Esc ends it.
    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
        let rows = self.rows();
        if self.index(&rows).is_none() {
            let first = rows.first().map(Row::target);
            self.line = first;
        }
    }

    /// Goes into the selected queue, then its groups; of a family, to its queues.
    fn enter(&mut self) {
        if let Some(Target::Family(family)) = &self.line {
            self.inside = Some(family.clone());
            self.line = self.rows().first().map(Row::target);
            return;
        }
        self.screen = match self.screen {
            Screen::Queues => Screen::Queue,
            Screen::Queue | Screen::Groups => Screen::Groups,
        }
    }

    /// Goes back, from the queues of a family to the list of all.
    fn leave(&mut self) {
        self.screen = match self.screen {
            Screen::Groups => Screen::Queue,
            Screen::Queue => Screen::Queues,
            Screen::Queues => {
                if !self.filter.is_empty() {
                    self.filter.clear();
                } else if let Some(family) = self.inside.take() {
                    self.line = Some(Target::Family(family));
                }
                Screen::Queues
            }
        }
    }

    /// Moves the selection. `to` gets its index and the last index, and returns the new
    /// one.
    fn step(&mut self, to: impl Fn(usize, usize) -> usize) {
        match self.screen {
            Screen::Queues => {
                let rows = self.rows();
                let at = self.index(&rows).unwrap_or(0);
                let last = rows.len().saturating_sub(1);
                self.line = rows.get(to(at, last).min(last)).map(Row::target);
                self.group = None;
            }
            Screen::Groups => {
                let groups = self.groups();
                let name = self.selected_group().map(|group| &group.name);
                let at = groups.iter().position(|group| Some(&group.name) == name);
                let last = groups.len().saturating_sub(1);
                let group = groups.get(to(at.unwrap_or(0), last).min(last));
                self.group = group.map(|group| group.name.clone());
            }
            Screen::Queue => {}
        }
    }

    fn ask_pause(&mut self) {
        let (Some(entry), Some(target)) = (self.selected(), self.line.clone()) else {
            return;
        };
        let (paused, group) = if self.screen == Screen::Groups {
            let Some(group) = self.selected_group() else {
                self.note = Some("no group is selected".to_owned());
                return;
            };
            (group.state == "paused", Some(group.name.clone()))
        } else {
            (entry.queue.paused, None)
        };
        let what = what(&target, group.as_deref());
        self.question = Some(match paused {
            true => Question {
                words: format!("Resume {what}?"),
                change: Change::Resume(target, group),
            },
            false => Question {
                words: format!("Pause {what}? Sends and acks go on."),
                change: Change::Pause(target, group, None),
            },
        });
    }

    fn ask_redrive(&mut self) {
        let (Some(entry), Some(target)) = (self.selected(), self.line.clone()) else {
            return;
        };
        let (dead, shown) = (entry.queue.count("dead"), target.shown());
        if dead == 0 {
            self.note = Some(format!("{shown} has no dead messages"));
            return;
        }
        self.question = Some(Question {
            words: format!("Redrive {} of {shown}?", plural(dead, "dead message")),
            change: Change::Redrive(target, None),
        });
    }
}

/// Returns the first line of a list to show, so that the selected one is among the
/// `room` lines.
pub fn first_shown(selected: usize, room: usize) -> usize {
    (selected + 1).saturating_sub(room)
}

#[cfg(test)]
mod tests;
