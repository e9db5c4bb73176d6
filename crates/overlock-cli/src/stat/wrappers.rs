//! Wrappers: functions that do nothing but lock, or wait, for their callers. A row is named by the
//! first caller that is none, since a wrapper is the same for all locks.
//!
//! Which they are is said by rules: those in `rules/wrappers.txt`, which explains them, and the
//! user's.

use std::collections::HashSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use wildmatch::WildMatch;

use super::symbols::Place;
use crate::exit::Exit;

/// The rules that this program brings along.
const OWN: &str = include_str!("../../rules/wrappers.txt");

/// The place that names a stack, which begins with the call.
pub fn named(stack: &[Place]) -> Option<&Place> {
    let rules = rules();
    let first = stack.first()?;
    let is_end = |place: &Place| match &place.function {
        Some(name) => rules.ends(name),
        None => is_unnamed(place),
    };
    // Without symbols: threads begin in the C library, which has functions between a caller and
    // the kernel too.
    let begin = stack.iter().rposition(|place| !is_end(place));
    let named_end = |place: &Place| place.function.as_ref().is_some_and(|name| rules.ends(name));
    let length = stack.iter().position(named_end).unwrap_or(stack.len());
    let length = length.min(begin.map_or(0, |last| last + 1));
    let known = &stack[..length];
    let has_script = known.iter().any(|place| place.is_script);
    let is_between = |place: &Place| {
        let name = place.function.as_deref();
        has_script && !place.is_script && name.is_some_and(|name| rules.interprets(name))
    };
    let own = known
        .iter()
        .find(|place| !place.is_wrapper && !is_unnamed(place) && !is_between(place));
    own.or(Some(first))
}

/// The same for a holder, of which often no more is known than the call site. If that is in a
/// wrapper, it is the caller of that.
pub fn holder(stack: &[Place]) -> Option<Place> {
    let named = named(stack)?;
    Some(match named.is_wrapper && stack.len() == 1 {
        true => named.caller(),
        false => named.clone(),
    })
}

/// Whether a thread begins with this function.
pub fn begins_thread(function: &str) -> bool {
    rules().ends(function)
}

/// Whether it is a function of which no more is known than that it is the C library's, or not even
/// that.
fn is_unnamed(place: &Place) -> bool {
    let module = place.module.as_deref();
    place.function.is_none() && module.is_none_or(is_librarys)
}

/// Whether a path is that of the C library, whose functions without names are inner ones.
pub fn is_librarys(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or_default();
    name.starts_with("libc.so")
        || name.starts_with("libc-2")
        || name.starts_with("libpthread")
        || name.starts_with("ld-musl-")
}

/// The properties that rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    pub name: &'a str,
    /// The source file.
    pub file: Option<&'a str>,
    /// The program or library.
    pub module: Option<&'a str>,
}

/// All rules.
#[derive(Debug, Default)]
pub struct Rules {
    functions: Vec<WildMatch>,
    files: Vec<WildMatch>,
    modules: Vec<WildMatch>,
    kept: Vec<WildMatch>,
    ends: Vec<WildMatch>,
    interpreters: Vec<WildMatch>,
    locks: HashSet<String>,
    verbs: HashSet<String>,
}

static RULES: OnceLock<Rules> = OnceLock::new();

/// The rules of this run.
pub fn rules() -> &'static Rules {
    // A command that takes no option for them has the user's own, if those can be read.
    RULES.get_or_init(|| Rules::of(&[]).unwrap_or_else(|_| Rules::own()))
}

/// Has the rules of these files besides our own and those in the user's configuration.
pub fn extend(files: &[PathBuf]) -> Result<(), Exit> {
    let rules = Rules::of(files)?;
    // Options are read once, before any name is looked up.
    let _ = RULES.set(rules);
    Ok(())
}

/// The file of the user's own rules.
fn configured() -> Option<PathBuf> {
    let given = |name| env::var_os(name).filter(|value: &std::ffi::OsString| !value.is_empty());
    let dir = given("XDG_CONFIG_HOME").map(PathBuf::from);
    let dir = dir.or_else(|| Some(Path::new(&given("HOME")?).join(".config")))?;
    Some(dir.join(OsStr::new("overlock/wrappers.txt")))
}

/// The text of the rules that are built in, for users who want to read or copy them.
pub fn built_in() -> &'static str {
    OWN
}

