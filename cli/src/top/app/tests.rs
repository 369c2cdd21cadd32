use std::time::{Duration, Instant};

use super::*;
use crate::model::group::Groups;
use crate::model::queue::Queue;
use crate::model::watch::Round;
use crate::top::sampler::Sample;

/// Returns a queue with this many dead messages.
fn queue(name: &str, dead: u64) -> Queue {
    let mut queue = Queue {
        name: name.as_bytes().to_vec(),
        ..Queue::default()
    };
    queue.counts[6] = dead;
    queue
}

/// Returns a sample in which these are all queues.
fn sample(app: &App, queues: Vec<Queue>) -> Sample {
    let left = |name: &Vec<u8>| !queues.iter().any(|queue| queue.name == *name);
    let before = app.board.entries().map(|entry| entry.queue.name.clone());
    Sample {
        round: Round {
            at: Instant::now(),
            gone: before.filter(left).collect(),
            names: queues.len(),
            fresh: queues,
            complete: true,
        },
        detail: None,
        warnings: None,
    }
}

/// Lets these be all queues.
fn take(app: &mut App, queues: Vec<Queue>) {
    let sample = sample(app, queues);
    app.take(Update::Sample(sample));
}

fn app() -> App {
    let mut app = App::new("here:1/0");
    app.sort = Sort::Name;
    let mut old = queue("b", 0);
    old.oldest_ready_age = Some(500);
    take(&mut app, vec![queue("a", 1), old, queue("c", 7)]);
    app
}

fn a() -> Target {
    Target::Queue(b"a".to_vec())
}

fn press(app: &mut App, code: KeyCode) -> Option<Request> {
    app.press(KeyEvent::new(code, KeyModifiers::NONE))
}

fn selected(app: &App) -> &[u8] {
    &app.selected().unwrap().queue.name
}

#[test]
fn the_selection_follows_its_queue() {
    let mut app = app();
    assert_eq!(selected(&app), b"a");
    press(&mut app, KeyCode::Up);
    assert_eq!(selected(&app), b"a");
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Char('j'));
    press(&mut app, KeyCode::Down);
    assert_eq!(selected(&app), b"c");
    press(&mut app, KeyCode::Home);
    assert_eq!(selected(&app), b"a");
    press(&mut app, KeyCode::Down);
    take(&mut app, vec![queue("0", 0), queue("a", 0), queue("b", 0)]);
    assert_eq!(selected(&app), b"b");
    take(&mut app, vec![queue("0", 0), queue("a", 0)]);
    assert_eq!(selected(&app), b"0");
    take(&mut app, Vec::new());
    assert!(app.selected().is_none());
    for code in [
        KeyCode::Down,
        KeyCode::Enter,
        KeyCode::Char('p'),
        KeyCode::Char('r'),
    ] {
        assert_eq!(press(&mut app, code), None);
    }
    assert!(app.question.is_none());
}

#[test]
fn a_queue_that_becomes_part_of_a_family_is_not_selected_any_more() {
    let mut app = App::new("here:1/0");
    take(&mut app, vec![queue("f:{0}", 0)]);
    assert_eq!(selected(&app), b"f:{0}");
    take(&mut app, vec![queue("f:{0}", 0), queue("f:{1}", 0)]);
    assert_eq!(selected(&app), b"f:{*}");
}

#[test]
fn sort_key_reaches_every_order() {
    let mut app = app();
    let order = |app: &App| -> Vec<u8> { app.rows().iter().map(|row| row.name()[0]).collect() };
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(order(&app));
        press(&mut app, KeyCode::Char('s'));
    }
    assert_eq!(seen, [b"abc", b"bac", b"abc", b"cab", b"cab"]);
}

#[test]
fn a_filter_is_typed_and_ended() {
    let mut app = app();
    press(&mut app, KeyCode::Char('/'));
    press(&mut app, KeyCode::Char('C'));
    assert!(app.typing && !app.quits());
    assert_eq!((app.rows().len(), selected(&app)), (1, &b"c"[..]));
    press(&mut app, KeyCode::Char('q'));
    assert!(app.rows().is_empty() && app.selected().is_none());
    press(&mut app, KeyCode::Backspace);
    press(&mut app, KeyCode::Enter);
    assert!(!app.typing);
    assert_eq!(selected(&app), b"c");
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.rows().len(), 3);
    press(&mut app, KeyCode::Char('/'));
    press(&mut app, KeyCode::Char('b'));
    press(&mut app, KeyCode::Esc);
    assert_eq!((app.typing, app.rows().len()), (false, 3));
}

#[test]
fn enter_and_escape_move_between_screens() {
    let mut app = app();
    press(&mut app, KeyCode::Enter);
    assert_eq!(app.screen, Screen::Queue);
    press(&mut app, KeyCode::Char('g'));
    assert_eq!(app.screen, Screen::Groups);
    press(&mut app, KeyCode::Esc);
    press(&mut app, KeyCode::Esc);
    assert_eq!(app.screen, Screen::Queues);
    press(&mut app, KeyCode::Char('g'));
    assert_eq!(app.screen, Screen::Groups);
    // The queue is gone, so the list of queues is shown again.
    take(&mut app, vec![queue("z", 0)]);
    assert_eq!(app.screen, Screen::Queues);
}

