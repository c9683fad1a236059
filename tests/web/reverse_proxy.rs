//! A proxy before the server that has one prefix for it, as nginx with `location /prefix/`.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// Hands what is below `prefix` on to `upstream`, and says of all else that it is another's: 418.
///
/// `has_prefix_taken_away` is `proxy_pass http://upstream/`, with a slash at the end.
pub(crate) fn serve(
    listener: TcpListener,
    upstream: String,
    prefix: &'static str,
    has_prefix_taken_away: bool,
) -> AbortOnDropHandle<()> {
    let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build_http();
    let hand_on = move |mut request: Request| {
        let (client, upstream) = (client.clone(), upstream.clone());
        async move {
            let asked = request.uri().path_and_query().map_or("/", |asked| asked.as_str());
            let Some(below) = asked.strip_prefix(prefix).filter(|below| below.starts_with('/')) else {
                return StatusCode::IM_A_TEAPOT.into_response();
            };
            let path = if has_prefix_taken_away { below } else { asked };
            *request.uri_mut() = format!("http://{upstream}{path}").parse().unwrap();
            match client.request(request).await {
                Ok(answer) => answer.map(Body::new).into_response(),
                Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
            }
        }
    };
    let served = axum::serve(listener, Router::new().fallback(hand_on)).into_future();
    AbortOnDropHandle::new(tokio::spawn(async move { served.await.unwrap() }))
}
