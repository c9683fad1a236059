//! The icons of windows: a colour, and how many urgent entries there are.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::http::problem::Problem;

pub(super) use super::routes::ICON as ROUTE;

/// The colours, by what they say: white text on each has a contrast of 4.5 or more.
const COLOURS: [(&str, &str); 3] = [("good", "#2b7a33"), ("warn", "#8f5500"), ("bad", "#b3261e")];

/// The largest number that is shown; for more, this and a plus sign.
const MOST: usize = 9;

/// Where an icon is, relative to the root. `class` is `good`, `warn` or `bad`.
pub(super) fn path(class: &str, urgent: usize) -> String {
    format!("icon/{class}-{}.svg", urgent.min(MOST + 1))
}

/// `GET /icon/{icon}`, an address that a page names.
pub(super) async fn icon(Path(icon): Path<String>) -> Response {
    let Some(svg) = svg(&icon) else { return Problem::missing("There is no such icon.").into_response() };
    let headers = [(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "public, max-age=86400")];
    (headers, svg).into_response()
}

/// The picture at an address: a number, or the three lines of the brand.
fn svg(icon: &str) -> Option<String> {
    let all = COLOURS.into_iter().flat_map(|colour| (0..=MOST + 1).map(move |urgent| (colour, urgent)));
    let mut found = all.filter(|((class, _), urgent)| path(class, *urgent).strip_prefix("icon/") == Some(icon));
    let ((_, colour), urgent) = found.next()?;
    let sign = match urgent {
        0 => r##"<path d="M3 5h3M3 8h6M3 11h10" stroke="#fff" stroke-width="2" stroke-linecap="round"/>"##.to_owned(),
        urgent => {
            let text = if urgent > MOST { format!("{MOST}+") } else { urgent.to_string() };
            format!(
                r##"<text x="8" y="12" text-anchor="middle" font-family="sans-serif" font-weight="bold" font-size="11" fill="#fff">{text}</text>"##
            )
        }
    };
    Some(format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="{colour}"/>{sign}</svg>"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_icon_shows_its_number_and_there_are_no_others() {
        let named = |class: &str, urgent| svg(path(class, urgent).strip_prefix("icon/").unwrap());
        assert!(named("good", 0).unwrap().contains("#2b7a33"));
        assert!(!named("good", 0).unwrap().contains("<text"));
        assert!(named("bad", 3).unwrap().contains(">3<"));
        assert_eq!(named("bad", 10), named("bad", 4_000));
        assert!(named("bad", 10).unwrap().contains(">9+<"));
        for other in ["", "bad-11.svg", "bad-03.svg", "bad-3", "red-3.svg", "bad-3.svg.svg", "<b>-3.svg"] {
            assert_eq!(svg(other), None, "{other}");
        }
    }
}
