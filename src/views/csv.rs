//! Lists as CSV (RFC 4180): a line for each item, and a column for each field that the API has for it.

use std::collections::HashMap;
use std::marker::PhantomData;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::show::visible;

/// Where a cell begins with one of these, a spreadsheet evaluates it as a formula, or skips the character and evaluates
/// the rest. The last four are the full-width forms of the first four.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// What stands between the elements of a list in one cell.
const BETWEEN: &str = "; ";

/// The columns of a list of `T`. The fields of an object in a field are columns of their own: `jobs.total`.
#[derive(Debug)]
pub(crate) struct Columns<T> {
    /// The names that lead to each field, from the item.
    fields: Vec<Vec<String>>,
    item: PhantomData<fn(&T)>,
}

impl<T: Serialize + ToSchema> Columns<T> {
    /// The columns, from the description of an item in the API document.
    pub(crate) fn new() -> Self {
        let mut known = Vec::new();
        T::schemas(&mut known);
        let known = known.into_iter().collect();
        let mut fields = Vec::new();
        collect(&T::schema(), &known, &[], &mut fields);
        Self { fields, item: PhantomData }
    }

    /// The first line, with the names of the columns.
    pub(crate) fn header(&self) -> String {
        lines([self.fields.iter().map(|names| names.join("."))])
    }

    /// A line for each item.
    pub(crate) fn rows(&self, items: &[T]) -> String {
        lines(items.iter().map(|item| {
            // Items are structs of texts, numbers and lists of them, which always are JSON.
            let item = serde_json::to_value(item).unwrap_or_default();
            self.fields.iter().map(move |names| {
                let field = names.iter().try_fold(&item, |value, name| value.get(name));
                field.map(cell).unwrap_or_default()
            })
        }))
    }
}

/// A line of one field, for a list with more columns: no reader takes it for an item.
pub(crate) fn line(text: &str) -> String {
    lines([[cell(&Value::from(text))]])
}

/// A line of texts.
pub(crate) fn record(texts: &[String]) -> String {
    lines([texts.iter().map(|text| cell(&Value::from(&**text)))])
}

/// Adds the fields of an object, and of the objects in it.
fn collect(
    schema: &RefOr<Schema>,
    known: &HashMap<String, RefOr<Schema>>,
    names: &[String],
    fields: &mut Vec<Vec<String>>,
) {
    let schema = match schema {
        RefOr::Ref(reference) => reference.ref_location.rsplit('/').next().and_then(|name| known.get(name)),
        described @ RefOr::T(_) => Some(described),
    };
    match schema {
        Some(RefOr::T(Schema::Object(object))) if !object.properties.is_empty() => {
            for (name, field) in &object.properties {
                collect(field, known, &[names, std::slice::from_ref(name)].concat(), fields);
            }
        }
        _ => fields.push(names.to_vec()),
    }
}

/// Texts come from znodes and may be anything. What does not show is escaped, as everywhere, and what a spreadsheet
/// would take for a formula is prefixed with an apostrophe, as OWASP recommends against CSV injection. Numbers are
/// kept.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(_) | Value::Array(_) | Value::Object(_) => {
            let text = text(value);
            let apostrophe = if text.starts_with(FORMULA) { "'" } else { "" };
            format!("{apostrophe}{}", visible(&text))
        }
    }
}

/// The elements of a list one after the other, and of an object its values.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(elements) => elements.iter().map(text).collect::<Vec<_>>().join(BETWEEN),
        Value::Object(fields) => fields.values().map(text).collect::<Vec<_>>().join(" "),
    }
}

fn lines<R: IntoIterator<Item = String>>(records: impl IntoIterator<Item = R>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.write_record(record.into_iter().map(String::into_bytes)).expect("every line has all columns");
    }
    let bytes = writer.into_inner().expect("memory takes every line");
    String::from_utf8(bytes).expect("texts and separators are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, ToSchema)]
    struct Item {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        odd: Option<String>,
        version: i32,
        jobs: Jobs,
        shares: Vec<Share>,
    }

    #[derive(Serialize, ToSchema)]
    struct Jobs {
        total: u64,
        failed: Option<u32>,
    }

    #[derive(Serialize, ToSchema)]
    struct Share {
        batch: &'static str,
        count: u64,
    }

    #[test]
    fn a_line_has_a_cell_for_each_field_of_the_api_and_no_other_line_for_any_text() {
        let columns = Columns::<Item>::new();
        assert_eq!(columns.header(), "id,odd,version,jobs.total,jobs.failed,shares\n");
        let shares = vec![Share { batch: "bid1", count: 2 }, Share { batch: "bid2", count: 1 }];
        let items = [
            Item {
                id: "a \"b\", c\r\n\u{1b}[31m".to_owned(),
                odd: None,
                version: -1,
                jobs: Jobs { total: 3, failed: None },
                shares,
            },
            Item {
                id: String::new(),
                odd: Some("=1+1".to_owned()),
                version: 0,
                jobs: Jobs { total: 0, failed: Some(0) },
                shares: Vec::new(),
            },
        ];
        let text = columns.rows(&items);
        let expected = ["\"a \"\"b\"\", c\\r\\n\\u{1b}[31m\",,-1,3,,bid1 2; bid2 1", ",'=1+1,0,0,0,"];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn no_text_is_a_formula_and_every_number_stays_one() {
        for text in ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠a"]
        {
            let cell = cell(&Value::from(text));
            assert!(cell.starts_with('\'') && !cell.contains(['\t', '\r', '\n']), "{cell}");
        }
        let list = serde_json::json!(["=1", "2"]);
        assert_eq!([cell(&list), cell(&Value::from(-1)), cell(&Value::from(-0.5))], ["'=1; 2", "-1", "-0.5"]);
        assert_eq!([cell(&Value::from("a=1")), cell(&Value::from("'=1"))], ["a=1", "'=1"]);
    }
}
