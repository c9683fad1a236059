use queuekeeper_store::{Algorithm, Digest};

use super::*;
use crate::bit::coverage::Amount;

fn fixity(letter: u8) -> Statement {
    let digest = |algorithm, bytes| Digest::new(algorithm, &vec![letter; bytes]).unwrap();
    let digests = [digest(Algorithm::Md5, 16), digest(Algorithm::Sha256, 32)].into_iter().collect();
    Statement::Fixity(Fixity { size: 7, digests })
}

fn row(key: &[u8], detail: &str) -> ReportRow {
    ReportRow {
        date: "2026-11-27T06:17:22Z".parse().unwrap(),
        account: "account1".to_owned(),
        store: "replica".parse().unwrap(),
        space: "theses".parse().unwrap(),
        key: Key::new(key).unwrap(),
        result: "failure".to_owned(),
        findings: vec!["content_damaged".to_owned()],
        proof: None,
        content: fixity(b'y'),
        provider: Statement::Missing,
        index: Statement::Same,
        audit: Statement::None,
        detail: detail.to_owned(),
    }
}

/// What a reader makes of a line, by the rules that are stated above and nothing of the writer.
fn read_line(line: &str) -> Vec<String> {
    let line = line.strip_suffix('\n').unwrap();
    assert!(!line.contains(['\n', '\r']), "{line}");
    let field = |field: &str| {
        let (mut text, mut chars) = (String::new(), field.chars());
        while let Some(char) = chars.next() {
            text.push(match char {
                '\\' => match chars.next().unwrap() {
                    '\\' => '\\',
                    't' => '\t',
                    'n' => '\n',
                    'r' => '\r',
                    other => panic!("{other}"),
                },
                other => other,
            });
        }
        text
    };
    line.split('\t').map(field).collect()
}

#[test]
fn a_line_has_each_column_whatever_is_in_it() {
    let detail = "a\tb\nc\r\\t\\ d\u{202e}\u{0}";
    let every: Vec<u8> = (0..=u8::MAX).collect();
    for key in [&b"a b/c"[..], b"=1+1", b"a\tb\nc", &every] {
        let line = row(key, detail).tsv();
        let fields = read_line(&line);
        assert_eq!(super::fields(line.strip_suffix('\n').unwrap()), fields);
        assert_eq!(fields.len(), COLUMNS.len());
        assert_eq!(fields[11], detail);
        assert!(fields[4].is_ascii() && !fields[4].starts_with(['=', '+', '-', '@']), "{}", fields[4]);
        let mut bytes = Vec::new();
        let mut encoded = fields[4].bytes();
        while let Some(byte) = encoded.next() {
            let hex = |digit: Option<u8>| char::from(digit.unwrap()).to_digit(16).unwrap();
            bytes.push(if byte == b'%' {
                u8::try_from(hex(encoded.next()) * 16 + hex(encoded.next())).unwrap()
            } else {
                byte
            });
        }
        assert_eq!(bytes, key);
    }
    let fields = read_line(&row(b"a", "").tsv());
    let expected =
        format!("2026-11-27T06:17:22Z account1 replica theses a failure  sha256:{} missing same  ", "79".repeat(32));
    assert_eq!(fields.join(" "), expected);
    assert_eq!(read_line(&tsv_header()), COLUMNS);
    let bare = Statement::Fixity(Fixity { size: 7, digests: Digests::default() });
    assert_eq!(bare.checksum(), "none");
}

fn head(coverage: Coverage) -> ReportHead {
    ReportHead {
        account: "account1".to_owned(),
        store: "replica".parse().unwrap(),
        space: "theses".parse().unwrap(),
        number: 3,
        policy: "read 1/12".to_owned(),
        required: Proof::Read,
        started: "2026-11-26T00:00:00Z".parse().unwrap(),
        ended: "2026-11-27T00:00:00Z".parse().unwrap(),
        coverage,
    }
}

#[test]
fn the_document_is_json_whatever_number_of_rows_it_has() {
    let some = |items| Amount { items, bytes: items * 10 };
    let mut coverage =
        Coverage { stored: some(5), read: some(1), failed: some(2), dead: some(1), ..Coverage::default() };
    coverage.skipped.insert("its turn is in another loop".to_owned(), some(1));
    let head = head(coverage);
    for number in 0..3 {
        let (mut report, mut text) = JsonReport::begin(&head);
        for _ in 0..number {
            text.push_str(&report.row(&row(b"a\n\xff", "say \"no\"")));
        }
        text.push_str(JsonReport::END);
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["items"].as_array().unwrap().len(), number);
        assert_eq!(read["result"], "failure");
        assert_eq!(read["policy"], "read 1/12");
        assert_eq!(read["coverage"]["skipped"]["its turn is in another loop"], json!({"items": 1, "bytes": 10}));
        assert_eq!(read["coverage"]["unaccounted"]["items"], 0);
        let lacks = ["2 items not as recorded", "1 item not checked, as the check is in the dead letters"];
        assert_eq!(read["lacks"], json!(lacks));
        if number > 0 {
            let item = &read["items"][number - 1];
            assert_eq!(item["key_encoded"], "a%0A%FF");
            assert_eq!(item["content"]["digests"]["sha256"], "79".repeat(32));
            assert_eq!(
                (&item["provider"], &item["index"], &item["audit"]),
                (&json!("missing"), &json!("same"), &Value::Null)
            );
            assert_eq!((&item["findings"], &item["proof"]), (&json!(["content_damaged"]), &Value::Null));
        }
    }
}

#[test]
fn a_coverage_is_a_table_of_its_own() {
    let mut coverage = Coverage::default();
    coverage.skipped.insert("a\tb".to_owned(), Amount { items: 1, bytes: 2 });
    let table = coverage_tsv(&coverage);
    let lines: Vec<_> = table.split_inclusive('\n').map(read_line).collect();
    assert_eq!(lines[0], ["part", "why", "items", "bytes"]);
    assert!(lines.contains(&["skipped", "a\tb", "1", "2"].map(str::to_owned).to_vec()), "{lines:?}");
    assert!(lines.iter().all(|line| line.len() == 4) && lines.len() == 15, "{lines:?}");
}

#[test]
fn what_was_kept_of_a_statement_is_read() {
    let kept =
        format!(r#"{{"size": 7, "digests": {{"md5": "{}", "sha256": "{}"}}}}"#, "79".repeat(16), "79".repeat(32));
    assert_eq!(Statement::read(&kept).unwrap(), fixity(b'y'));
    assert_eq!(Statement::read(r#"{"missing": true}"#).unwrap(), Statement::Missing);
    for wrong in ["", "{}", r#"{"size": -1, "digests": {}}"#, r#"{"size": 7, "digests": {"md5": "79"}}"#] {
        assert!(Statement::read(wrong).is_err(), "{wrong}");
    }
}
