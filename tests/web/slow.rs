use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::harness::{STOPPED_IN_TIME, Server};

/// When the server gives up a client that does not send its head to the end.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// The same of one that does not read its response.
const READ_LIMIT: Duration = Duration::from_secs(20);

/// The same of one that does not send the body of its request.
const BODY_LIMIT: Duration = Duration::from_secs(10);

/// How often something is tried that a busy machine may be too slow for.
const ATTEMPTS: u32 = 5;

/// Does something in less than the time after which the server gives up clients: then nothing has waited for that.
async fn in_less_than(limit: Duration, mut attempt: impl AsyncFnMut()) {
    for _ in 0..ATTEMPTS {
        let began = Instant::now();
        attempt().await;
        if began.elapsed() < limit {
            return;
        }
    }
    panic!("{ATTEMPTS} times it took {limit:?} or more");
}

/// Ten requests, each on a connection of its own.
async fn ten_requests(server: &Server) {
    for _ in 0..10 {
        let answer = tokio::time::timeout(HEAD_LIMIT, server.ask("GET /metrics HTTP/1.1", &[]));
        assert_eq!(answer.await.expect("it is answered").code(), 200);
    }
}

#[tokio::test]
async fn a_thousand_idle_connections_keep_no_client_out() {
    let server = Server::start().await;
    let mut connections = Vec::new();
    in_less_than(HEAD_LIMIT, async || {
        connections.clear();
        for n in 0..1_000 {
            let mut stream = server.connect().await;
            // Silent ones, ones in the middle of a head, and ones between two requests.
            let start: &[u8] = match n % 3 {
                0 => b"",
                1 => b"GET /metrics HTTP/1.1\r\nHo",
                _ => b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n",
            };
            // One that had to leave already cannot be written to.
            let _ = stream.write_all(start).await;
            connections.push(stream);
        }
        ten_requests(&server).await;
    })
    .await;
    // The latest are still there: only as many left as had to.
    let mut last = connections.pop().unwrap();
    last.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut start = [0; 12];
    last.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    assert!(server.stop().await < STOPPED_IN_TIME);
}

#[tokio::test]
async fn clients_that_do_not_read_or_send_byte_by_byte_do_not_disturb_others() {
    let server = Server::start().await;
    // More of them than there is room for, and each asks for more than the system's buffers hold and reads nothing of
    // it.
    let page = server.ask("GET / HTTP/1.1", &[]).await;
    let css = page.text().split('"').find(|text| text.contains(".css")).unwrap().trim_start_matches('.');
    let request = format!("GET {css} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(100);
    let mut deaf = Vec::new();
    let mut slow: Vec<TcpStream> = Vec::new();
    // Each has the server write megabytes, so that only others' requests are measured: on a busy machine the first of
    // them are given up before the last are connected.
    let mut took = READ_LIMIT;
    for _ in 0..ATTEMPTS {
        deaf.clear();
        slow.clear();
        for _ in 0..600 {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(4096).unwrap();
            let mut stream = socket.connect(([127, 0, 0, 1], server.ports[0]).into()).await.unwrap();
            // One that had to leave already cannot be written to.
            let _ = tokio::time::timeout(Duration::from_millis(20), stream.write_all(request.as_bytes())).await;
            deaf.push(stream);
        }
        for _ in 0..20 {
            slow.push(server.connect().await);
        }
        let sending = async {
            for byte in b"GET /metrics HTTP/1.1\r\n" {
                for stream in &mut slow {
                    stream.write_all(&[*byte]).await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let began = Instant::now();
        tokio::join!(ten_requests(&server), sending);
        took = began.elapsed();
        if took < READ_LIMIT / 2 {
            break;
        }
    }
    assert!(took < READ_LIMIT / 2, "{took:?}");
    assert!(server.stop().await < STOPPED_IN_TIME);
}

#[tokio::test]
async fn bodies_that_do_not_come_keep_no_client_out() {
    let server = Server::start().await;
    let connect = async |last: u8| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, last], 0).into()).unwrap();
        socket.connect(([127, 0, 0, 1], server.ports[0]).into()).await.unwrap()
    };
    // More of them than there is room for, from two addresses, and each is waited for.
    let mut open = Vec::new();
    in_less_than(BODY_LIMIT, async || {
        open.clear();
        for last in [2, 3].into_iter().cycle().take(600) {
            let mut stream = connect(last).await;
            let head = "POST /action HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: none\r\n\
                        Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\naction=";
            // One that had to leave already cannot be written to.
            let _ = stream.write_all(head.as_bytes()).await;
            open.push(stream);
        }
        ten_requests(&server).await;
    })
    .await;
    assert!(server.stop().await < STOPPED_IN_TIME);
}

#[tokio::test]
async fn a_body_is_not_waited_for_and_not_taken_for_the_next_request() {
    let server = Server::start().await;
    let hidden = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for head in [
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", 60_000),
        format!("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len()),
        "POST /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            .to_owned(),
    ] {
        // It is answered before the body has come.
        in_less_than(BODY_LIMIT, async || {
            let mut stream = server.connect().await;
            stream.write_all(head.as_bytes()).await.unwrap();
            let next = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            stream.write_all(next).await.unwrap();
            let mut answers = Vec::new();
            // A connection that was closed with something unread is reset.
            let read = tokio::time::timeout(HEAD_LIMIT, stream.read_to_end(&mut answers)).await;
            assert!(read.is_ok(), "it is answered");
            let answers = String::from_utf8_lossy(&answers);
            assert!(answers.starts_with("HTTP/1.1 "), "{answers}");
            assert!(!answers.contains("\r\n\r\nhealthy"), "{answers}");
        })
        .await;
    }
    // Two ways of saying how long a body is are one too many.
    for headers in [
        &["Content-Length: 5", "Transfer-Encoding: chunked"][..],
        &["Content-Length: 5", "Content-Length: 6"],
        &["Content-Length: +5"],
        &["Content-Length: 5, 5x"],
        &["Transfer-Encoding: gzip"],
        &["Transfer-Encoding: chunked, identity"],
    ] {
        let sent = [&["Sec-Fetch-Site: none", "Content-Type: application/x-www-form-urlencoded"], headers].concat();
        let answer = server.ask("POST /metrics HTTP/1.1", &sent).await;
        assert!((400..500).contains(&answer.code()), "{headers:?}: {}", answer.head);
        answer.has(&["connection: close"]);
    }
    server.stop().await;
}
