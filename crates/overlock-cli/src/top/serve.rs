//! The counts for Prometheus and what else reads OpenMetrics.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::INTERVAL;
use super::metrics::{self, Counts};
use crate::exit::Exit;
use crate::stat::{Watched, is_alive, say};

/// So long a client may take to ask, and as long to read.
const PATIENCE: Duration = Duration::from_secs(2);

/// No client that reads counts has a longer request.
const LONGEST: usize = 16 * 1024;

/// Serves `/metrics` until the process has ended.
pub fn serve(address: &str, mut watched: Watched) -> Result<(), Exit> {
    let refused = |error| Exit::usage(format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    say(&format!("overlock: http://{bound}/metrics\n"));
    let (sender, clients) = mpsc::sync_channel(0);
    thread::spawn(move || {
        for client in listener.incoming() {
            match client.map(|client| sender.send(client)) {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                // Too many files are open, for instance, which does not end at once.
                Err(_) => thread::sleep(INTERVAL),
            }
        }
    });
    let mut counts = Counts::default();
    let mut replaced = watched.replaced;
    while is_alive(watched.pid) {
        if let Ok(client) = clients.recv_timeout(INTERVAL) {
            // One that leaves early is its own loss.
            let _ = answer(client, || {
                let process = watched.read()?;
                if watched.replaced != replaced {
                    // Another program counts from 0 on, as readers expect after a new start.
                    replaced = watched.replaced;
                    counts = Counts::default();
                }
                counts.update(&process);
                metrics::text(&counts).map_err(io::Error::other)
            });
        }
    }
    Ok(())
}

/// Answers one request: there is no second one on a connection.
fn answer(mut client: TcpStream, text: impl FnOnce() -> io::Result<String>) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let request = request(&mut client)?;
    let mut words = request.split_ascii_whitespace();
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, content) = match (method, path) {
        (Some("GET" | "HEAD"), "/metrics") => ("200 OK", text()?),
        (Some("GET" | "HEAD"), _) => ("404 Not Found", String::new()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let length = content.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    if method != Some("HEAD") {
        client.write_all(content.as_bytes())?;
    }
    client.flush()
}

/// The head of the request. A client that is slow, or says too much, must not keep others waiting.
fn request(client: &mut TcpStream) -> io::Result<String> {
    let end = Instant::now() + PATIENCE;
    let mut read = Vec::new();
    let mut part = [0; 1024];
    while !read.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || read.len() > LONGEST {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => read.extend_from_slice(&part[..length]),
        }
    }
    Ok(String::from_utf8_lossy(&read).into_owned())
}
