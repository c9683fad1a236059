//! What no sentence should have: a plural for one thing, a mark that is doubled or stands alone, a word said twice.

const PLURALS: &[&str] = &[
    "jobs",
    "batches",
    "items",
    "znodes",
    "locks",
    "requests",
    "collections",
    "sessions",
    "faults",
    "children",
    "queues",
    "others",
    "groups",
    "actions",
    "rules",
    "times",
    "states",
    "entries",
    "references",
    "bytes",
    "files",
    "users",
    "tokens",
    "alerts",
    "attempts",
    "tries",
    "days",
    "lines",
    "messages",
    "decisions",
    "transitions",
    "have",
    "are",
    "were",
    "wait",
    "match",
];

/// Words that may stand between a number and what it counts.
const BETWEEN: &[&str] = &["more", "other", "failed", "held", "different", "access", "unexpected", "pending"];

const SAID_ONCE: &[&str] =
    &["the", "a", "an", "is", "are", "for", "of", "to", "in", "it", "and", "by", "with", "or", "be"];

/// What is wrong with a text, each with what stands around it.
#[must_use]
pub fn wrong(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_wrong = has_wrong_plural(&words) || has_wrong_mark(&words) || has_doubled(&words);
        if is_wrong {
            found.push(words.join(" "));
        }
    }
    found
}

fn bare(word: &str) -> &str {
    word.trim_matches(|character: char| !character.is_alphanumeric())
}

fn has_wrong_plural(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let is_one = word.trim_start_matches(['(', '“', '"']) == "1";
        let mut after = words[at + 1..].iter().copied().map(bare);
        let counted = after.find(|word| !BETWEEN.contains(word));
        is_one && counted.is_some_and(|word| PLURALS.contains(&word))
    })
}

fn has_wrong_mark(words: &[&str]) -> bool {
    let is_doubled = |word: &&str| {
        let rest = word.trim_end_matches(['.', ',', ':', ';']);
        let marks = &word[rest.len()..];
        // An ellipsis of three, and the dots that stand for what was left out of a path, are meant.
        marks.len() > 1 && marks != "..." && !rest.is_empty() && !word.contains('/')
    };
    let is_alone = |word: &&str| [".", ",", ":", ";"].contains(word);
    words.iter().any(|word| is_doubled(word) || is_alone(word) || has_no_space(word))
}

/// Whether a sentence begins within a word: `done.It`.
fn has_no_space(word: &str) -> bool {
    let letters: Vec<char> = word.chars().collect();
    let is_sentence = |four: &[char]| {
        four[0].is_lowercase() && ".,;".contains(four[1]) && four[2].is_uppercase() && four[3].is_lowercase()
    };
    letters.windows(4).any(is_sentence) && word.matches('.').count() == 1
}

fn has_doubled(words: &[&str]) -> bool {
    words.windows(2).any(|two| {
        let second = bare(two[1]);
        two[0] == second && SAID_ONCE.contains(&second)
    })
}

/// The text of a page, with a line for each block of it.
#[must_use]
pub fn lines_of(html: &str) -> String {
    const INLINE: &[&str] = &["a", "b", "code", "span", "time", "small", "q", "strong", "em", "i"];
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(&before.replace('\n', " "));
        let (tag, behind) = after.split_once('>').unwrap_or((after, ""));
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        rest = match name {
            // What a znode holds is none of our sentences.
            "script" | "style" | "pre" if !tag.starts_with('/') => behind.split_once("</").map_or("", |(_, rest)| rest),
            _ => behind,
        };
        if !INLINE.contains(&name) && !name.starts_with('!') {
            text.push('\n');
        }
    }
    text
}

#[test]
fn what_is_wrong_is_found_and_what_is_right_is_not() {
    for text in [
        "1 jobs match.",
        "Resume (1 items)",
        "and 1 more jobs",
        "1 job failed..",
        "They have no message. in batch bid0000000001 .",
        "done.It goes on",
        "waits for for space",
        "a list:,",
        "1 are left",
    ] {
        assert_eq!(wrong(text).len(), 1, "{text}");
    }
    for text in
        ["1 job matches.", "21 jobs", "and so on...", "a/../b", "1, 2 and 3 jobs", "1 of 3 jobs", "java.net.Connect"]
    {
        assert_eq!(wrong(text), [""; 0], "{text}");
    }
    let html = "<p>1 <b>job</b>, of <code>x</code>.</p><ul><li>1</li><li>jobs</li></ul>";
    assert_eq!(wrong(&lines_of(html)), [""; 0]);
    assert_eq!(wrong(&lines_of("<p>1 <b>jobs</b></p>")), ["1 jobs"]);
}