impl Rules {
    fn own() -> Self {
        let mut rules = Self::default();
        for (number, line) in OWN.lines().enumerate() {
            let read = rules.read(line);
            debug_assert!(read.is_some(), "line {}", number + 1);
        }
        rules
    }

    fn of(files: &[PathBuf]) -> Result<Self, Exit> {
        let mut rules = Self::own();
        let configured = configured().filter(|path| path.exists());
        for path in configured.iter().chain(files) {
            let text = fs::read_to_string(path).map_err(|error| refused(path, &error))?;
            rules.add(&text).map_err(|line| {
                let what = "is no rule of wrappers: it begins with none of function, file, module, \
                            lock, verb, keep, end, interpreter";
                Exit::usage(format!("{}:{line} {what}", path.display()))
            })?;
        }
        Ok(rules)
    }

    /// Adds rules. `Err` is the number of the first line that is none.
    fn add(&mut self, text: &str) -> Result<(), usize> {
        for (number, line) in text.lines().enumerate() {
            self.read(line).ok_or(number + 1)?;
        }
        Ok(())
    }

    fn read(&mut self, line: &str) -> Option<()> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Some(());
        }
        let (kind, rest) = line.split_once(char::is_whitespace)?;
        let rest = rest.trim_start();
        let words = || rest.split_whitespace().map(str::to_ascii_lowercase);
        match kind {
            "lock" => self.locks.extend(words()),
            "verb" => self.verbs.extend(words()),
            kind => {
                let globs = match kind {
                    "function" => &mut self.functions,
                    "file" => &mut self.files,
                    "module" => &mut self.modules,
                    "keep" => &mut self.kept,
                    "end" => &mut self.ends,
                    "interpreter" => &mut self.interpreters,
                    _ => return None,
                };
                globs.push(WildMatch::new(rest));
            }
        }
        Some(())
    }

    /// Whether a function only passes calls on to a lock.
    pub fn is_wrapper(&self, function: Function<'_>) -> bool {
        let is_among = |globs: &[WildMatch], text: Option<&str>| {
            text.is_some_and(|text| globs.iter().any(|glob| glob.matches(text)))
        };
        let name = Some(function.name);
        (self.is_spoken(function.name)
            || is_among(&self.files, function.file)
            || is_among(&self.functions, name)
            || is_among(&self.modules, function.module))
            && !is_among(&self.kept, name)
    }

    /// Whether a thread begins with this function.
    fn ends(&self, name: &str) -> bool {
        self.ends.iter().any(|glob| glob.matches(name))
    }

    /// Whether a function is an interpreter's, between a script and what it calls.
    fn interprets(&self, name: &str) -> bool {
        self.interpreters.iter().any(|glob| glob.matches(name))
    }

    /// By the words of its name: a lock, and what one does with it; in front of them there may be
    /// the name of a library.
    fn is_spoken(&self, name: &str) -> bool {
        // Without the arguments and the generation mark of compilers.
        let name = name.split(['(', '<', '.']).next().unwrap_or_default();
        let last = name.rsplit("::").next().unwrap_or_default();
        let words = words(last);
        let is_lock = |word: &String| self.locks.contains(word);
        let is_said = |word: &String| is_lock(word) || self.verbs.contains(word);
        words.iter().any(is_lock)
            && words.iter().skip(1).all(is_said)
            && (words.len() > 1 || words.iter().all(is_lock))
    }
}

fn refused(path: &Path, error: &io::Error) -> Exit {
    Exit::usage(format!("{}: {error}", path.display()))
}

