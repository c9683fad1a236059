//! Style sheets, scripts and pictures, embedded in the binary.
//!
//! The address of each contains a fingerprint of its content: browsers cache it without a limit, and never use an old
//! one with a new page.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::http::problem::Problem;

pub(super) use super::routes::ASSETS as ROUTE;

macro_rules! assets {
    ($( $function:ident $file:literal $content_type:literal, )+) => {
        $(
            #[doc = concat!("Where `", $file, "` is, relative to the root.")]
            pub(super) fn $function() -> &'static str {
                static PATH: LazyLock<String> =
                    LazyLock::new(|| fingerprinted($file, include_bytes!(concat!("../../static/", $file))));
                &PATH
            }
        )+

        /// Every file of `static/`, its media type and its content, by its path relative to the root.
        static ALL: LazyLock<Vec<(&'static str, &'static str, &'static [u8])>> = LazyLock::new(|| {
            vec![$( ($function(), $content_type, include_bytes!(concat!("../../static/", $file))) ),+]
        });
    };
}

assets! {
    css "queuekeeper.css" "text/css; charset=utf-8",
    lists "lists.css" "text/css; charset=utf-8",
    charts_css "charts.css" "text/css; charset=utf-8",
    theme "theme.js" "text/javascript; charset=utf-8",
    live "live.js" "text/javascript; charset=utf-8",
    keys "keys.js" "text/javascript; charset=utf-8",
    select "select.js" "text/javascript; charset=utf-8",
    charts "charts.js" "text/javascript; charset=utf-8",
    submit "submit.js" "text/javascript; charset=utf-8",
    copy "copy.js" "text/javascript; charset=utf-8",
    icon "queuekeeper.svg" "image/svg+xml",
}

fn fingerprinted(file: &str, content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let (stem, ending) = file.rsplit_once('.').expect("every name in the table has an ending");
    format!("static/{stem}-{:016x}.{ending}", hasher.finish())
}

/// `GET /static/{asset}`, an address that a page of this binary names.
pub(super) async fn asset(Path(asset): Path<String>) -> Response {
    let found = ALL.iter().find(|(path, ..)| path.strip_prefix("static/") == Some(asset.as_str()));
    let Some((_, content_type, content)) = found else {
        return Problem::missing("This file belongs to another version. Reload the page.").into_response();
    };
    let headers =
        [(header::CONTENT_TYPE, *content_type), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, *content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_in_the_table_under_a_name_of_its_own() {
        let mut files: Vec<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/static"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut served: Vec<String> = ALL
            .iter()
            .map(|(path, ..)| {
                let (stem, rest) = path.strip_prefix("static/").unwrap().rsplit_once('-').unwrap();
                format!("{stem}.{}", rest.split_once('.').unwrap().1)
            })
            .collect();
        files.sort();
        served.sort();
        assert_eq!(files, served);
        assert_ne!(fingerprinted("a.css", b"one"), fingerprinted("a.css", b"two"));
    }
}
