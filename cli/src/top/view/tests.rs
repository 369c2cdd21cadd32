use std::time::{Duration, Instant};

use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;

use super::*;
use crate::model::group::{Group, Groups, Why};
use crate::model::queue::{Queue, Totals};
use crate::model::watch::Round;
use crate::model::workers::Worker;
use crate::text::width;
use crate::top::sampler::{Detail, Focus, Request, Sample, Update};

/// Returns the lines of the screen on a terminal of this size.
fn screen(app: &App, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    (0..rows)
        .map(|y| {
            (0..columns)
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
        })
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn orders(sent: u64) -> Queue {
    Queue {
        name: b"orders".to_vec(),
        counts: [12, 3, 41, 1, 4, 250_000, 2, 0, 0],
        groups: 12,
        consumers: 1,
        blocked_clients: 2,
        now: 1_000_000,
        totals: Totals {
            sent,
            acked: sent,
            ..Totals::default()
        },
        next_due_at: Some(1_005_000),
        oldest_ready_age: Some(1500),
        lateness: [Some(3), Some(18), Some(2100)],
        ..Queue::default()
    }
}

fn mails() -> Queue {
    Queue {
        name: b"mails\x1b[2J".to_vec(),
        paused: true,
        ..Queue::default()
    }
}

fn detail(focus: Focus) -> Detail {
    Detail {
        focus,
        groups: Ok(Groups {
            found: vec![Group {
                name: b"user-7".to_vec(),
                state: "blocked".to_owned(),
                waiting: 2,
                head: Some(b"o1".to_vec()),
                head_due_at: Some(1_030_000),
                why: Some(Why {
                    code: "backoff".to_owned(),
                    why: "A delivery of it failed.".to_owned(),
                    until: Some(1_030_000),
                    by: String::new(),
                }),
                ..Group::default()
            }],
            more: false,
        }),
        consumers: vec![Worker {
            name: "worker-1".to_owned(),
            running: 4,
            idle: Some(1000),
            ..Worker::default()
        }],
    }
}

fn sample(at: Instant, fresh: Vec<Queue>, detail: Option<Detail>) -> Sample {
    Sample {
        round: Round {
            at,
            names: fresh.len(),
            fresh,
            gone: Vec::new(),
            complete: true,
        },
        detail,
        warnings: None,
    }
}

/// Returns the live view after two samples, with these keys pressed between them.
fn app(keys: &[KeyCode]) -> App {
    let mut app = App::new("example:6379/0");
    app.sort = crate::model::overview::Sort::Name;
    let start = Instant::now();
    let sample = |second, sent, detail| {
        let at = start + Duration::from_secs(second);
        sample(at, vec![mails(), orders(sent)], detail)
    };
    app.take(Update::Sample(sample(0, 1000, None)));
    press(&mut app, KeyCode::Down);
    for key in keys {
        press(&mut app, *key);
    }
    let Some(Request::Focus(focus)) = app.new_focus(9) else {
        panic!("something is selected");
    };
    app.take(Update::Sample(sample(1, 1200, Some(detail(focus)))));
    app
}

fn press(app: &mut App, code: KeyCode) {
    app.press(KeyEvent::new(code, KeyModifiers::NONE));
}

fn has(screen: &[String], text: &str) {
    assert!(
        screen.iter().any(|line| line.contains(text)),
        "no {text:?} in\n{}",
        screen.join("\n")
    );
}

#[test]
fn the_list_fits_80_by_24() {
    let shown = screen(&app(&[]), 80, 24);
    assert_eq!(
        shown[0].split_whitespace().collect::<Vec<_>>().join(" "),
        "dq top example:6379/0 2 queues, 57 pending"
    );
    assert_eq!(
        shown[1],
        " QUEUE         READY LATER BLOCKED   RUN  DEAD SENT/s  ACK/s OLDEST     LATENESS"
    );
    assert_eq!(
        shown[2],
        " mails… PAUSED     0     0       0     0     0      0      0      -           ▁▁"
    );
    assert_eq!(
        shown[3],
        ">orders            3    13      41     4     2    200    200   1.5s           ▄▄"
    );
    has(&shown, "── orders  (sorted by name) ──");
    has(
        &shown,
        "12 delayed, 1 retry, 250k finished, 0 cancelled; next due in 5.0s",
    );
    has(
        &shown,
        "lateness p50 3ms, p99 18ms, worst 2.1s; oldest 1.5s",
    );
    has(
        &shown,
        "1 named consumers, 2 clients waiting in FETCH, 12 groups",
    );
    has(&shown, "held: user-7 (2 waiting): A delivery of it failed.");
    assert!(shown[23].ends_with("? help"), "{}", shown[23]);
}

#[test]
fn one_queue_shows_states_rates_groups_and_consumers() {
    let shown = screen(&app(&[KeyCode::Enter]), 80, 24);
    has(&shown, " ready            3 #");
    has(&shown, " finished      250k ##################");
    has(&shown, "sent              200.0/s     1200");
    has(&shown, "▁ below 10ms");
    has(&shown, "held: user-7");
    has(&shown, " worker-1  running 4, acked 0, nacked 0");
    has(&shown, "seen 1.0s ago");
}

#[test]
fn a_held_group_shows_why_and_until_when() {
    let shown = screen(&app(&[KeyCode::Char('g')]), 80, 24);
    has(&shown, "── orders: held groups ──");
    has(
        &shown,
        ">user-7           blocked       2     0 o1                in 30.0s  backoff",
    );
    has(
        &shown,
        "Its first message is o1, due in 30.0s. A delivery of it failed. That ends in",
    );
}

#[test]
fn a_paused_queue_is_marked_in_words() {
    let mut app = app(&[]);
    press(&mut app, KeyCode::Up);
    has(&screen(&app, 80, 24), "PAUSED  (sorted by name) ──");
    press(&mut app, KeyCode::Enter);
    has(&screen(&app, 80, 24), "PAUSED: nothing is delivered");
}

#[test]
fn questions_and_help_cover_the_screen() {
    let mut app = app(&[]);
    press(&mut app, KeyCode::Char('p'));
    let shown = screen(&app, 80, 24);
    has(&shown, "│ Pause orders? Sends and acks go on. │");
    has(&shown, "y: yes    any other key: no");
    press(&mut app, KeyCode::Char('n'));
    has(&screen(&app, 80, 24), "* nothing was changed");
    press(&mut app, KeyCode::Char('?'));
    let shown = screen(&app, 80, 24);
    for line in help::LINES {
        has(&shown, line);
    }
}

#[test]
fn a_lost_connection_is_shown_and_the_last_figures_stay() {
    let mut app = app(&[]);
    app.take(Update::Lost("no connection: refused".to_owned()));
    let shown = screen(&app, 80, 24);
    has(&shown, "! no connection: refused - trying again");
    has(&shown, ">orders ");
}

#[test]
fn a_warning_is_shown_while_nothing_else_is() {
    let mut app = app(&[]);
    let mut warned = sample(Instant::now(), vec![mails(), orders(9)], None);
    warned.warnings = Some(vec!["appendonly is no".to_owned(), "x".to_owned()]);
    app.take(Update::Sample(warned));
    has(
        &screen(&app, 80, 24),
        "warning (and 1 more): appendonly is no",
    );
    press(&mut app, KeyCode::Char('/'));
    press(&mut app, KeyCode::Char('o'));
    has(&screen(&app, 80, 24), "/o_");
    press(&mut app, KeyCode::Enter);
    has(&screen(&app, 80, 24), "only names with \"o\"");
}

#[test]
fn every_screen_fits_every_size() {
    for keys in [
        &[][..],
        &[KeyCode::Enter],
        &[KeyCode::Char('g')],
        &[KeyCode::Char('?')],
    ] {
        let app = app(keys);
        for columns in [1, 5, 20, 60, 80, 132, 300] {
            for rows in [1, 2, 3, 5, 10, 24, 60] {
                let shown = screen(&app, columns, rows);
                assert!(shown.iter().all(|line| width(line) <= usize::from(columns)));
            }
        }
    }
    for empty in [App::new("here"), {
        let mut app = App::new("here");
        app.take(Update::Sample(sample(Instant::now(), Vec::new(), None)));
        app
    }] {
        screen(&empty, 80, 24);
        screen(&empty, 3, 3);
    }
}

#[test]
fn the_selected_queue_is_shown_among_many() {
    let mut app = App::new("here");
    let queues = (0..1000)
        .map(|i| Queue {
            name: format!("q{i:04}").into_bytes(),
            ..Queue::default()
        })
        .collect();
    app.take(Update::Sample(sample(Instant::now(), queues, None)));
    press(&mut app, KeyCode::End);
    has(&screen(&app, 80, 24), ">q0999");
    press(&mut app, KeyCode::PageUp);
    has(&screen(&app, 80, 24), ">q0989");
}

#[test]
fn the_queues_of_a_family_are_one_line_until_it_is_entered() {
    let mut app = App::new("here");
    let queues = ["f:{0}", "f:{1}", "z"].map(|name| Queue {
        name: name.as_bytes().to_vec(),
        ..Queue::default()
    });
    app.take(Update::Sample(sample(Instant::now(), queues.into(), None)));
    let shown = screen(&app, 80, 24);
    has(&shown, ">f:{*} x2 ");
    has(&shown, "── f:{*}: 2 queues ──");
    press(&mut app, KeyCode::Enter);
    let shown = screen(&app, 80, 24);
    has(&shown, ">f:{0} ");
    has(&shown, " f:{1} ");
    assert!(!shown.iter().any(|line| line.starts_with(" z ")));
    press(&mut app, KeyCode::Esc);
    has(&screen(&app, 80, 24), ">f:{*} x2 ");
    press(&mut app, KeyCode::Char('p'));
    has(&screen(&app, 80, 24), "Pause f:{*}? Sends and acks go on.");
}

#[test]
fn colours_say_something_and_can_be_left_out() {
    let coloured = |plain: bool| {
        let mut app = app(&[]);
        app.plain = plain;
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &app)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells = buffer.content.iter().filter(|cell| cell.fg != Color::Reset);
        cells.map(|cell| cell.symbol()).collect::<String>()
    };
    // The queue that is paused. The other one is selected, which shows no colours.
    assert!(coloured(false).contains("PAUSED"));
    assert_eq!(coloured(true), "");
}
