//! The guest: the monitor's, in threads of this process, or QEMU's.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use overlock_vm::monitor::{self, End, Error, Place, Settings};
use tempfile::NamedTempFile;

use super::hypervisor::QEMU;
use crate::exit::Exit;
use crate::vm::Hypervisor;

/// A guest to start.
#[derive(Debug)]
pub struct Launch<'a> {
    pub hypervisor: Hypervisor,
    pub image: &'a Path,
    pub xen: Option<&'a Path>,
    pub vcpus: usize,
    /// The boot line.
    pub line: String,
}

/// A guest that runs. Dropping it ends it.
pub trait Guest {
    /// Has it end, soon.
    fn stop(&mut self);

    /// Waits for its end.
    fn end(&mut self) -> Ended;
}

/// A guest that has ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// The place of each vCPU, if the hypervisor knows.
    pub places: Vec<Place>,
    /// Why the hypervisor has ended it.
    pub error: Option<String>,
}

impl Launch<'_> {
    /// Starts the guest. Returns its output as well, which ends with it.
    pub fn start(&self) -> Result<(Box<dyn Guest>, Receiver<String>), Exit> {
        let (sender, output) = mpsc::channel();
        let guest: Box<dyn Guest> = match self.hypervisor {
            Hypervisor::KvmRing3 => Box::new(self.ring3(sender)?),
            Hypervisor::Kvm | Hypervisor::Tcg | Hypervisor::Xen => Box::new(self.qemu(sender)?),
        };
        Ok((guest, output))
    }

    fn ring3(&self, output: Sender<String>) -> Result<Ring3, Exit> {
        let refused = |error| Exit::usage(format!("{}: {error}", self.image.display()));
        let file = fs::read(self.image).map_err(refused)?;
        let (vcpus, line) = (self.vcpus, self.line.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let settings = Settings {
                vcpus,
                line: &line,
                // The session has the limit.
                limit: Duration::MAX,
            };
            let print = move |text: &str| {
                let sent = output.send(text.to_owned());
                sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
            };
            monitor::run(&file, &settings, print, || is_stopped.load(Relaxed))
        });
        Ok(Ring3 {
            thread: Some(thread),
            stop,
        })
    }

    fn qemu(&self, output: Sender<String>) -> Result<Qemu, Exit> {
        let failed = |error| Exit::Failed(format!("cannot start {QEMU}: {error}"));
        let xen = self.xen.map(Xen::unpack).transpose().map_err(failed)?;
        let messages = tempfile::tempfile().map_err(failed)?;
        let mut command = self.command(xen.as_ref());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(messages.try_clone().map_err(failed)?)
            // Ctrl-C is for this process, which ends the other.
            .process_group(0);
        end_with_this_process(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let lines = child.stdout.take().map(BufReader::new);
        thread::spawn(move || {
            for line in lines.into_iter().flat_map(|lines| lines.split(b'\n')) {
                let text = line.map(|line| String::from_utf8_lossy(&line).into_owned());
                // The end of the session, or of the guest.
                let Ok(()) = text.map_or(Err(()), |text| output.send(text).map_err(drop)) else {
                    return;
                };
            }
        });
        Ok(Qemu {
            child,
            messages,
            is_stopped: false,
            _xen: xen,
        })
    }

    fn command(&self, xen: Option<&Xen>) -> Command {
        let mut command = Command::new(QEMU);
        command.args("-nodefaults -display none -no-reboot -serial stdio".split(' '));
        let accelerator = match self.hypervisor {
            Hypervisor::Kvm => "kvm",
            _ => "tcg,thread=multi",
        };
        command.args(["-accel", accelerator]);
        match (self.hypervisor.cpus(), xen) {
            (Some(cpus), Some(xen)) => {
                // Credit scheduler: under the emulator, credit2 now and then leaves a runnable
                // vCPU while both CPUs are idle.
                let options = format!(
                    "console=com1 com1=115200,8n1 loglvl=none sched=credit dom0_mem=128M dom0_max_vcpus={}",
                    self.vcpus
                );
                command.args(["-smp", &cpus.to_string(), "-m", "512", "-append", &options]);
                command.arg("-kernel").arg(xen.path());
                // QEMU takes a comma for the end of a module's line, and two for one.
                let mut module = self.image.as_os_str().to_owned();
                module.push(format!(" {}", self.line.replace(',', ",,")));
                command.arg("-initrd").arg(module);
            }
            _ => {
                let vcpus = self.vcpus.to_string();
                command.args(["-smp", &vcpus, "-m", "128", "-append", &self.line]);
                command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
                command.arg("-kernel").arg(self.image);
            }
        }
        command
    }
}

