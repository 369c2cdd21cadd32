use std::borrow::Cow;

use super::*;
use crate::message::score::{BadScore, Score};

fn paths(paths: &[&str]) -> Vec<Path> {
    let parse = |path: &&str| Path::parse(path.as_bytes()).unwrap();
    paths.iter().map(parse).collect()
}

fn one<'a>(payload: &'a str, path: &str) -> Result<Scalar<'a>, JsonError> {
    extract(payload.as_bytes(), &paths(&[path])).map(|mut values| values.remove(0))
}

fn text(payload: &str, path: &str) -> String {
    one(payload, path).unwrap().text().to_owned()
}

fn error(payload: &str, path: &str) -> String {
    one(payload, path).unwrap_err().to_string()
}

#[test]
fn values_are_returned_in_the_order_of_the_paths() {
    let payload = br#"{"reqId":"0a7c-458c","user_id":1002,"order_id":2302393013,
        "data":{"status":1,"ok":true},"q_time":1563978617}"#;
    let asked = paths(&[
        "user_id",
        "/order_id",
        "/data/ok",
        "reqId",
        "user_id",
        "/user_id",
    ]);
    let values = extract(payload, &asked).unwrap();
    let texts: Vec<&str> = values.iter().map(Scalar::text).collect();
    assert_eq!(
        texts,
        ["1002", "2302393013", "true", "0a7c-458c", "1002", "1002"]
    );
    assert!(matches!(values[3], Scalar::Str(Cow::Borrowed(_))));
    assert_eq!(extract(payload, &[]), Ok(vec![]));
}

#[test]
fn numbers_are_returned_as_they_are_written() {
    for number in [
        "2302393013",
        "18446744073709551615",
        "184467440737095516150123456789",
        "1e5",
        "-0.0",
        "0.10",
        "1E+400",
    ] {
        assert_eq!(
            one(&format!("{{\"n\": {number} }}"), "n"),
            Ok(Scalar::Number(number))
        );
    }
}

