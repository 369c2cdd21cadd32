use super::*;
use crate::takeover::record::tests::packed;

fn peer(is_bull: bool) -> BullMq {
    let options = Options {
        is_bull,
        version: None,
        stalls: 1,
    };
    BullMq::new(None, options)
}

fn translated(record: &Record) -> Vec<String> {
    crate::takeover::peer::tests::translated(&peer(false), record).unwrap()
}

#[test]
fn data_keep_every_digit_and_short_options_their_long_names() {
    let record = packed(
        "wait",
        "",
        "7",
        &[
            ("name", "welcome"),
            ("data", "{\"n\":12345678901234567890123,\"f\":1.10}"),
            (
                "opts",
                "{\"attempts\":0,\"kl\":5,\"de\":{\"id\":\"x\"},\"fpof\":true}",
            ),
            ("timestamp", "5"),
            ("deid", "x"),
        ],
        &[],
    );
    assert_eq!(
        translated(&record),
        [
            "DQ.SEND bull:default {\"name\":\"welcome\",\"opts\":{\"keepLogs\":5,\"deduplication\":{\"id\":\"x\"},\
             \"failParentOnFailure\":true},\"timestamp\":5,\"deduplicationId\":\"x\",\
             \"data\":{\"n\":12345678901234567890123,\"f\":1.10}} ID 7"
        ]
    );
}

#[test]
fn a_delayed_job_is_due_in_the_ms_of_its_score() {
    let fields = [
        ("name", "n"),
        ("data", "{}"),
        ("opts", "{\"attempts\":3}"),
        ("timestamp", "5"),
        ("atm", "1"),
        ("delay", "50"),
    ];
    let score = (1_795_953_390_116_u64 * 4096 + 17).to_string();
    let all = translated(&packed(
        "delayed",
        &score,
        "7",
        &fields,
        &[&["logs", "a", "b"], &["de", "x", "2000"]],
    ));
    assert!(all[0].ends_with("\"gathered\":{\"v\":0,\"made\":1,\"started\":1,\"delay\":50},\"data\":{}} ID 7 AT 1795953390116"), "{all:?}");
    assert_eq!(
        all[1..],
        [
            "RPUSH bull:default:7:logs a b",
            "PEXPIRE bull:default:7:logs 604800000",
            "SET bull:default:de:x 7",
            "PEXPIREAT bull:default:de:x 2000"
        ]
    );
}

#[test]
fn priorities_and_lifo_have_the_groups_of_the_backend() {
    let fields = |opts| {
        [
            ("name", "n"),
            ("data", "{}"),
            ("opts", opts),
            ("timestamp", "5"),
        ]
    };
    let prio = translated(&packed(
        "prioritized",
        "8589934593",
        "1",
        &fields("{\"priority\":2}"),
        &[],
    ));
    assert_eq!(prio.len(), 1);
    let with = [fields("{\"priority\":2}").as_slice(), &[("priority", "9")]].concat();
    let changed = translated(&packed("prioritized", "38654705665", "1", &with, &[]));
    assert!(
        prio[0].ends_with("ID 1 GROUP :priority PRIORITY 1 SCORE 2"),
        "{prio:?}"
    );
    assert!(
        changed[0].ends_with("ID 1 GROUP :priority PRIORITY 1 SCORE 9"),
        "{changed:?}"
    );
    let lifo = fields("{\"lifo\":true,\"removeOnComplete\":true}");
    assert!(translated(&packed("wait", "", "1", &lifo, &[]))[0].ends_with("ID 1 RETAIN 0"));
    let later = translated(&packed("delayed", "4096000", "1", &lifo, &[]));
    assert!(
        later[0].ends_with("GROUP :lifo PRIORITY -1 SCORE -1000007 RETAIN 0 AT 1000"),
        "{later:?}"
    );
}

