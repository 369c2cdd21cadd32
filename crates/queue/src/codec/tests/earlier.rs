//! What earlier versions had begun when they wrote a snapshot, and what they would have
//! made of it: messages that were purged and whose groups had not heard of it, dead ones
//! that were redriven and not moved yet, groups that had lost their place in the line.
//!
//! Each fixture has the log entries of a queue, its snapshot after the last of them, and
//! its snapshot when that version had completed all.

use super::golden::{bytes, hex, saved};
use crate::codec::log_entry::{Creation, LogEntry};
use crate::op::Fetch;
use crate::queue::rebuild::validate;
use crate::settings::{Clock, OnDead, Settings};
use crate::{Done, Moment, Op, Queue, Seq};

struct Fixture {
    name: &'static str,
    on_dead: OnDead,
    entries: &'static [&'static str],
    begun: &'static str,
    completed: &'static str,
    /// What a FETCH of 20 gives then.
    gives: &'static [Seq],
}

const FIXTURES: [Fixture; 4] = [
    Fixture {
        name: "purged, had failed",
        on_dead: OnDead::Continue,
        entries: &[
            "2301401e18240a0608016178",
            "2302401e18240a0608016278",
            "2303401e18240a0608016378",
            "2304401e18240a0608016478",
            "2305401e18240a0608016178",
            "2306401e18240a0608016278",
            "2307401e18240a0608016378",
            "2308401e18240a0608016478",
            "2309401e18240a060078",
            "250a401e18240a0684017704018094ebdc0300",
            "270b401e18240a0610040102020280e1eb17",
            "2f0c401e18240a060403",
            "230d401e18240a0608016578",
        ],
        begun: "\
            4f01ffff0fb0ea01000000904e000000000000010600000000000000070000000000000080d095ffbc31\
            0b8d80f9c0c1c4820300000a00040000040000000000000000010004000080d095ffbc310109080780d0\
            95ffbc3102030200610c03017780d095ffbc3104000420ac0180a0abfef96280c2d72f00b447ffc1d72f\
            01000100ffc1d72fffc1d72f78030200621bac010080c2d72f01b447ffc1d72f01000100ffc1d72fffc1\
            d72f78030200631bac010080c2d72f02b447ffc1d72f01000100ffc1d72fffc1d72f78030200641bac01\
            0080c2d72f03b447ffc1d72f01000100ffc1d72fffc1d72f78044c000078044c000178044c000278044c\
            000378034800780c02080080d095ffbc31030a65044c00047802000a\
            ",
        completed: "\
            4f01ffff0fb0ea01000000904e000000000000010600000000000000070000000000000080d095ffbc31\
            0b8d80f9c0c1c4820300000a00040000040000000000000000010004000080d095ffbc3101090c020800\
            80d095ffbc310205610b940580a0abfef9620000780c02080080d095ffbc31020662044c0001780c0208\
            0080d095ffbc31020763044c0002780c02080080d095ffbc31020864044c000378034800780c02080080\
            d095ffbc31030a65044c0004780c03017780d095ffbc31040004020006\
            ",
        gives: &[9, 5, 6, 7, 8, 10],
    },
    Fixture {
        name: "purged, was running",
        on_dead: OnDead::Continue,
        entries: &[
            "2301401e18240a0688016103017801780178",
            "2302401e18240a0688016203017801780178",
            "2303401e18240a0688016303017801780178",
            "2304401e18240a0688016403017801780178",
            "2305401e18240a06800201780178",
            "2506401e18240a0684017709028094ebdc0300",
            "2f07401e18240a060404",
        ],
        begun: "\
            4f01ffff0fb0ea01000000904e000000000000010600000000000000070000000000000080d095ffbc31\
            0f8e80f9c0c1c4820300000e00090000000000000000000000010009000080d095ffbc31010e080780d0\
            95ffbc31020a068c80f2818389850602030604020306040203060402030200610c03017780d095ffbc31\
            09000017bc0180a0abfef9620000b640000b0080a8d6b90701007812bc01000000b64000020180a8d6b9\
            07010078044c0000780302006212bc01000001b64000020080a8d6b90701007812bc01000001b6400002\
            0180a8d6b907010078044c0001780302006312bc01000002b64000020080a8d6b90701007812bc010000\
            02b64000020180a8d6b907010078044c0002780302006412bc01000003b64000020080a8d6b907010078\
            12bc01000003b64000020180a8d6b907010078044c00037811b8010000b64000020080a8d6b907010078\
            0348007802000e\
            ",
        completed: "\
            4f01ffff0fb0ea01000000904e000000000000010600000000000000070000000000000080d095ffbc31\
            0f8e80f9c0c1c4820300000e00090000000000000000000000010009000080d095ffbc31010e0c020800\
            80d095ffbc310203610b940380a0abfef9620000780c02080080d095ffbc31020662069403000001780c\
            02080080d095ffbc31020963069403000002780c02080080d095ffbc31020c6406940300000378059002\
            0000780c03017780d095ffbc31090000020005\
            ",
        gives: &[14, 3, 6, 9, 12],
    },
    Fixture {
        name: "redriven",
        on_dead: OnDead::Block,
        entries: &[
            "2301401e18240a068801610201780178",
            "2302401e18240a068801620201780178",
            "2303401e18240a068801630201780178",
            "2304401e18240a068801640201780178",
            "2305401e18240a068003017801780178",
            "2506401e18240a0684017707018094ebdc0300",
            "2707401e18240a06300701020202020202",
            "2e90531e18240a0600ffffffffffffffffff01",
            "23495f1e18240a0608016178",
        ],
        begun: "\
            5401ffff0fb0ea01000000904e000000000000010600000000000100070000000000000088d095ffbc31\
            0d8c80f9c0c1c4820385d095ffbc31010c00070000070007000007000000010007000085d095ffbc3101\
            090c02080085d095ffbc310101610c03017780d095ffbc31070007139c0180a0abfef9620a00a40a0900\
            0900000078044c0000782a020401032430313862636665352d363830302d373030302d383030302d3030\
            303030303030326131316211dc01000001f41900010000010000000278044c0001782a02040105243031\
            3862636665352d363830302d373030302d383030302d3030303030303030333163356311dc01000002f4\
            1900010000010000000278044c0002782a020401072430313862636665352d363830302d373030302d38\
            3030302d3030303030303030333861356411dc01000003f41900010000010000000278044c0003780d98\
            01000aa40a090009000000780d9801000aa40a0900090000007810d8010000f419000100000100000002\
            780694011000007802000c\
            ",
        completed: "\
            4f01ffff0fb0ea01000000904e000000000000010600000000000100070000000000000088d095ffbc31\
            0d8c80f9c0c1c4820300000c00070000070007000007000000010007000085d095ffbc3101090c020800\
            85d095ffbc310101610c03017780d095ffbc31070007139c0180a0abfef9620a00a40a09000900000078\
            044c0000780c02080085d095ffbc310103620e9c01000a01a40a09000900000078044c0001780c020800\
            85d095ffbc310105630e9c01000a02a40a09000900000078044c0002780c02080085d095ffbc31010764\
            0e9c01000a03a40a09000900000078044c0003780d9801000aa40a090009000000780d9801000aa40a09\
            0009000000780d9801000aa40a090009000000780694011000007802000c\
            ",
        gives: &[1, 3, 5, 7, 9, 10, 11],
    },
    Fixture {
        name: "displaced",
        on_dead: OnDead::Continue,
        entries: &[
            "2301401e18240a0608016178",
            "2302401e18240a0608016278",
            "2303401e18240a0608016378",
            "2304401e18240a0608016478",
            "2305401e18240a0628016101e8076c61746572",
            "2306401e18240a0628016201e8076c61746572",
            "2307401e18240a0628016301e8076c61746572",
            "2308401e18240a0628016401e8076c61746572",
            "2309401e18240a060078",
            "250a401e18240a0684017701018094ebdc0300",
            "2f0b401e18240a060401",
        ],
        begun: "\
            4601ffff0fb0ea01000000904e000000000000010600000000000000070000000000000080d095ffbc31\
            0a8a80f9c0c1c482030000090001000000000000000000000001000100030200610c03017780d095ffbc\
            310100001dbc0180a0abfef962000036009480f281838985060080a8d6b9070100780b840400d00f006c\
            61746572030240620944d00f016c61746572030240630944d00f026c61746572030240640944d00f036c\
            61746572020005\
            ",
        completed: "\
            4601ffff0fb0ea01000000904e000000000000010600000000000000070000000000000080d095ffbc31\
            0a8a80f9c0c1c482030000090001000000000000000000000001000100030200610c03017780d095ffbc\
            310100001dbc0180a0abfef962000036009480f281838985060080a8d6b9070100780b840400d00f006c\
            61746572030200620944d00f016c61746572030200630944d00f026c61746572030200640944d00f036c\
            61746572020005\
            ",
        gives: &[],
    },
];

