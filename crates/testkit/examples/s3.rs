//! Serves the S3 test server in a process of its own, for comparisons and benches: prints where and with which
//! credentials, as lines `NAME=VALUE` that a shell can evaluate, and serves until standard input ends.
//!
//! `s3 [DIRECTORY [PORT [KEYS]]]`: content lies in the directory (a temporary one by default) and is removed at the
//! end. So many keys are there already, in the bucket `planted`.

#![expect(clippy::print_stdout, reason = "what it prints is its result")]

use std::error::Error;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use queuekeeper_testkit::s3::{S3Server, Settings};
use tokio::io::AsyncReadExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map(PathBuf::from);
    let port = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = S3Server::start(Settings { listen, directory, ..Settings::default() }).await?;
    let keys: u32 = arguments.next().map_or(Ok(0), |keys| keys.parse())?;
    server.plant("planted", (0..keys).map(|key| format!("{:03}/{key:09}", key % 1000)), b"");
    println!("AWS_ENDPOINT_URL={}", server.endpoint());
    println!("AWS_ACCESS_KEY_ID={}", server.access_key());
    println!("AWS_SECRET_ACCESS_KEY={}", server.secret_key());
    println!("AWS_REGION={}", server.region());
    std::io::stdout().flush()?;
    let mut input = tokio::io::stdin();
    while input.read(&mut [0; 1024]).await? > 0 {}
    server.stop().await;
    Ok(())
}
