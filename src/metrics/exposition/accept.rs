//! The `Accept` header, as RFC 9110 (12.5.1) writes it, as far as it concerns us.

/// One wish of a header.
#[derive(Debug)]
pub(super) struct Range<'a> {
    /// The media type or range, such as `text/plain` or `*/*`.
    pub(super) media_type: &'a str,
    /// Its parameter `version`, without quotes.
    pub(super) version: Option<&'a str>,
    /// How much it is wished.
    pub(super) weight: Weight,
}

/// A quality value in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Weight(u16);

impl Weight {
    /// Not wanted.
    pub(super) const NONE: Self = Self(0);
    const FULL: Self = Self(1000);

    /// A weight that is none takes its wish with it: its sender did not mean what we would guess.
    fn read(text: &str) -> Self {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return Self::NONE;
        }
        match whole {
            "0" => Self(format!("{decimals:0<3}").parse().unwrap_or(0)),
            "1" if decimals.bytes().all(|byte| byte == b'0') => Self::FULL,
            _ => Self::NONE,
        }
    }
}

/// The wishes of a header in their order.
///
/// Media types and versions hold no comma or semicolon, so a quoted one, which splits wrongly, can only belong to a
/// wish that we do not know anyway.
pub(super) fn ranges(header: &str) -> impl Iterator<Item = Range<'_>> {
    header.split(',').map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let mut found = Range { media_type: parts.next().unwrap_or_default(), version: None, weight: Weight::FULL };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let (name, value) = (name.trim_end(), value.trim_start());
            if name.eq_ignore_ascii_case("version") {
                found.version = Some(value.trim_matches('"'));
            } else if name.eq_ignore_ascii_case("q") {
                found.weight = Weight::read(value);
            }
        }
        found
    })
}
