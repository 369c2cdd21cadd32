use super::*;

fn parse(text: &str) -> Result<Action, HttpError> {
    Action::parse(&Query::parse(text.as_bytes()))
}

#[test]
fn actions_are_read_from_addresses() {
    let pause = parse("act=pause&queue=q&group=g%ff&for=5m").unwrap();
    assert_eq!(pause.what(), "group g\\xff of q, for 5m0s");
    assert_eq!(pause.back(), "queue?queue=q");
    let purge = parse("act=purge&family=f&state=dead&type=mail&since=2026-11-20").unwrap();
    assert_eq!(
        purge.what(),
        "messages of f:{*}: dead, type mail, since 2026-11-20 00:00:00.000Z"
    );
    assert_eq!(purge.back(), "messages?family=f&state=dead");
    let one = parse("act=cancel-one&queue=q&id=a%26b").unwrap();
    assert_eq!(one.back(), "message?queue=q&id=a%26b");
    assert_eq!(one.what(), "message a&b of q");
}

#[test]
fn chosen_messages_may_be_of_several_queues() {
    let picks = "pick=queue%3Da%26id%3D1%2526&pick=queue%3Db%26id%3D%25ff";
    let some = parse(&format!("act=purge-one&{picks}")).unwrap();
    assert_eq!(
        (some.word(), some.what()),
        ("remove", "2 messages of a, b: 1&, \\xff".to_owned())
    );
    assert!(parse("act=purge-one&pick=queue%3Da").is_err());
}

#[test]
fn what_makes_no_sense_is_refused() {
    for bad in [
        "act=pause",
        "act=pause&queue=q&family=f",
        "act=pause&queue=q&for=soon",
        "act=redrive&queue=q&state=ready",
        "act=purge&queue=q",
        "act=purge&queue=q&state=dead&since=soon",
        "act=cancel-one&queue=q",
        "act=empty&family=f",
        "act=delete&family=f",
        "act=unschedule&queue=q",
        "act=reschedule&queue=q",
        "act=signal&queue=q",
        "act=fly&queue=q",
        "",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}
