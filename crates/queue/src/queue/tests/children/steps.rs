//! Random operations on two queues with parents and children.

use proptest::prelude::*;

use crate::message::after::OnFail;
use crate::message::kin::{Children, Kin, Parent};
use crate::message::state::State;
use crate::message::{Choices, RareChoices};
use crate::op::{Fetch, Op, Redrive, Send};
use crate::Millis;

/// The keys of the queues. The parents are in the first one.
pub const KEYS: [&str; 2] = ["q", "c"];
pub const IDS: [&str; 6] = ["p1", "p2", "p3", "a", "b", "c"];
pub const PARENTS: u8 = 3;

#[derive(Debug, Clone)]
pub enum Step {
    Send {
        queue: bool,
        id: u8,
        parent: Option<(u8, u8)>,
        children: Option<u64>,
        replace: bool,
        rerun: bool,
    },
    Fetch(bool, u64, bool),
    Ack(u8),
    Nack(u8, bool),
    Cancel(bool, u8),
    Redrive(bool),
    Purge(bool, u8),
    Wait(Millis),
}

pub fn step() -> impl Strategy<Value = Step> {
    let parent = prop::option::weighted(0.8, (0..PARENTS, 0..3u8));
    let children = prop::option::weighted(0.5, 1..4u64);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let send = (0..IDS.len() as u8, parent, children, flags);
    prop_oneof![
        12 => send.prop_map(|(id, parent, children, (queue, replace, rerun))| Step::Send {
            queue: queue && id >= PARENTS,
            id,
            parent: parent.filter(|(of, _)| *of != id),
            children: children.filter(|_| id < PARENTS),
            replace: replace || rerun,
            rerun,
        }),
        5 => (any::<bool>(), 1..4u64, any::<bool>()).prop_map(|(q, n, no)| Step::Fetch(q, n, no)),
        4 => any::<u8>().prop_map(Step::Ack),
        4 => (any::<u8>(), any::<bool>()).prop_map(|(n, fatal)| Step::Nack(n, fatal)),
        2 => (any::<bool>(), 0..IDS.len() as u8).prop_map(|(q, id)| Step::Cancel(q, id)),
        2 => any::<bool>().prop_map(Step::Redrive),
        1 => (any::<bool>(), 0..5u8).prop_map(|(q, of)| Step::Purge(q, of)),
        2 => (0..60u64).prop_map(Step::Wait),
    ]
}

impl Step {
    /// The operation, and to which queue it is applied. `None` for what depends on what runs.
    pub fn operation(&self) -> Option<(usize, Op<'static>)> {
        let of = |queue: &bool| usize::from(*queue);
        Some(match self {
            Step::Send {
                queue,
                id,
                parent,
                children,
                replace,
                rerun,
            } => {
                let parent = parent.map(|(id, on_dead)| Parent {
                    key: Box::from(*b"q"),
                    id: IDS[usize::from(id)].as_bytes().into(),
                    on_dead: OnFail::ALL[usize::from(on_dead)],
                });
                let children = children.map(|total| Box::new(Children::new(total)));
                let kin = Kin { parent, children };
                let rare = RareChoices {
                    kin: (kin != Kin::default()).then(|| Box::new(kin)),
                    ..RareChoices::default()
                };
                let mut choices = Choices::default();
                choices.change_rare(|known| *known = rare);
                // A message that is no child could be sent with RERUN while a child of the same id
                // runs. How that run ends could not be seen afterwards, so only children are sent
                // so.
                let rerun = *rerun && choices.parent().is_some();
                let send = Send {
                    id: Some(IDS[usize::from(*id)].as_bytes().into()),
                    replace: *replace,
                    rerun,
                    choices,
                    ..Send::plain(b"x")
                };
                (of(queue), Op::Send(send))
            }
            Step::Fetch(queue, count, no_ack) => {
                let fetch = Fetch {
                    count: *count,
                    no_ack: *no_ack,
                    ..Fetch::one()
                };
                (of(queue), Op::fetch(fetch))
            }
            Step::Cancel(queue, id) => {
                let ids = vec![IDS[usize::from(*id)].as_bytes().into()];
                (of(queue), Op::Cancel { ids })
            }
            Step::Redrive(queue) => (of(queue), Op::Redrive(Redrive::Oldest(2))),
            Step::Purge(queue, kind) => {
                let states = [State::Dead, State::Ready, State::Held, State::Finished];
                let state = states.get(usize::from(*kind)).copied();
                (of(queue), Op::Purge { state, group: None })
            }
            Step::Ack(_) | Step::Nack(..) | Step::Wait(_) => return None,
        })
    }
}
