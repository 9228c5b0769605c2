//! The health check of the service's image, where no other program could ask.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::{Failure, variable};

/// Below that of the image's `HEALTHCHECK`, so that the reason is still said.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Asks the service that runs beside it.
pub fn check() -> Result<(), Failure> {
    let port: u16 = variable("PORT", 8080)?;
    let mut service = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), TIMEOUT)?;
    service.set_read_timeout(Some(TIMEOUT))?;
    service.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut status = [0; b"HTTP/1.1 200".len()];
    service.read_exact(&mut status)?;
    if status != *b"HTTP/1.1 200" {
        return Err(format!("/health was answered {}", status.escape_ascii()).into());
    }
    Ok(())
}
