//! The memory of queues with little in them, of which a server may have very many.

use super::fixture::{Fixture, Got};
use crate::op::{Fetch, NackKind};
use crate::settings::{Rate, Settings};

#[test]
fn an_empty_queue_holds_nothing_that_it_has_not_used() {
    // The settings that two queues share count for neither of them.
    let _other = Fixture::new(Settings::default());
    let f = Fixture::new(Settings::default());
    assert!(f.queue.memory_bytes() <= 400, "{}", f.queue.memory_bytes());
}

/// Groups, consumers and what else is for few queues must not be made by passing over them.
#[test]
fn messages_without_options_use_no_part_that_is_for_others() {
    let mut f = Fixture::new(Settings::default());
    for _ in 0..4 {
        f.plain();
    }
    let next = |f: &mut Fixture| -> Got { f.fetch(Fetch::one())[0] };
    let kinds = [NackKind::Silent, NackKind::Backoff, NackKind::Fatal];
    for kind in kinds {
        let (_, receipt) = next(&mut f);
        f.nack(&[receipt], kind);
    }
    let (_, receipt) = next(&mut f);
    f.ack(&[receipt]);
    f.wait(100);
    let (state, indexes) = (&f.queue.state, &f.queue.indexes);
    assert!(state.groups.used().is_none(), "groups");
    assert!(state.consumers.used().is_none(), "consumers");
    assert!(state.seldom.used().is_none(), "seldom");
    assert!(indexes.ready_line.used().is_none(), "ready line");
    assert!(indexes.expected.used().is_none(), "expected");
    assert!(indexes.held.used().is_none(), "held");
    assert!(indexes.expiring.used().is_none(), "expiring");
}

#[test]
fn queues_with_the_same_settings_share_them() {
    let new = |settings| Fixture::new(settings).queue.state.settings;
    let own = || Settings {
        rate: Some(Rate { count: 1, per: 1 }),
        ..Settings::default()
    };
    let (one, other) = (new(own()), new(Settings::default()));
    assert_eq!((&*one, &*other), (&own(), &Settings::default()));
    assert!(std::sync::Arc::ptr_eq(&one, &new(own())));
    assert!(std::sync::Arc::ptr_eq(&other, &new(Settings::default())));
}
