//! A browser of the test's own, as its user has set it: colours, width, scripts or none.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::error::CmdError;
use fantoccini::wd::{TimeoutConfiguration, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use url::{ParseError, Url};

use queuekeeper_testkit::wait::eventually;

/// A page may need that long on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// What stands out to the right of the page, which a reader would have to scroll for.
pub(crate) const TOO_WIDE: &str = "
    const wide = document.documentElement.scrollWidth > window.innerWidth;
    return wide ? [...document.querySelectorAll('body *')]
        .filter(element => element.getBoundingClientRect().right > window.innerWidth + 1)
        .slice(0, 3).map(element => element.outerHTML.slice(0, 160)) : [];
";

/// How often a driver is started that finds its port taken.
const ATTEMPTS: u32 = 10;

/// How a reader has set the browser.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) scheme: &'static str,
    pub(crate) width: u32,
    pub(crate) scripts: bool,
}

/// Chromium without a window, and the driver that it listens to. Both end when it is dropped.
pub(crate) struct Browser {
    pub(crate) page: Client,
    driver: Child,
    port: u16,
    _home: tempfile::TempDir,
}

impl Browser {
    pub(crate) async fn start() -> Self {
        let (driver, port) = (0..ATTEMPTS).find_map(|_| start_driver()).expect("chromedriver says its port");
        let home = tempfile::tempdir().unwrap();
        let flags = [
            "--headless".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            // Names that no name server knows; to a browser they are elsewhere, and no part of this machine.
            "--host-resolver-rules=MAP *.example 127.0.0.1".to_owned(),
            format!("--user-data-dir={}", home.path().display()),
        ];
        let capabilities = json!({
            "goog:chromeOptions": { "args": flags, "binary": "/usr/bin/chromium" },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let Value::Object(capabilities) = capabilities else { unreachable!("it is written as an object") };
        let page = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        // The checker of accessibility may need longer than the half minute that a script has.
        let timeouts = TimeoutConfiguration::new(Some(Duration::from_mins(5)), None, None);
        page.update_timeouts(timeouts).await.unwrap();
        Self { page, driver, port, _home: home }
    }

    /// Opens a page. One that says that ZooKeeper could not be read for it in time, as on a busy machine, is opened
    /// again.
    pub(crate) async fn open(&self, address: &str) {
        eventually(LIMIT, address, async || {
            self.page.goto(address).await.unwrap();
            let late = "return /ZooKeeper did not answer (in time|within 2 s)/.test(document.body.innerText)";
            let is_late = self.run(late).await;
            if is_late == Value::Bool(true) {
                // Among them is the page's status.
                self.complaints().await;
            }
            is_late == Value::Bool(false)
        })
        .await;
    }

    /// Sets the browser as a reader would have it.
    pub(crate) async fn look(&self, look: Look) {
        let Look { scheme, width, scripts } = look;
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.tell("Emulation.setEmulatedMedia", media).await;
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.tell("Emulation.setDeviceMetricsOverride", size).await;
        self.tell("Emulation.setScriptExecutionDisabled", json!({ "value": !scripts })).await;
    }

    /// A command of Chromium's own protocol.
    pub(crate) async fn tell(&self, command: &'static str, params: Value) -> Value {
        let body = json!({ "cmd": command, "params": params });
        self.page.issue_cmd(Own { path: "goog/cdp/execute", body }).await.unwrap()
    }

    /// What the page wrote to the console since this was last called: errors of scripts, and what its policy forbade.
    /// Not that the page was not live at once, because a busy machine had not rendered it in time: it tries again.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let entries = self.page.issue_cmd(Own { path: "se/log", body: json!({ "type": "browser" }) }).await.unwrap();
        let messages = entries.as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap());
        let is_late = |message: &&str| message.contains("/events?") && message.contains("status of 503");
        messages.filter(|message| !is_late(message)).map(str::to_owned).collect()
    }

    /// Runs a script's body and gives what it returns.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.page.execute(script, Vec::new()).await.unwrap()
    }

    /// Closes the browser and ends its driver.
    pub(crate) async fn close(self) {
        let closed: Result<(), CmdError> = self.page.clone().close().await;
        closed.unwrap();
    }
}

/// Starts a driver, and gives its port; `None` where another process took that between its choice and its use.
fn start_driver() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver is installed: .ci/install");
    let mut said = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
    let port =
        said.find_map(|line| line.split("started successfully on port ").nth(1)?.trim_end_matches('.').parse().ok());
    if port.is_none() {
        driver.wait().unwrap();
    }
    Some((driver, port?))
}

impl Drop for Browser {
    fn drop(&mut self) {
        // With this request, the driver ends its browser and then itself; killed, it leaves the browser.
        let asked = TcpStream::connect(("127.0.0.1", self.port)).and_then(|mut stream| {
            stream.write_all(b"GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
            stream.set_read_timeout(Some(LIMIT))?;
            stream.read_to_end(&mut Vec::new())
        });
        if asked.is_err() {
            let _ = self.driver.kill();
        }
        let _ = self.driver.wait();
    }
}

/// A command that `chromedriver` knows and its standard does not.
#[derive(Debug)]
struct Own {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Own {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}