#[test]
fn only_yes_makes_a_change() {
    let mut app = app();
    assert_eq!(press(&mut app, KeyCode::Char('p')), None);
    let question = app.question.clone().unwrap();
    assert_eq!(question.words, "Pause a? Sends and acks go on.");
    for no in [
        KeyCode::Char('n'),
        KeyCode::Esc,
        KeyCode::Enter,
        KeyCode::Char('q'),
    ] {
        app.question = Some(question.clone());
        assert_eq!(press(&mut app, no), None);
        assert_eq!((app.question.as_ref(), app.quits()), (None, false));
    }
    app.question = Some(question);
    let pause = Request::Do(Change::Pause(a(), None, None));
    assert_eq!(press(&mut app, KeyCode::Char('y')), Some(pause));
    assert_eq!(press(&mut app, KeyCode::Char('y')), None);
}

#[test]
fn pause_key_resumes_a_paused_queue() {
    let mut app = app();
    let mut paused = queue("a", 0);
    paused.paused = true;
    take(&mut app, vec![paused]);
    press(&mut app, KeyCode::Char('p'));
    assert_eq!(app.question.as_ref().unwrap().words, "Resume a?");
    let resume = Request::Do(Change::Resume(a(), None));
    assert_eq!(press(&mut app, KeyCode::Char('y')), Some(resume));
}

#[test]
fn redrive_key_redrives_dead_messages() {
    let mut app = app();
    press(&mut app, KeyCode::Char('r'));
    assert_eq!(
        app.question.as_ref().unwrap().words,
        "Redrive 1 dead message of a?"
    );
    let redrive = Request::Do(Change::Redrive(a(), None));
    assert_eq!(press(&mut app, KeyCode::Char('y')), Some(redrive));
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Char('r'));
    assert_eq!(app.question, None);
    assert_eq!(app.note.as_deref(), Some("b has no dead messages"));
}

#[test]
fn a_question_escapes_the_name_of_the_queue() {
    let mut app = App::new("here");
    take(&mut app, vec![queue("a\x1b[2J", 0)]);
    press(&mut app, KeyCode::Char('p'));
    assert!(app.question.unwrap().words.starts_with("Pause a\\x1b[2J?"));
}

#[test]
fn a_group_is_paused_and_resumed() {
    let mut app = app();
    press(&mut app, KeyCode::Char('g'));
    let Some(Request::Focus(focus)) = app.new_focus(9) else {
        panic!("groups are looked at");
    };
    assert_eq!(
        (focus.queue.as_deref(), focus.wanted),
        (Some(&b"a"[..]), Wanted::Held)
    );
    assert_eq!(app.new_focus(9), None);
    let group = |name: &str, state: &str| Group {
        name: name.as_bytes().to_vec(),
        state: state.to_owned(),
        ..Group::default()
    };
    let mut looked = sample(&app, vec![queue("a", 0)]);
    looked.detail = Some(Detail {
        focus,
        groups: Ok(Groups {
            found: vec![group("g1", "blocked"), group("g2", "paused")],
            more: false,
        }),
        consumers: Vec::new(),
    });
    app.take(Update::Sample(looked));
    press(&mut app, KeyCode::Char('p'));
    let pause = Request::Do(Change::Pause(a(), Some(b"g1".to_vec()), None));
    assert_eq!(press(&mut app, KeyCode::Char('y')), Some(pause));
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Char('p'));
    let resume = Request::Do(Change::Resume(a(), Some(b"g2".to_vec())));
    assert_eq!(press(&mut app, KeyCode::Char('y')), Some(resume));
    // Other groups are wanted, so the known ones are no longer shown.
    press(&mut app, KeyCode::Char('f'));
    assert!(app.new_focus(9).is_some());
    assert!(app.detail().is_none());
    press(&mut app, KeyCode::Char('p'));
    assert_eq!(app.question, None);
}

#[test]
fn new_figures_end_a_lost_connection() {
    let mut app = app();
    app.take(Update::Lost("no connection: refused".to_owned()));
    assert!(app.lost.is_some());
    assert_eq!(selected(&app), b"a");
    take(&mut app, vec![queue("a", 0)]);
    assert_eq!(app.lost, None);
}

#[test]
fn rates_come_from_samples() {
    let mut app = App::new("here");
    let start = Instant::now();
    for second in 0..3 {
        let mut queue = queue("a", 0);
        queue.totals.sent = second * 40;
        let mut sample = sample(&app, vec![queue]);
        sample.round.at = start + Duration::from_secs(second);
        app.take(Update::Sample(sample));
    }
    let rates = app.selected().unwrap().rates();
    assert_eq!(rates.unwrap().sent, 40.0);
}

#[test]
fn q_and_ctrl_c_quit() {
    for key in [
        KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE),
        KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        let mut app = app();
        app.press(key);
        assert!(app.quits());
    }
    let mut app = app();
    press(&mut app, KeyCode::Char('?'));
    assert!(app.help);
    press(&mut app, KeyCode::Char('q'));
    assert!(!app.help && !app.quits());
}
