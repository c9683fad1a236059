//! Accepts connections, and passes requests to the protocol library and answers back.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use http::header::{CONTENT_LENGTH, DATE, EXPECT};
use http::{HeaderValue, Method, Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use s3s::StdError;
use s3s::dto::{Timestamp, TimestampFormat};
use s3s::service::S3Service;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::exchange::Exchange;
use super::fault::{Effect, Point};
use super::log::{Logged, REJECTED};
use super::state::Shared;
use super::tamper::{Direction, SharedBody, Tampered};
use crate::flush::{Flushes, Flushing};

/// Accepts connections until the end; each has a task, which the tracker knows.
pub(super) async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, service: S3Service, shared: Arc<Shared>) {
    loop {
        let accepted = tokio::select! {
            () = shared.end.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        // A client may be gone before it is accepted, which says nothing of the listener.
        let Ok((stream, _)) = accepted else { continue };
        let _ = stream.set_nodelay(true);
        let (tls, service, of_task) = (tls.clone(), service.clone(), Arc::clone(&shared));
        shared.tasks.spawn(async move {
            let end = of_task.end.clone();
            let serving = async {
                match tls {
                    None => serve(stream, service, of_task).await,
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => serve(stream, service, of_task).await,
                        // The client does not trust us, or speaks no TLS: that is its matter.
                        Err(_refused) => {}
                    },
                }
            };
            tokio::select! {
                () = end.cancelled() => {}
                () = serving => {}
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, service: S3Service, shared: Arc<Shared>) {
    let flushes = Arc::new(Flushes::default());
    let stream = Flushing::new(stream, Arc::clone(&flushes));
    let each = service_fn(move |request| answer(request, service.clone(), Arc::clone(&shared), Arc::clone(&flushes)));
    // What ends a connection is a fault on purpose or the client's leaving.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), each).await;
}

/// Answers a request; an error ends the connection.
async fn answer(
    request: Request<Incoming>,
    service: S3Service,
    shared: Arc<Shared>,
    flushes: Arc<Flushes>,
) -> Result<Response<Tampered<s3s::Body>>, StdError> {
    let exchange = Arc::new(Exchange::default());
    let expects_continue = request.headers().contains_key(EXPECT);
    let is_head = request.method() == Method::HEAD;
    let (mut parts, body) = request.into_parts();
    let body = Arc::new(Mutex::new(body));
    parts.extensions.insert(Arc::clone(&exchange));
    let tampered = Tampered::new(SharedBody(Arc::clone(&body)), Direction::Up, Arc::clone(&exchange));
    let result = service.call(Request::from_parts(parts, s3s::Body::http_body(tampered))).await;
    if exchange.target().is_none() {
        shared.log.count(REJECTED);
    }
    if exchange.find(|effect| (effect == Effect::CutAnswer).then_some(())).map(|((), armed)| armed.reach()).is_some() {
        exchange.cut();
    }
    let result: Result<_, StdError> = match result {
        _ if exchange.is_cut() => Err("the connection is cut on purpose".into()),
        Ok(response) => Ok(response),
        Err(failed) => Err(failed.into()),
    };
    log(&shared, &exchange, result.as_ref().ok().map(|response| response.status().as_u16()));
    let mut response = result?;
    exchange.pause(Point::Answer).await;
    if !expects_continue {
        // A client that is still sending may not see an answer that comes with a closed connection.
        drain(&body).await;
    }
    if !shared.clock.is_right() {
        response.headers_mut().insert(DATE, date(&shared));
    }
    let mut is_wrong = false;
    let length_off = |effect| match effect {
        Effect::LengthOffBy(by) => Some(by),
        _ => None,
    };
    if let Some((by, armed)) = exchange.find(length_off)
        && !is_head
    {
        armed.reach();
        is_wrong = true;
        let right = response.body().size_hint().exact();
        let stated = response.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let wrong = stated.or(right).unwrap_or_default().saturating_add_signed(by);
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(wrong));
    }
    Ok(response.map(|body| {
        let mut body = Tampered::new(body, Direction::Down, Arc::clone(&exchange));
        body.hides_size = is_wrong;
        body.watch(flushes);
        body
    }))
}

fn log(shared: &Shared, exchange: &Exchange, status: Option<u16>) {
    let target = exchange.target();
    shared.log.keep(Logged {
        operation: target.map_or_else(|| REJECTED.to_owned(), |target| target.operation.clone()),
        bucket: target.and_then(|target| target.bucket.clone()),
        key: target.and_then(|target| target.key.clone()),
        status,
    });
}

/// Reads what is left of a request.
async fn drain(body: &Mutex<Incoming>) {
    while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut *body.lock()).poll_frame(cx)).await {}
}

fn date(shared: &Shared) -> HeaderValue {
    let mut text = Vec::new();
    let now = Timestamp::from(shared.clock.now());
    now.format(TimestampFormat::HttpDate, &mut text).expect("a date is written to memory");
    HeaderValue::from_bytes(&text).expect("a date is text")
}
