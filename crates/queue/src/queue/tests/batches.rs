//! Batches of a group: the fate of the rest when one message ends. Also the list of
//! deliveries that FETCH reuses.

use super::fixture::{new_message, with_ttl, Fixture};
use crate::message::state::State;
use crate::op::{Done, Fetch, Op};
use crate::settings::Settings;
use crate::Seq;

#[test]
fn batch_messages_that_come_back_after_their_ttl_count_as_expired() {
    let settings = Settings {
        lease: 10,
        ..Settings::default()
    };
    let mut b = Fixture::new(settings);
    let sent = [(); 2].map(|()| b.send(with_ttl(new_message(Some("g")), 10)));
    let got = b.fetch(Fetch {
        count: 2,
        per_group: 2,
        ..Fetch::one()
    });
    assert_eq!(got.len(), 2);
    let ticked = b.wait(10);
    assert_eq!((ticked.timeouts, ticked.expired), (1, 2));
    for seq in sent {
        assert_eq!(b.state(seq), Some(State::Dead));
        assert_eq!(b.queue.message(seq).unwrap().due, b.now - 10);
    }
}

#[test]
fn fetch_reuses_a_list_of_deliveries_that_was_taken_back() {
    let mut b = Fixture::new(Settings::default());
    let fetch = Op::fetch(Fetch {
        count: 5,
        ..Fetch::one()
    });
    let mut lists = Vec::new();
    for n in [3, 0, 2] {
        let sent: Vec<Seq> = (0..n).map(|_| b.plain()).collect();
        let done = b.apply(&fetch);
        let Done::Fetched(given) = &done else {
            panic!("{done:?}");
        };
        let seqs: Vec<Seq> = given.iter().map(|delivered| delivered.seq).collect();
        assert_eq!(seqs, sent);
        lists.push((given.as_ptr(), given.capacity()));
        b.queue.take_back(done);
    }
    assert!(lists[0].1 >= 3);
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:?}");
}

#[test]
fn fetch_does_not_keep_a_long_list_of_deliveries() {
    let mut b = Fixture::new(Settings::default());
    for _ in 0..1000 {
        b.plain();
    }
    let done = b.apply(&Op::fetch(Fetch {
        count: 1000,
        ..Fetch::one()
    }));
    b.queue.take_back(done);
    assert_eq!(b.apply(&Op::fetch(Fetch::one())), Done::Fetched(Vec::new()));
    let Done::Fetched(given) = b.apply(&Op::fetch(Fetch::one())) else {
        panic!("no list");
    };
    assert_eq!(given.capacity(), 0);
}
