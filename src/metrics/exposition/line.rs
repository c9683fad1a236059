//! A line of an exposition, taken apart.

/// A line, as far as the two forms differ in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TextLine<'a> {
    /// `# HELP name text`.
    Help { name: &'a str, text: &'a str },
    /// `# TYPE name kind`.
    Type { name: &'a str, kind: &'a str },
    /// `# UNIT`, `# EOF`, other comments and empty lines: nothing that text has.
    Other,
    /// A sample; the labels with their braces, or empty.
    Sample { name: &'a str, labels: &'a str, value: &'a str, timestamp: Option<&'a str> },
}

impl<'a> TextLine<'a> {
    pub(super) fn read(line: &'a str) -> Self {
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.strip_prefix(' ').unwrap_or(comment).splitn(3, ' ');
            return match (words.next(), words.next(), words.next()) {
                (Some("HELP"), Some(name), text) => Self::Help { name, text: text.unwrap_or_default() },
                (Some("TYPE"), Some(name), Some(kind)) => Self::Type { name, kind },
                (_, _, _) => Self::Other,
            };
        }
        let name_end = line.find(['{', ' ']).unwrap_or(line.len());
        let (name, rest) = line.split_at(name_end);
        let (labels, rest) = rest.split_at(labels_end(rest));
        // What follows a further ` # ` is an exemplar, which text does not have.
        let mut words = rest.split_ascii_whitespace().take_while(|word| *word != "#");
        match words.next() {
            Some(value) if !name.is_empty() => Self::Sample { name, labels, value, timestamp: words.next() },
            Some(_) | None => Self::Other,
        }
    }
}

/// Where the closing brace ends; a brace within a label value does not count. 0 without labels.
fn labels_end(rest: &str) -> usize {
    if !rest.starts_with('{') {
        return 0;
    }
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'}' if !quoted => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_end_at_the_brace_that_closes_them_whatever_they_hold() {
        let labels = r#"{a="} 1 # {",b="\\",c="\"}"}"#;
        let line = format!(r#"x_total{labels} 1 2.5 # {{trace="a"}} 1 2"#);
        assert_eq!(
            TextLine::read(&line),
            TextLine::Sample { name: "x_total", labels, value: "1", timestamp: Some("2.5") }
        );
        assert_eq!(TextLine::read("x 1"), TextLine::Sample { name: "x", labels: "", value: "1", timestamp: None });
        assert_eq!(TextLine::read("# EOF"), TextLine::Other);
        assert_eq!(TextLine::read(""), TextLine::Other);
        assert_eq!(TextLine::read("# HELP x"), TextLine::Help { name: "x", text: "" });
    }
}