/// The words of a name, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_small = false;
    let mut begins = true;
    for letter in name.chars() {
        if !letter.is_ascii_alphabetic() {
            begins = true;
            was_small = false;
            continue;
        }
        if begins || was_small && letter.is_ascii_uppercase() {
            words.push(String::new());
        }
        begins = false;
        was_small = letter.is_ascii_lowercase();
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use overlock_profile::Frame;

    use super::super::symbols::unnamed;
    use super::*;

    fn function(name: &str) -> Function<'_> {
        Function {
            name,
            file: None,
            module: None,
        }
    }

    /// Fails where a function of the C library that has no name ends a stack, or names it.
    #[test]
    fn inner_functions_of_a_library_without_symbols_are_no_callers() {
        let place = |named: Option<&str>, module: &str| {
            let address = 0x1000;
            let frame = Frame {
                function: named.map_or_else(|| unnamed(Some(module), address), str::to_owned),
                module: Some(module.to_owned()),
                offset: Some(address),
                is_wrapper: named.is_some_and(|name| Rules::own().is_wrapper(function(name))),
                ..Frame::default()
            };
            Place::of(address, &[frame])
        };
        let (libc, own) = ("/lib/libc.so.6", "/bin/server");
        let of = |stack: &[Place]| named(stack).and_then(|place| place.function.clone());
        let inner = || place(None, libc);
        let lock = || place(Some("pthread_mutex_lock"), libc);
        let stack = [
            inner(),
            inner(),
            lock(),
            place(Some("insert"), own),
            inner(),
        ];
        assert_eq!(of(&stack).as_deref(), Some("insert"));
        let heap = [
            place(Some("__lll_lock_wait_private"), libc),
            inner(),
            place(Some("malloc"), libc),
        ];
        assert_eq!(of(&heap).as_deref(), Some("malloc"));
        // Of a program without symbols there is the address.
        let stripped = [inner(), lock(), place(None, own), inner()];
        assert_eq!(named(&stripped).unwrap().module.as_deref(), Some(own));
        assert_eq!(named(&[inner(), inner()]), Some(&inner()));
        for name in [
            "__GI___lll_lock_wait",
            "lll_mutex_lock_optimized",
            "___pthread_mutex_lock",
        ] {
            assert!(Rules::own().is_wrapper(function(name)), "{name}");
        }
    }

    #[test]
    fn all_lines_of_our_own_are_rules() {
        assert_eq!(Rules::default().add(OWN), Ok(()));
        assert_eq!(Rules::default().add("# one\n\nfunktion x\n"), Err(3));
        assert_eq!(Rules::default().add("function\n"), Err(1));
    }

    #[test]
    fn wrappers_are_told_from_functions_that_do_something() {
        let rules = Rules::own();
        for name in [
            "lock_take",
            "lock_init",
            "uv_mutex_lock",
            "g_mutex_lock_slowpath",
            "caml_mutex_lock",
            "rb_native_mutex_lock",
            "apr_thread_mutex_lock",
            "CRYPTO_THREAD_read_lock",
            "Lck__Lock",
            "osl_acquireMutex",
            "PR_Lock",
            "std::mutex::lock()",
            "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
            "std::__1::mutex::lock()",
            "parking_lot::raw_mutex::RawMutex::lock_slow",
            "take_gil",
            "Server::Mutex::lock",
            "QBasicMutex::lockInternal()",
            "Monitor::wait(unsigned long)",
            "folly::detail::distributed_mutex::DistributedMutex<std::atomic, true>::lock()",
            "absl::lts_20220623::Mutex::Lock()",
            "tbb::detail::d1::mutex::lock()",
            "qemu_mutex_lock_impl",
            "inline_mysql_mutex_lock(mysql_mutex_t*, char const*, unsigned int)",
            "LWLockAcquire",
            "system__tasking__protected_objects__entries__lock_entries",
            "_D4core4sync5mutex5Mutex__T12lock_nothrowTCQBpQBnQBlQBiZQBdMFNbNiNeZv",
        ] {
            assert!(rules.is_wrapper(function(name)), "{name}");
        }
        for name in [
            "insert",
            "short_section",
            "take_slot",
            "lock_account",
            "unblock",
            "read_clock",
            "main",
            "work",
            "read",
            "std::vector<int>::push_back(int const&)",
            "folly::EventBase::loopBody(int, bool)",
            "boost::asio::io_context::run()",
            "a__counter__addP",
            "_D4core8internal2gc4impl12conservativeQw3Gcx14scanBackgroundMFNbZv",
        ] {
            assert!(!rules.is_wrapper(function(name)), "{name}");
        }
        let mut brought = function("std::vector<int>::push_back(int const&)");
        brought.file = Some("/usr/include/c++/12/bits/stl_vector.h");
        assert!(rules.is_wrapper(brought));
    }

    #[test]
    fn users_add_rules_and_take_some_back() {
        let mut rules = Rules::own();
        assert!(!rules.is_wrapper(function("Shop::enter()")));
        assert!(rules.is_wrapper(function("lock_init")));
        rules
            .add("function Shop::*\nkeep lock_init\nmodule */libshop.so*\nlock gate\n")
            .unwrap();
        assert!(rules.is_wrapper(function("Shop::enter()")));
        assert!(!rules.is_wrapper(function("lock_init")));
        assert!(rules.is_wrapper(function("gate_enter")));
        let mut of_module = function("anything");
        of_module.module = Some("/opt/lib/libshop.so.1");
        assert!(rules.is_wrapper(of_module));
    }
}
