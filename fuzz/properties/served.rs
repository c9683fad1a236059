//! The paths of `/ingestqueue/`, by which `--serve-working` serves the files of jobs, and the header `Range`.

use std::cell::RefCell;
use std::fs;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Request, StatusCode, header};
use queuekeeper::web::working::{PATH, router};
use queuekeeper_ingest::working::WorkingStorage;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

/// The files that may be read, below the directory of the job.
const SERVED: [(&str, &str); 3] =
    [("producer/a b.txt", "0123456789"), ("producer/.dot/x", "content"), ("system/mrt-erc.txt", "erc:")];

/// Those that may not, below the working storage.
const SECRET: [&str; 6] = ["secret", "b/payload", "b/j/other", "b/j/.urls", "b/j/system/.hidden", "b/j/.package/a.zip"];

/// A working storage with one job in one batch, and what serves it.
struct Served {
    _directory: TempDir,
    router: Router,
    runtime: Runtime,
}

impl Served {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let write = |path: &str, content: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().expect("it lies in a directory")).expect("a directory can be made");
            fs::write(path, content).expect("a file can be written");
        };
        for (path, content) in SERVED {
            write(&format!("b/j/{path}"), content);
        }
        for path in SECRET {
            write(path, "SECRET");
        }
        let link = |to: &str, from: &str| {
            std::os::unix::fs::symlink(directory.path().join(to), directory.path().join(from))
                .expect("a link can be made");
        };
        link("secret", "b/j/producer/link");
        link("b", "b/j/producer/up");
        let working = WorkingStorage::open(directory.path()).expect("it is a directory");
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime can be made");
        Self { router: router(working), runtime, _directory: directory }
    }

    /// The status, `Content-Range` and the body of an answer.
    fn get(&self, uri: &str, range: &[u8]) -> Option<(StatusCode, Option<HeaderValue>, Vec<u8>)> {
        let mut request = Request::builder().uri(uri);
        if let Ok(range) = HeaderValue::from_bytes(range) {
            request = request.header(header::RANGE, range);
        }
        let request = request.body(Body::empty()).ok()?;
        Some(self.runtime.block_on(async {
            let answer = self.router.clone().oneshot(request).await.expect("a router always answers");
            let (status, range) = (answer.status(), answer.headers().get(header::CONTENT_RANGE).cloned());
            let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a file is read to its end");
            (status, range, body.into())
        }))
    }
}

thread_local! {
    static STORAGE: RefCell<Option<Served>> = const { RefCell::new(None) };
}

/// Whether a body is that part of the content which `Content-Range` says.
fn is_part(said: &str, content: &str, body: &[u8]) -> bool {
    let part = || {
        let range = said.strip_prefix("bytes ")?.strip_suffix(&format!("/{}", content.len()))?;
        let (first, last) = range.split_once('-')?;
        content.as_bytes().get(first.parse().ok()?..=last.parse().ok()?)
    };
    part() == Some(body)
}

/// Requests the path in the first line with the header `Range` in the second one, below `/ingestqueue/` and as it is.
///
/// # Panics
/// When something is served that is no file of the job, or other bytes of it than the answer says.
pub fn check(data: &[u8]) {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let (path, range) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let path = String::from_utf8_lossy(path);
    STORAGE.with_borrow_mut(|storage| {
        let storage = storage.get_or_insert_with(Served::new);
        for uri in [format!("{PATH}{path}"), format!("{PATH}b/j/{path}"), path.clone().into_owned()] {
            let Some((status, said, body)) = storage.get(&uri, range) else { continue };
            let served =
                || SERVED.iter().filter(|(name, _)| name.len() + "b/j/".len() <= uri.len()).map(|(_, content)| content);
            match status {
                StatusCode::OK => {
                    assert!(served().any(|content| content.as_bytes() == body), "{uri:?} is served: {body:?}");
                    assert_eq!(said, None, "all of it is no range");
                }
                StatusCode::PARTIAL_CONTENT => {
                    let said =
                        said.and_then(|said| said.to_str().ok().map(str::to_owned)).expect("it says which range");
                    assert!(
                        served().any(|content| is_part(&said, content, &body)),
                        "{uri:?} is served: {said} {body:?}"
                    );
                }
                StatusCode::NOT_FOUND
                | StatusCode::RANGE_NOT_SATISFIABLE
                | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                    assert!(body.is_empty(), "{uri:?} is not served: {body:?}");
                }
                other => panic!("{uri:?} is answered with {other}"),
            }
        }
    });
}