fn given(queue: &mut Queue) -> Vec<Seq> {
    let moment = Moment::at_us(1_700_000_000_100_000);
    let fetch = Op::fetch(Fetch {
        count: 20,
        ..Fetch::one()
    });
    match queue.apply(&fetch, moment) {
        Ok(Done::Fetched(given)) => given.iter().map(|one| one.seq).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_begun_is_completed_when_it_is_loaded() {
    for fixture in FIXTURES {
        let mut block = Some(bytes(fixture.begun));
        let mut loaded = Queue::load(3, &mut || block.take()).unwrap();
        assert_eq!(hex(&saved(&loaded)), fixture.completed, "{}", fixture.name);
        assert_eq!(validate(&loaded), Ok(()), "{}", fixture.name);
        assert_eq!(given(&mut loaded), fixture.gives, "{}", fixture.name);
    }
}

#[test]
fn the_entries_of_earlier_versions_lead_to_the_same_queue() {
    for fixture in FIXTURES {
        let creation = Creation {
            settings: Settings {
                on_dead: fixture.on_dead,
                ..Settings::default()
            },
            clock: Clock::Server,
            salt: 7,
        };
        let mut queue = creation.queue();
        for entry in fixture.entries {
            let entry = bytes(entry);
            LogEntry::decode(&entry)
                .unwrap()
                .replay(&mut queue)
                .unwrap();
        }
        assert_eq!(hex(&saved(&queue)), fixture.completed, "{}", fixture.name);
        assert_eq!(validate(&queue), Ok(()), "{}", fixture.name);
        assert_eq!(given(&mut queue), fixture.gives, "{}", fixture.name);
    }
}
