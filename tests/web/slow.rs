use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::harness::Server;

/// How long ten requests take, each on a connection of its own.
async fn ten_requests(server: &Server) -> Duration {
    let started = Instant::now();
    for _ in 0..10 {
        let answer = tokio::time::timeout(Duration::from_secs(10), server.ask("GET /metrics HTTP/1.1", &[]));
        assert_eq!(answer.await.expect("it is answered").code(), 200);
    }
    started.elapsed()
}

#[tokio::test]
async fn a_thousand_idle_connections_keep_no_client_out() {
    let server = Server::start().await;
    let alone = ten_requests(&server).await;
    let mut connections = Vec::new();
    for n in 0..1_000 {
        // Without waiting until the time limit of others closes them.
        let connected = tokio::time::timeout(Duration::from_secs(10), server.connect()).await;
        let mut stream = connected.expect("it is accepted");
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
    let among = ten_requests(&server).await;
    assert!(among < alone * 10 + Duration::from_millis(500), "{among:?} among them, {alone:?} alone");
    // The latest are still there: only as many left as had to.
    let mut last = connections.pop().unwrap();
    last.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut start = [0; 12];
    last.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    assert!(server.stop().await < Duration::from_secs(2));
}

#[tokio::test]
async fn clients_that_do_not_read_or_send_byte_by_byte_do_not_disturb_others() {
    let server = Server::start().await;
    let alone = ten_requests(&server).await;
    // More of them than there is room for, and each asks for more than the system's buffers hold and reads nothing of
    // it.
    let page = server.ask("GET / HTTP/1.1", &[]).await;
    let css = page.text().split('"').find(|text| text.contains(".css")).unwrap().trim_start_matches('.');
    let request = format!("GET {css} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(100);
    let mut deaf = Vec::new();
    for _ in 0..600 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(([127, 0, 0, 1], server.ports[0]).into()).await.unwrap();
        // One that had to leave already cannot be written to.
        let _ = tokio::time::timeout(Duration::from_millis(20), stream.write_all(request.as_bytes())).await;
        deaf.push(stream);
    }
    let mut slow: Vec<TcpStream> = Vec::new();
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
    let (among, ()) = tokio::join!(ten_requests(&server), sending);
    assert!(among < alone * 20 + Duration::from_secs(1), "{among:?} among them, {alone:?} alone");
    assert!(server.stop().await < Duration::from_secs(2));
}

#[tokio::test]
async fn bodies_that_do_not_come_keep_no_client_out() {
    let server = Server::start().await;
    let alone = ten_requests(&server).await;
    let connect = async |last: u8| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, last], 0).into()).unwrap();
        socket.connect(([127, 0, 0, 1], server.ports[0]).into()).await.unwrap()
    };
    // More of them than there is room for, from two addresses, and each is waited for.
    let mut open = Vec::new();
    for last in [2, 3].into_iter().cycle().take(600) {
        let mut stream = connect(last).await;
        let head = "POST /action HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: none\r\n\
                    Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\naction=";
        // One that had to leave already cannot be written to.
        let _ = stream.write_all(head.as_bytes()).await;
        open.push(stream);
    }
    let among = ten_requests(&server).await;
    assert!(among < alone * 10 + Duration::from_millis(500), "{among:?} among them, {alone:?} alone");
    assert!(server.stop().await < Duration::from_secs(2));
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
        let mut stream = server.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answers = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answers)).await;
        // A connection that was closed with something unread is reset.
        assert!(read.is_ok(), "it is answered before the body has come");
        let answers = String::from_utf8_lossy(&answers);
        assert!(answers.starts_with("HTTP/1.1 "), "{answers}");
        assert!(!answers.contains("\r\n\r\nhealthy"), "{answers}");
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
