//! Names of code that was made at run time: perf maps, which Node.js, JVMs, CPython, .NET and
//! others write for `perf`, one line a function: address, size, name.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use overlock_profile::FrameKind;

use super::symbols::plain;
use super::wrappers::{Function, rules};

/// The most bytes of a map that are read.
const MOST: u64 = 1 << 30;

/// A function made at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub name: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub kind: FrameKind,
}

impl Made {
    /// Whether it only passes calls on to a lock.
    pub fn is_wrapper(&self) -> bool {
        rules().is_wrapper(Function {
            name: &self.name,
            file: self.file.as_deref(),
            module: None,
        })
    }
}

/// The functions of one process, by the address behind their last.
#[derive(Debug, Default)]
pub struct PerfMap(BTreeMap<u64, (u64, Made)>);

impl PerfMap {
    /// The map of a process, which may have ended. `Default` if there is none.
    pub fn of(pid: u32, since_s: u64) -> Self {
        let mut map = Self::default();
        for path in paths(pid) {
            if let Some(file) = open(&path, since_s) {
                map.read(BufReader::new(file.take(MOST)));
                break;
            }
        }
        map
    }

    fn read(&mut self, mut text: impl BufRead) {
        let mut line = Vec::new();
        while text
            .read_until(b'\n', &mut line)
            .is_ok_and(|length| length > 0)
        {
            // A line that is being written has no end yet.
            if line.pop() == Some(b'\n') {
                self.add_line(&String::from_utf8_lossy(&line));
            }
            line.clear();
        }
    }

    fn add_line(&mut self, line: &str) {
        let mut words = line.splitn(3, ' ');
        let mut number = || {
            let digits = words.next()?.trim_start_matches("0x");
            u64::from_str_radix(digits, 16).ok()
        };
        let (Some(start), Some(size)) = (number(), number()) else {
            return;
        };
        if let Some(name) = words.next() {
            self.add(start, size, made(name));
        }
    }

    /// Adds a function, which takes the place of those that were there.
    pub fn add(&mut self, start: u64, size: u64, made: Made) {
        let Some(end) = start.checked_add(size).filter(|&end| end > start) else {
            return;
        };
        let old: Vec<u64> = (self.0.range(start + 1..))
            .take_while(|(_, (other, _))| *other < end)
            .map(|(&end, _)| end)
            .collect();
        for old in old {
            self.0.remove(&old);
        }
        self.0.insert(end, (start, made));
    }

    /// The function at an address.
    pub fn at(&self, address: u64) -> Option<&Made> {
        let (_, (start, made)) = self.0.range(address.checked_add(1)?..).next()?;
        (*start <= address).then_some(made)
    }
}

/// Its possible places: in the process's own root while that is there, under the id that it has
/// itself.
fn paths(pid: u32) -> Vec<PathBuf> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let own = ids.and_then(|ids| ids.split_whitespace().last()?.parse().ok());
    let own: u32 = own.unwrap_or(pid);
    vec![
        format!("/proc/{pid}/root/tmp/perf-{own}.map").into(),
        format!("/tmp/perf-{pid}.map").into(),
    ]
}

/// A file of the same user, or any for the superuser, that is no older than the process: ids are
/// used again. Its lines become names in a report, and no more.
fn open(path: &PathBuf, since_s: u64) -> Option<File> {
    let mut options = OpenOptions::new();
    // A FIFO without a writer does not block the open.
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let user = rustix::process::geteuid();
    let is_trusted = user.is_root() || metadata.uid() == user.as_raw();
    let is_new = metadata.mtime() as u64 >= since_s;
    (metadata.is_file() && is_trusted && is_new).then_some(file)
}

