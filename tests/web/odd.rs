use std::io::Read;

use tokio::io::AsyncWriteExt;

use super::harness::{Answer, Server};

/// Sends bytes that need be no request, and reads what comes back, if anything does.
async fn throw(server: &Server, bytes: &[u8]) -> Option<Answer> {
    use tokio::io::AsyncReadExt;

    let mut stream = server.connect().await;
    // The other side may have had enough before all is sent.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    if answer.is_empty() {
        return None;
    }
    Some(Answer::read(&mut answer.as_slice()).await)
}

#[tokio::test]
async fn odd_requests_get_a_plain_refusal_and_nothing_fails() {
    let server = Server::start().await;
    for (request, codes) in [
        ("OPTIONS * HTTP/1.1", &[404, 405][..]),
        ("OPTIONS /metrics HTTP/1.1", &[405]),
        // Whatever might change something has to show where it comes from.
        ("TRACE /metrics HTTP/1.1", &[403]),
        ("BREW /metrics HTTP/1.1", &[403]),
        ("get /metrics HTTP/1.1", &[403]),
        ("CONNECT localhost HTTP/1.1", &[400, 403]),
        ("GET /metrics/ HTTP/1.1", &[404]),
        ("GET //metrics HTTP/1.1", &[404]),
        ("GET /%6detrics HTTP/1.1", &[404]),
        ("GET /metrics%00 HTTP/1.1", &[404]),
        ("GET /metrics;a=b HTTP/1.1", &[404]),
        ("GET /./metrics HTTP/1.1", &[404]),
        ("GET /static/%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1", &[404]),
        ("GET /static/%ff HTTP/1.1", &[400, 404]),
        ("GET /static/../metrics HTTP/1.1", &[404]),
        ("GET /metrics?a[]=%zz&&&=;' HTTP/1.1", &[200]),
        ("GET /metrics? HTTP/1.1", &[200]),
        ("GET ?a HTTP/1.1", &[400]),
        // This looks like the host of a CONNECT.
        ("GET metrics HTTP/1.1", &[400, 421]),
        ("GET  /metrics HTTP/1.1", &[400]),
        ("GET /metrics HTTP/1.2", &[400]),
        ("GET /metrics HTTP/2.0", &[400, 505]),
        ("GET /metrics HTTP/0.9", &[400]),
        ("GET /me\ttrics HTTP/1.1", &[400]),
        ("GET /metrics", &[400]),
    ] {
        let answer = server.ask(request, &[]).await;
        assert!(codes.contains(&answer.code()), "{request}: {}", answer.head);
    }
    for (headers, code) in [
        (&["Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"][..], 200),
        (&["Upgrade: websocket"], 200),
        (&["Range: bytes=0-10"], 200),
        (&["Expect: 100-continue"], 200),
        (&["X-Forwarded-Host: evil.example", "Forwarded: host=evil.example"], 200),
        (&["X-HTTP-Method-Override: DELETE"], 200),
        (&[" folded: yes"], 400),
        (&["Space : yes"], 400),
        (&["Cookie: a\u{0}b"], 400),
    ] {
        let answer = server.ask("GET /metrics HTTP/1.1", headers).await;
        assert_eq!(answer.code(), code, "{headers:?}: {}", answer.head);
    }
    let long = "a=b&".repeat(7_000);
    assert_eq!(server.ask(&format!("GET /metrics?{long} HTTP/1.1"), &[]).await.code(), 200);
    let longer = format!("GET /metrics?{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a=b&".repeat(50_000));
    let answer = throw(&server, longer.as_bytes()).await;
    assert!(answer.is_none_or(|answer| matches!(answer.code(), 414 | 431)));
    let many = "X: y\r\n".repeat(2_000);
    let answer = throw(&server, format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").as_bytes()).await;
    assert!(answer.is_none_or(|answer| answer.code() == 431));
    // A handshake of TLS, HTTP/2's first words, and noise.
    for bytes in
        [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0xff; 4096]]
    {
        let answer = throw(&server, bytes).await;
        assert!(answer.is_none_or(|answer| answer.code() == 400));
    }
    assert_eq!(server.ask("GET /-/healthy HTTP/1.1", &[]).await.code(), 200);
    server.stop().await;
}

#[tokio::test]
async fn a_head_alone_is_that_of_the_answer_without_its_body() {
    let server = Server::start().await;
    for (path, code) in [("/", 200), ("/metrics", 200), ("/-/ready", 503), ("/nothing", 404), ("/api/v1/nothing", 404)]
    {
        let whole = server.ask(&format!("GET {path} HTTP/1.1"), &[]).await;
        let head = server.ask(&format!("HEAD {path} HTTP/1.1"), &[]).await;
        assert_eq!((head.code(), head.body.len()), (code, 0), "{path}");
        let kind =
            |answer: &Answer| answer.head.lines().find(|line| line.starts_with("content-type:")).map(str::to_owned);
        assert_eq!(kind(&head), kind(&whole), "{path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn compression_is_for_those_who_want_it() {
    let server = Server::start().await;
    for (wish, is_wanted) in [
        ("gzip", true),
        ("GZIP", true),
        ("deflate, gzip;q=0.5, br", true),
        ("*", true),
        ("gzip;q=0", false),
        ("gzip;q=0.000, *", false),
        ("identity", false),
        ("br, zstd, deflate", false),
        ("gzip;q=nonsense", false),
        ("x-gzip-not", false),
        ("", false),
        ("\u{1}", false),
    ] {
        let answer = server.ask("GET /metrics HTTP/1.0", &[&format!("Accept-Encoding: {wish}")]).await;
        let is_zipped = answer.head.contains("\ncontent-encoding: gzip");
        if wish == "\u{1}" {
            assert_eq!(answer.code(), 400);
            continue;
        }
        // `*` may be answered with any coding, and with none.
        assert!(is_zipped == is_wanted || wish.contains('*'), "{wish:?}: {}", answer.head);
        let mut text = String::new();
        if is_zipped {
            flate2::read::GzDecoder::new(&*answer.body).read_to_string(&mut text).unwrap();
        } else {
            text.push_str(answer.text());
        }
        assert!(text.contains("queuekeeper_build_info"), "{wish:?}");
    }
    server.stop().await;
}
