//! The form of all mails: text and HTML with the same content, and attachments.

use std::fmt::Write as _;
use std::time::SystemTime;

use lettre::address::Envelope;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Body as EncodedBody, Mailbox, MultiPart};
use lettre::{Address, Message};

/// What keeps programs from answering a mail (RFC 3834).
const AUTO_SUBMITTED: HeaderName = HeaderName::new_from_ascii_str("Auto-Submitted");

const TO: HeaderName = HeaderName::new_from_ascii_str("To");

/// A mail before it is rendered.
#[derive(Debug)]
pub struct Mail<'a> {
    /// Who sends it.
    pub from: &'a str,
    /// The person whom answers go to.
    pub reply_to: Option<&'a str>,
    /// Whom it goes to; none for one that is only a file.
    pub to: &'a [String],
    /// Who gets a copy.
    pub copies: &'a [String],
    /// One line.
    pub subject: &'a str,
    /// What its `Message-ID` has before the host.
    pub id: &'a str,
    /// What it says.
    pub body: Body,
    /// What is attached.
    pub attachments: Vec<Attached>,
}

/// A file that is attached to a mail.
#[derive(Debug)]
pub struct Attached {
    /// Its name.
    pub name: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content, in UTF-8.
    pub content: String,
}

/// A mail cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// An address of those who send and receive it.
    #[error("an address: {0}")]
    Address(#[from] lettre::address::AddressError),
    /// The message.
    #[error(transparent)]
    Message(#[from] lettre::error::Error),
}

impl Mail<'_> {
    /// The message as it is sent, in ASCII.
    ///
    /// # Errors
    /// When an address is none.
    pub fn render(self, now: SystemTime) -> Result<String, MailError> {
        let from: Address = self.from.parse()?;
        let id = format!("<{}@{}>", self.id, from.domain());
        let mut message = Message::builder()
            .from(Mailbox::new(Some("queuekeeper".to_owned()), from.clone()))
            .subject(crate::line(self.subject, 300))
            .date(now)
            .message_id(Some(id))
            .raw_header(HeaderValue::new(AUTO_SUBMITTED, "auto-generated".to_owned()));
        if let Some(reply_to) = self.reply_to {
            message = message.reply_to(Mailbox::new(None, reply_to.parse()?));
        }
        for to in self.to {
            message = message.to(Mailbox::new(None, to.parse()?));
        }
        for copy in self.copies {
            message = message.cc(Mailbox::new(None, copy.parse()?));
        }
        if self.to.is_empty() {
            message = message
                .raw_header(HeaderValue::dangerous_new_pre_encoded(
                    TO,
                    String::new(),
                    "undisclosed-recipients:;".to_owned(),
                ))
                .envelope(Envelope::new(Some(from.clone()), vec![from])?);
        }
        let Body { text, html } = self.body.finish();
        let mut parts = MultiPart::mixed().multipart(MultiPart::alternative_plain_html(text, html));
        for Attached { name, media_type, content } in self.attachments {
            let encoded = EncodedBody::new_with_encoding(content.into_bytes(), ContentTransferEncoding::Base64);
            let encoded = encoded.unwrap_or_else(EncodedBody::new);
            let media_type = ContentType::parse(media_type).unwrap_or(ContentType::TEXT_PLAIN);
            parts = parts.singlepart(Attachment::new(name.to_owned()).body(encoded, media_type));
        }
        Ok(String::from_utf8_lossy(&message.multipart(parts)?.formatted()).into_owned())
    }
}

/// A list in a mail, of rows with an id of ours, a name, and more.
#[derive(Clone, Debug)]
pub struct MailTable<'a> {
    /// The title of each column in HTML, and what is before its values in the text: nothing, or a label.
    pub columns: &'a [(&'a str, &'a str)],
    /// The first rows, with a field for each column.
    pub rows: Vec<Vec<String>>,
    /// How many there are.
    pub total: u64,
}

/// What a mail says, as text and as HTML. No line of the text begins with what comes from others.
#[derive(Debug, Default)]
pub struct Body {
    text: String,
    html: String,
}

impl Body {
    /// A sentence of ours.
    #[must_use]
    pub fn paragraph(mut self, sentence: &str) -> Self {
        let _ = write!(self.text, "{sentence}\n\n");
        let _ = writeln!(self.html, "<p>{}</p>", escaped(sentence));
        self
    }

    /// Facts by their names. Those that are empty are left out.
    #[must_use]
    pub fn facts(mut self, facts: &[(&str, &str)]) -> Self {
        self.html.push_str("<table>\n");
        for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = writeln!(self.text, "{:<13}{value}", format!("{name}:"));
            let row = "<tr><th align=\"left\">";
            let _ = writeln!(self.html, "{row}{}</th><td>{}</td></tr>", escaped(name), escaped(value));
        }
        self.text.push('\n');
        self.html.push_str("</table>\n");
        self
    }

    /// A list under a heading, with how many it is of; nothing where there is none. `rest` says where those are that
    /// are not listed.
    #[must_use]
    pub fn list(mut self, heading: &str, list: &MailTable<'_>, rest: &str) -> Self {
        if list.total == 0 {
            return self;
        }
        let heading = format!("{heading} ({})", list.total);
        let _ = write!(self.text, "{heading}\n{}\n", "-".repeat(heading.chars().count()));
        let titles: Vec<_> = list.columns.iter().map(|(title, _)| format!("<th align=\"left\">{title}</th>")).collect();
        let _ = writeln!(
            self.html,
            "<h2>{}</h2>\n<table border=\"1\" cellpadding=\"4\">\n<tr>{}</tr>",
            escaped(&heading),
            titles.concat()
        );
        for row in &list.rows {
            if let [id, name, ..] = row.as_slice() {
                let _ = writeln!(self.text, "{id}  {name}");
            }
            for ((_, label), value) in list.columns.iter().zip(row).skip(2) {
                if !value.is_empty() {
                    let _ = writeln!(self.text, "    {label}{}{value}", if label.is_empty() { "" } else { ": " });
                }
            }
            let cells: Vec<_> = row.iter().map(|field| format!("<td>{}</td>", escaped(field))).collect();
            let _ = writeln!(self.html, "<tr>{}</tr>", cells.concat());
        }
        self.html.push_str("</table>\n");
        self.text.push('\n');
        let more = list.total.saturating_sub(list.rows.len() as u64);
        if more > 0 { self.paragraph(&format!("{more} more of them are {rest}.")) } else { self }
    }

    fn finish(self) -> Self {
        let html = format!(
            "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"></head><body>\n{}</body></html>\n",
            self.html
        );
        Self { text: self.text, html }
    }
}

/// Text as HTML has it between tags.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            char => escaped.push(char),
        }
    }
    escaped
}