/// The parts of a function's name, in the forms of CPython (`py::name:file`), of V8
/// (`JS:*name file:line:column`) and of HotSpot (`type package.Class.name(types)`).
pub fn made(name: &str) -> Made {
    let name = plain(name.trim_end_matches('\r'));
    let mut made = Made {
        name: name.clone(),
        file: None,
        line: None,
        kind: FrameKind::Jit,
    };
    if let Some((function, file)) = name
        .strip_prefix("py::")
        .and_then(|rest| rest.split_once(':'))
    {
        made.name = function.to_owned();
        made.file = Some(file.to_owned());
        made.kind = FrameKind::Python;
    } else if let Some((function, place)) = script(&name) {
        let mut parts = place.rsplitn(3, ':');
        let (_column, line, file) = (parts.next(), parts.next(), parts.next());
        if let (Some(Ok(line)), Some(file)) = (line.map(str::parse), file) {
            made.name = match function {
                "" => "(anonymous)".to_owned(),
                function => function.to_owned(),
            };
            made.file = Some(file.to_owned());
            made.line = Some(line);
        }
    } else if let Some(method) = method(&name) {
        made.name = method.to_owned();
    }
    made
}

/// The name of a method of Java, without the types before and behind it, which leave no room for
/// it in a table.
fn method(name: &str) -> Option<&str> {
    let (signature, _) = name.strip_suffix(')')?.split_once('(')?;
    let (_, method) = signature.split_once(' ')?;
    (method.contains('.') && !method.contains([' ', ':'])).then_some(method)
}

/// The name and the place of a script's function: behind the kind of code stands a mark of how it
/// was compiled.
fn script(name: &str) -> Option<(&str, &str)> {
    const KINDS: [&str; 5] = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
    let rest = KINDS.iter().find_map(|kind| name.strip_prefix(kind))?;
    rest.trim_start_matches(['*', '~', '^', '+', '\''])
        .split_once(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> PerfMap {
        let mut map = PerfMap::default();
        map.read(text.as_bytes());
        map
    }

    #[test]
    fn functions_are_found_and_later_ones_take_the_place_of_others() {
        let map = of(
            "1000 100 old\n1100 20 next one\n0x1080 40 new\nzz 1 bad\n2000 0 empty\n3000 10 cut",
        );
        let name = |address| map.at(address).map(|made| made.name.as_str());
        assert_eq!(name(0xfff), None);
        assert_eq!(name(0x1000), None);
        assert_eq!(name(0x1080), Some("new"));
        assert_eq!(name(0x10bf), Some("new"));
        assert_eq!(name(0x10c0), None);
        assert_eq!(name(0x1100), Some("next one"));
        assert_eq!(name(0x111f), Some("next one"));
        assert_eq!(name(0x2000), None);
        assert_eq!(name(0x3000), None);
        assert_eq!(name(u64::MAX - 1), None);
    }

    #[test]
    fn names_of_scripts_have_their_file_and_line() {
        let python = made("py::work:/srv/app/main.py");
        assert_eq!(
            (python.name.as_str(), python.file.as_deref(), python.kind),
            ("work", Some("/srv/app/main.py"), FrameKind::Python)
        );
        for name in [
            "JS:*fill file:///srv/a.js:12:3",
            "LazyCompile:~fill /srv/a.js:12:3",
        ] {
            let script = made(name);
            assert_eq!((script.name.as_str(), script.line), ("fill", Some(12)));
            assert!(script.file.unwrap().ends_with("/srv/a.js"));
        }
        let anonymous = made("JS:~ node:internal/main/run:1:1");
        assert_eq!(anonymous.name, "(anonymous)");
        let java = made("Ljava/lang/Thread;::run");
        assert_eq!(
            (java.name.as_str(), java.file),
            ("Ljava/lang/Thread;::run", None)
        );
        for (name, short) in [
            (
                "void org.shop.Desk.sell(java.lang.String, int)",
                "org.shop.Desk.sell",
            ),
            ("java.lang.Object N2.get()", "N2.get"),
            ("int run(int)", "int run(int)"),
            ("void a::b.c(int)", "void a::b.c(int)"),
            (
                "monitorenter_nofpu Runtime1 stub",
                "monitorenter_nofpu Runtime1 stub",
            ),
        ] {
            assert_eq!(made(name).name, short);
        }
        assert_eq!(made("a\x1b[31m").name, "a?[31m");
    }
}