#[test]
fn strings_are_returned_unescaped() {
    assert_eq!(text(r#"{"s":"a\n\"\\\/\u00e9"}"#, "s"), "a\n\"\\/é");
    assert_eq!(text(r#"{"s":"\ud83d\ude00 😀"}"#, "s"), "😀 😀");
    assert_eq!(text(r#"{"\u0061b":1}"#, "ab"), "1");
    assert_eq!(text(r#"{"":"empty"}"#, ""), "empty");
    assert_eq!(text(r#"{"":"empty"}"#, "/"), "empty");
}

#[test]
fn surrogates_without_a_partner_are_refused_where_asked_for() {
    let payload = r#"{"a":1,"s":"x\ud800y"}"#;
    let JsonError::BadJson { position, .. } = one(payload, "s").unwrap_err() else {
        panic!("not a syntax error");
    };
    assert!((11..20).contains(&position), "{position}");
    assert!(one(r#"{"s":"\udc00"}"#, "s").is_err());
    assert_eq!(text(payload, "a"), "1");
}

#[test]
fn pointers_follow_rfc_6901() {
    let payload = r#"{"foo":["bar","baz"],"a/b":1,"c%d":2,"m~n":8," ":7,"k\"l":6,
        "~1":9,"list":[[0,{"x":"deep"}]],"0":{"00":"o"}}"#;
    for (path, value) in [
        ("/foo/0", "bar"),
        ("/foo/1", "baz"),
        ("/a~1b", "1"),
        ("/c%d", "2"),
        ("/m~0n", "8"),
        ("/ ", "7"),
        ("/k\"l", "6"),
        ("/~01", "9"),
        ("/list/0/1/x", "deep"),
        ("/0/00", "o"),
        ("a/b", "1"),
        ("m~n", "8"),
    ] {
        assert_eq!(text(payload, path), value, "{path}");
    }
    for path in [
        "/foo/00", "/foo/2", "/foo/-", "/foo/+1", "/foo/", "/foo/0/x", "foo/0",
    ] {
        assert!(
            matches!(one(payload, path), Err(JsonError::Missing { .. })),
            "{path}"
        );
    }
    for path in ["/~", "/a~2", "/a~", "/~~0"] {
        let refused = Path::parse(path.as_bytes());
        assert!(matches!(refused, Err(JsonError::BadPath { .. })), "{path}");
    }
    assert!(Path::parse(b"/\xff").is_err());
}

#[test]
fn the_last_of_equal_names_counts_at_every_level() {
    assert_eq!(text(r#"{"a":{},"a":1}"#, "a"), "1");
    assert_eq!(text(r#"{"a":1,"\u0061":2}"#, "a"), "2");
    assert_eq!(text(r#"{"a":{"b":1,"b":2},"a":{"b":3}}"#, "/a/b"), "3");
    let payload = r#"{"a":{"b":1},"a":{"c":2}}"#;
    assert_eq!(
        error(payload, "/a/b"),
        "payload has no value at path '/a/b'"
    );
    assert_eq!(
        error(r#"{"a":{"b":1},"a":null}"#, "/a/b"),
        "payload has no value at path '/a/b'"
    );
    assert!(one(r#"{"a":1,"a":null}"#, "a").is_err());
}

#[test]
fn missing_values_and_values_of_the_wrong_type_are_named_by_their_path() {
    for value in ["null", "{}", "[1]", "{\"a\":1}"] {
        assert_eq!(
            error(&format!("{{\"a\":{value}}}"), "a"),
            "value at path 'a' is not a string, number or boolean"
        );
    }
    assert_eq!(
        error("{}", "x\r\ny"),
        r"payload has no value at path 'x\r\ny'"
    );
    let conflict = extract(br#"{"a":1}"#, &paths(&["/a/b", "z", "a"])).unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "bad path '/a/b': another path names a value above it"
    );
}

#[test]
fn errors_about_bad_json_give_its_position() {
    for (payload, position) in [
        ("", 0),
        ("  ", 2),
        ("{", 1),
        (r#"{"a":1"#, 6),
        (r#"{"a":x}"#, 5),
        ("{\"b\":2,\n \"a\":x}", 13),
        (r#"{"a":1} x"#, 8),
        (r#"{"a":1}{}"#, 7),
        (r#"{"a":1,}"#, 7),
        (r#"{"a":01}"#, 6),
        ("{\"a\":\"\u{1}\"}", 6),
        ("{\"a\":\"x\ny\"}", 7),
        (r#"{"a":1,"b":[1 2]}"#, 14),
        (r#"{"a":1,"b":nul}"#, 14),
        (r#" [1]"#, 1),
        (r#"7"#, 0),
        ("\"a\r\nb\"", 2),
        ("{\"a\tb\":1}", 3),
        ("\u{feff}{}", 0),
    ] {
        match one(payload, "a") {
            Err(JsonError::BadJson { position: at, what }) => {
                assert_eq!(at, position, "{payload:?}: {what}");
                assert!(!what.contains(char::is_control), "{what:?}");
            }
            other => panic!("{payload:?}: {other:?}"),
        }
    }
    assert_eq!(error(" [1]", "a"), "bad JSON at byte 1: not an object");
    assert_eq!(
        error(r#"{"a":x}"#, "a"),
        "bad JSON at byte 5: expected value"
    );
    assert_eq!(
        extract(b"{\"a\":\"\xff\"}", &[]),
        Err(JsonError::NotUtf8 { position: 6 })
    );
}

#[test]
fn more_than_128_levels_of_nesting_are_refused() {
    let arrays = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let objects = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let way = |levels: usize| "/a".repeat(levels);

    // The limit holds on the way to a path, in values that are not asked for,
    // and below a path.
    assert_eq!(text(&objects(128), &way(128)), "1");
    assert!(one(&objects(128), &way(1)).is_err_and(|e| matches!(e, JsonError::WrongType { .. })));
    for path in [way(129), way(1), "/b".to_owned()] {
        assert_eq!(
            one(&objects(129), &path),
            Err(JsonError::TooDeep { position: 128 * 5 })
        );
    }
    let payload = format!(r#"{{"a":1,"x":{}}}"#, arrays(127));
    assert_eq!(text(&payload, "a"), "1");
    let payload = format!(r#"{{"a":1,"x":{}}}"#, arrays(128));
    assert_eq!(
        error(&payload, "a"),
        "bad JSON at byte 138: more than 128 levels of nesting"
    );
    let index = format!("/x{}", "/0".repeat(127));
    assert_eq!(text(&format!(r#"{{"x":{}}}"#, arrays(127)), &index), "1");

    // Brackets in strings and brackets side by side are not nested.
    let payload = format!(
        r#"{{"x":"{}\"","y":[{}{{}}],"a":1}}"#,
        "[{".repeat(500),
        "[],".repeat(500)
    );
    assert_eq!(text(&payload, "a"), "1");
    assert!(one(&"[".repeat(1_000_000), "a").is_err());
}

#[test]
fn only_plain_integers_are_read_as_times() {
    let ms = |number: &str| one(&format!("{{\"t\":{number}}}"), "t").unwrap().as_ms();
    assert_eq!(ms("0"), Some(0));
    assert_eq!(ms("1563978617000"), Some(1563978617000));
    assert_eq!(ms("9007199254740991"), Some((1 << 53) - 1));
    for other in [
        "9007199254740992",
        "1e400",
        "-1",
        "-0",
        "1.0",
        "1e3",
        "true",
        "\"1\"",
    ] {
        assert_eq!(ms(other), None, "{other}");
    }
}

#[test]
fn only_finite_numbers_are_read_as_scores() {
    let score = |number: &str| one(&format!("{{\"t\":{number}}}"), "t").unwrap().as_score();
    for number in ["1563978617", "-1.5e3", "18446744073709551615"] {
        assert_eq!(score(number), Score::parse(number));
    }
    for other in ["false", "\"1\"", "\"inf\""] {
        assert_eq!(score(other), Err(BadScore::NoNumber), "{other}");
    }
    for other in ["1e400", "1e-400", "18446744073709551616"] {
        assert_eq!(score(other), Err(BadScore::Inexact), "{other}");
    }
}

#[test]
fn many_paths_in_many_fields_do_not_take_quadratic_time() {
    let fields: Vec<String> = (0..20_000).map(|i| format!("\"f{i}\":{i}")).collect();
    let payload = format!("{{{}}}", fields.join(","));
    let asked: Vec<Path> = (0..20_000)
        .rev()
        .map(|i| Path::parse(format!("/f{i}").as_bytes()).unwrap())
        .collect();
    let values = extract(payload.as_bytes(), &asked).unwrap();
    assert_eq!(values[0].text(), "19999");
    assert_eq!(values[19_999].text(), "0");
}