#[test]
fn a_failed_job_counts_the_delivery_that_makes_it_dead() {
    let fields = [
        ("name", "n"),
        ("data", "{}"),
        ("opts", "{}"),
        ("timestamp", "5"),
        ("attemptsMade", "3"),
        ("failedReason", "no"),
        ("stacktrace", "[\"Error: no\"]"),
        ("progress", "30"),
    ];
    let all = translated(&packed("failed", "9", "7", &fields, &[]));
    assert_eq!(
        all,
        ["DEAD {\"name\":\"n\",\"timestamp\":5,\"gathered\":{\"v\":0,\"progress\":30,\"stacktrace\":\"[\\\"Error: no\\\"]\",\
          \"made\":2,\"started\":2},\"data\":{}} :dead:7 no ID 7"]
    );
}

#[test]
fn schedulers_of_all_versions_are_those_of_the_backend() {
    let id = "repeat:a92596:1795953600000";
    let old = [
        ("rjk", "rep::::7200000"), ("name", "rep"), ("data", "{\"n\":1}"), ("timestamp", "5"),
        ("opts", "{\"prevMillis\":1,\"jobId\":\"x\",\"repeat\":{\"every\":7200000,\"count\":1},\"delay\":2,\"attempts\":4}"),
    ];
    let all = translated(&packed(
        "delayed",
        "7356225945600009",
        id,
        &old,
        &[&["repeat", "rep::::7200000", "1795953600000"]],
    ));
    assert_eq!(
        all[0],
        "SCHEDULER bull:default:repeat a92596 {\"fields\":{\"name\":\"rep\",\"every\":\"7200000\",\"offset\":\"0\",\
         \"opts\":\"{\\\"attempts\\\":4}\",\"data\":\"{\\\"n\\\":1}\",\"ic\":\"1\"},\"next\":1795953600000,\
         \"job\":\"repeat:a92596:1795953600000\"}"
    );
    assert!(all[1].contains("\"repeatJobKey\":\"a92596\""));
    let hash = [
        "repeat",
        "s1",
        "9",
        "name",
        "sch",
        "pattern",
        "* * * * *",
        "ic",
        "4",
    ];
    let new = [
        ("rjk", "s1"),
        ("name", "sch"),
        ("data", "{}"),
        ("opts", "{}"),
        ("timestamp", "5"),
    ];
    let all = translated(&packed("wait", "", "repeat:s1:9", &new, &[&hash]));
    assert!(all[0].starts_with("SCHEDULER bull:default:repeat s1 {\"fields\":{\"name\":\"sch\",\"pattern\":\"* * * * *\",\"ic\":\"4\"},\"next\":9"));
}

#[test]
fn what_cannot_be_read_stays() {
    for (name, value) in [("data", "{"), ("opts", "[]"), ("opts", "x")] {
        let record = packed("wait", "", "7", &[(name, value)], &[]);
        let why = crate::takeover::peer::tests::translated(&peer(false), &record).unwrap_err();
        assert!(why.starts_with("UNKNOWN"), "{why}");
    }
}

#[test]
fn a_lost_job_is_due_again_until_it_is_lost_too_often() {
    let sent = |stalls: &str| {
        let fields = [("name", "n"), ("data", "{}"), ("stc", stalls)];
        translated(&packed("active", "", "7", &fields, &[])).concat()
    };
    assert!(sent("0").starts_with("DQ.SEND") && sent("0").contains("\"stalled\":1"));
    assert!(sent("1").ends_with(":dead:7 job stalled more than allowable limit ID 7"));
}

#[test]
fn bulls_list_is_its_order_and_its_rule_a_pattern() {
    let fields = [
        ("name", "n"),
        ("data", "{}"),
        ("timestamp", "5"),
        ("priority", "3"),
        (
            "opts",
            "{\"priority\":3,\"repeat\":{\"cron\":\"* * * * *\",\"key\":\"n::::* * * * *\"}}",
        ),
    ];
    let rule = ["repeat", "n::::* * * * *", "9"];
    let record = packed("wait", "", "repeat:ab:9", &fields, &[&rule]);
    let all = crate::takeover::peer::tests::translated(&peer(true), &record).unwrap();
    assert!(all[0].starts_with("SCHEDULER bull:default:repeat ab {\"fields\":{\"name\":\"n\",\"pattern\":\"* * * * *\""), "{all:?}");
    assert!(
        all[1].contains("\"repeatJobKey\":\"ab\"") && !all[1].contains("GROUP"),
        "{all:?}"
    );
}
