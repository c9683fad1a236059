use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;

use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::*;

const JOB: &str = "bid-0b9f/jid-1c2d";

/// A file of a job that no socket's buffers hold, in bytes.
const LARGE: u64 = 64 << 20;

/// How long transfers in flight may take after a shutdown.
const GRACE: Duration = Duration::from_secs(20);

/// A working storage with a job, served to some networks.
async fn served(networks: &[&str]) -> (TempDir, SocketAddr, CancellationToken) {
    let (directory, address, shutdown, _) = served_with(networks, MAX_CONNECTIONS, GRACE).await;
    (directory, address, shutdown)
}

/// The same with these limits, and the server.
async fn served_with(
    networks: &[&str],
    max_connections: usize,
    grace: Duration,
) -> (TempDir, SocketAddr, CancellationToken, JoinHandle<io::Result<()>>) {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    for folder in ["producer/a b", "system", ".package"] {
        fs::create_dir_all(at(JOB).join(folder)).unwrap();
    }
    for (path, content) in [
        ("producer/a b/Größe.txt", "0123456789"),
        ("producer/.htaccess", "content of a depositor"),
        ("producer/empty", ""),
        ("system/mrt-erc.txt", "erc:"),
        ("system/.hidden", "SECRET"),
        (".urls", "SECRET"),
        (".package/a.zip", "SECRET"),
        ("other", "SECRET"),
    ] {
        fs::write(at(JOB).join(path), content).unwrap();
    }
    File::create(at(JOB).join("producer/large")).unwrap().set_len(LARGE).unwrap();
    fs::write(at("secret"), "SECRET").unwrap();
    fs::write(at("bid-0b9f/payload.zip"), "SECRET").unwrap();
    symlink(at("secret"), at(JOB).join("producer/link")).unwrap();
    symlink("/etc", at(JOB).join("producer/folder")).unwrap();
    symlink(at(JOB), at("bid-0b9f/jid-link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at(JOB).join("producer/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, shutdown) = (listener.local_addr().unwrap(), CancellationToken::new());
    let working = WorkingStorage::open(directory.path()).unwrap();
    let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
    let options = ServeOptions { tls: None, networks, max_connections, grace, shutdown: shutdown.clone() };
    let serving = tokio::spawn(connection::serve(vec![listener], router(working), options));
    (directory, address, shutdown, serving)
}

/// Sends a request as it is, and gives the status, the head and the body of the answer.
async fn sent(address: SocketAddr, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, head.to_lowercase(), body.to_owned())
}

