//! Runs the guest image under the monitor: `overlock-vm IMAGE VCPUS SECONDS [LINE]`.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> std::process::ExitCode {
    use std::io::Write;
    use std::process::ExitCode;
    use std::time::Duration;

    use overlock_vm::monitor::{self, Settings};

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = || {
        eprintln!("usage: overlock-vm IMAGE VCPUS SECONDS [LINE]");
        ExitCode::from(2)
    };
    let [image, vcpus, seconds, line @ ..] = &arguments[..] else {
        return usage();
    };
    let (Ok(vcpus), Ok(seconds)) = (vcpus.parse(), seconds.parse()) else {
        return usage();
    };
    let file = match std::fs::read(image) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("{image}: {error}");
            return ExitCode::from(2);
        }
    };
    let settings = Settings {
        vcpus,
        line: &line.join(" "),
        limit: Duration::from_secs(seconds),
    };
    let print = |text: &str| std::io::stdout().write_all(text.as_bytes());
    match monitor::run(&file, &settings, print, || false) {
        Ok(end) if end.code == 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}