/// Has the kernel kill the child when this process ends, however it does.
fn end_with_this_process(command: &mut Command) {
    let parent = rustix::process::getpid();
    let kill = move || {
        let signal = rustix::process::Signal::KILL;
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        // A child that was orphaned before that call gets no signal any more.
        match rustix::process::getppid() == Some(parent) {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    };
    // SAFETY: two system calls, and no allocation.
    unsafe { command.pre_exec(kill) };
}

/// A guest of the monitor.
struct Ring3 {
    thread: Option<JoinHandle<Result<End, Error>>>,
    stop: Arc<AtomicBool>,
}

impl Guest for Ring3 {
    fn stop(&mut self) {
        self.stop.store(true, Relaxed);
    }

    fn end(&mut self) -> Ended {
        let Some(thread) = self.thread.take() else {
            return Ended::default();
        };
        match thread.join() {
            Ok(Ok(End { places, .. }) | Err(Error::Limit(places))) => Ended {
                places,
                error: None,
            },
            Ok(Err(error)) => Ended {
                error: Some(error.to_string()),
                ..Ended::default()
            },
            Err(_) => Ended {
                error: Some("the monitor has panicked".to_owned()),
                ..Ended::default()
            },
        }
    }
}

impl Drop for Ring3 {
    fn drop(&mut self) {
        self.stop();
        self.end();
    }
}

/// A guest of QEMU.
struct Qemu {
    child: Child,
    /// Its standard error.
    messages: File,
    is_stopped: bool,
    _xen: Option<Xen>,
}

impl Guest for Qemu {
    fn stop(&mut self) {
        self.is_stopped = true;
        // One that has ended needs no signal.
        let _ = self.child.kill();
    }

    fn end(&mut self) -> Ended {
        let status = self.child.wait();
        let mut text = String::new();
        let read = self.messages.rewind();
        let _ = read.and_then(|()| self.messages.read_to_string(&mut text));
        let text = text.trim();
        let what = match status {
            _ if self.is_stopped => None,
            Ok(_) if !text.is_empty() => Some(text.to_owned()),
            Ok(status) if status.success() || status.code().is_some_and(is_of_guest) => None,
            Ok(status) => Some(format!("{QEMU}: {status}")),
            Err(error) => Some(format!("{QEMU}: {error}")),
        };
        Ended {
            error: what,
            ..Ended::default()
        }
    }
}

/// Whether QEMU's exit code is one of the guest's, which come through a device: 2n + 1 for n. With
/// 1 QEMU also ends by itself, and then prints why.
fn is_of_guest(code: i32) -> bool {
    code & 1 == 1
}

impl Drop for Qemu {
    fn drop(&mut self) {
        self.stop();
        let _ = self.child.wait();
    }
}

/// Xen's file, as QEMU loads it.
#[derive(Debug)]
enum Xen {
    Plain(PathBuf),
    Unpacked(NamedTempFile),
}

impl Xen {
    fn unpack(path: &Path) -> io::Result<Self> {
        if path.extension().is_none_or(|extension| extension != "gz") {
            return Ok(Self::Plain(path.to_owned()));
        }
        let file = NamedTempFile::new()?;
        let mut gzip = Command::new("gzip");
        gzip.arg("-dc")
            .arg(path)
            .stdout(file.as_file().try_clone()?);
        match gzip.status()?.success() {
            true => Ok(Self::Unpacked(file)),
            false => Err(io::Error::other(format!("gzip -dc {}", path.display()))),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Plain(path) => path,
            Self::Unpacked(file) => file.path(),
        }
    }
}