async fn get(address: SocketAddr, path: &str, headers: &str) -> (u16, String, String) {
    sent(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n")).await
}

#[tokio::test]
async fn the_files_of_a_job_are_read_whole_or_in_part() {
    let (_directory, address, shutdown) = served(&["10.0.0.0/8", "127.0.0.0/30"]).await;
    let path = format!("/ingestqueue/{JOB}/producer/a%20b/Gr%C3%B6%C3%9Fe.txt");
    let (status, head, body) = get(address, &path, "").await;
    assert_eq!((status, body.as_str()), (200, "0123456789"));
    assert!(head.contains("content-length: 10") && head.contains("nosniff"), "{head}");
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    for (range, expected) in [
        ("bytes=2-4", (206, "content-range: bytes 2-4/10", "234")),
        ("bytes=7-", (206, "content-range: bytes 7-9/10", "789")),
        ("bytes=-3", (206, "content-range: bytes 7-9/10", "789")),
        ("bytes=8-99", (206, "content-range: bytes 8-9/10", "89")),
        ("bytes=-99", (206, "content-range: bytes 0-9/10", "0123456789")),
        ("bytes=10-", (416, "content-range: bytes */10", "")),
        ("bytes=-0", (416, "content-range: bytes */10", "")),
        ("bytes=4-2", (200, "content-length: 10", "0123456789")),
        ("bytes=0-1,3-4", (200, "content-length: 10", "0123456789")),
        ("bytes=+1-2", (200, "content-length: 10", "0123456789")),
        ("lines=1-2", (200, "content-length: 10", "0123456789")),
        ("bytes=99999999999999999999-", (200, "content-length: 10", "0123456789")),
    ] {
        let (status, head, body) = get(address, &path, &format!("Range: {range}\r\n")).await;
        assert_eq!((status, body.as_str()), (expected.0, expected.2), "{range}");
        assert!(head.contains(expected.1), "{range}: {head}");
    }
    for (known, expected) in [(tag.as_str(), 206), ("\"other\"", 200)] {
        let (status, _, _) = get(address, &path, &format!("Range: bytes=2-\r\nIf-Range: {known}\r\n")).await;
        assert_eq!(status, expected, "{known}");
    }
    let (status, head, body) =
        sent(address, &format!("HEAD {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await;
    assert_eq!((status, body.as_str()), (200, ""));
    assert!(head.contains("content-length: 10"), "{head}");
    for (path, expected) in
        [("producer/.htaccess", "content of a depositor"), ("producer/empty", ""), ("system/mrt-erc.txt", "erc:")]
    {
        let (status, _, body) = get(address, &format!("/ingestqueue/{JOB}/{path}"), "").await;
        assert_eq!((status, body.as_str()), (200, expected));
    }
    shutdown.cancel();
}

#[tokio::test]
async fn nothing_else_can_be_read_by_whatever_name() {
    let (directory, address, shutdown) = served(&[]).await;
    let root = directory.path().display();
    for path in [
        String::new(),
        "/".to_owned(),
        JOB.to_owned(),
        format!("{JOB}/"),
        format!("{JOB}/producer"),
        format!("{JOB}/producer/"),
        format!("{JOB}/producer/a%20b"),
        format!("{JOB}/producer/a%20b/"),
        format!("{JOB}/producer/missing"),
        format!("{JOB}/producer/link"),
        format!("{JOB}/producer/folder/passwd"),
        format!("{JOB}/producer/pipe"),
        format!("{JOB}/producer/empty/x"),
        "bid-0b9f/jid-link/producer/empty".to_owned(),
        format!("{JOB}/other"),
        format!("{JOB}/.urls"),
        format!("{JOB}/.package/a.zip"),
        format!("{JOB}/system/.hidden"),
        format!("{JOB}/producer/../.urls"),
        format!("{JOB}/producer/%2e%2e/.urls"),
        format!("{JOB}/producer/..%2f.urls"),
        format!("{JOB}/producer/../../payload.zip"),
        format!("{JOB}/producer//empty"),
        format!("{JOB}/producer/./empty"),
        format!("{JOB}//producer/empty"),
        format!("{JOB}/producer/empty%00"),
        format!("{JOB}/producer/empty%00.txt"),
        format!("{JOB}/producer/%ff"),
        format!("{JOB}/producer/empty?query"),
        format!("{JOB}/Producer/empty"),
        format!("{JOB}/producer/{}", "x".repeat(5_000)),
        format!("{JOB}/producer/{}", "x/".repeat(3_000)),
        "../secret".to_owned(),
        "..%2fsecret".to_owned(),
        "secret".to_owned(),
        ".queuekeeper-volume".to_owned(),
        "bid-0b9f/payload.zip".to_owned(),
        format!("{root}/secret"),
        "/etc/passwd".to_owned(),
        "%2fetc%2fpasswd".to_owned(),
    ] {
        let (status, head, body) = get(address, &format!("/ingestqueue/{path}"), "").await;
        assert_eq!((status, body.as_str()), (404, ""), "{path}: {head}");
    }
    for path in ["/", "/metrics", "/ingestqueue", "/INGESTQUEUE/x", "//ingestqueue/x", "/x/../ingestqueue/x"] {
        assert_eq!(get(address, path, "").await.0, 404, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"] {
        let request =
            format!("{method} /ingestqueue/{JOB}/producer/empty HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let (status, head, _) = sent(address, &request).await;
        assert_eq!(status, 405, "{method}");
        assert!(head.contains("allow: get,head"), "{head}");
    }
    assert_eq!(sent(address, "GET / HTTP/9\r\n\r\n").await.0, 400);
    shutdown.cancel();
}

#[tokio::test]
async fn a_network_that_is_not_allowed_gets_no_answer() {
    let path = format!("/ingestqueue/{JOB}/producer/empty");
    let (_directory, address, shutdown) = served(&["10.0.0.0/8", "::1", "127.0.0.2/32"]).await;
    assert_eq!(get(address, &path, "").await, (0, String::new(), String::new()));
    shutdown.cancel();
}

/// Begins to read the large file from an address of the loopback interface, and reads its head only.
async fn begun(address: SocketAddr, from: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let mut stream = socket.connect(address).await?;
    let request = format!("GET /ingestqueue/{JOB}/producer/large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(stream)
}

#[tokio::test]
async fn a_peer_that_reads_slowly_on_every_connection_it_gets_leaves_some_to_others() {
    let (_directory, address, shutdown, _) = served_with(&[], 8, GRACE).await;
    let (slow, other) = (Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3));
    let mut open = Vec::new();
    while let Ok(stream) = begun(address, slow).await {
        open.push(stream);
    }
    assert_eq!(open.len(), 6);
    for _ in 0..2 {
        open.push(begun(address, other).await.unwrap());
    }
    shutdown.cancel();
}

#[tokio::test]
async fn a_transfer_in_flight_at_the_end_has_its_time_and_no_more() {
    let (_directory, address, shutdown, serving) = served_with(&[], 8, Duration::from_mins(2)).await;
    let mut reading = begun(address, Ipv4Addr::LOCALHOST).await.unwrap();
    shutdown.cancel();
    // Longer than pages have.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(!serving.is_finished());
    assert!(TcpStream::connect(address).await.is_err(), "no more begin");
    let mut content = Vec::new();
    reading.read_to_end(&mut content).await.unwrap();
    assert_eq!(content.len() as u64, LARGE);
    serving.await.unwrap().unwrap();

    let (_directory, address, shutdown, serving) = served_with(&[], 8, Duration::from_millis(50)).await;
    let mut reading = begun(address, Ipv4Addr::LOCALHOST).await.unwrap();
    shutdown.cancel();
    serving.await.unwrap().unwrap();
    content.clear();
    let _ = reading.read_to_end(&mut content).await;
    assert!((content.len() as u64) < LARGE);
}
