//! Programs that a tool watches which has to see the C library's locks.
//!
//! The library makes room for such a tool, and says so: a program that a script starts may end up
//! with both. Here the user asks for both, and one of them would have nothing to do.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::{Object, ObjectSymbol, ReadCache};

/// Why a command has no use for our locks, if valgrind is to run it.
pub fn by_valgrind(words: &[OsString]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    if Path::new(program).file_name()? != "valgrind" {
        return None;
    }
    let general = env::var_os("VALGRIND_OPTS").unwrap_or_default();
    let own = rest.iter().map(|word| word.as_bytes());
    let options = own.take_while(|word| word.starts_with(b"-"));
    // The last one counts.
    let tool = general
        .as_bytes()
        .split(u8::is_ascii_whitespace)
        .chain(options)
        .filter_map(|word| word.strip_prefix(b"--tool="))
        .last()?;
    let tool = OsStr::from_bytes(tool).to_str()?;
    matches!(tool, "helgrind" | "drd").then(|| {
        format!(
            "{tool} has to see the C library's locks; run it without overlock, \
             or the program without valgrind by `overlock check`"
        )
    })
}

/// The same for a program that its compiler has instrumented.
pub fn by_sanitizer(program: File) -> Option<&'static str> {
    match Sanitizer::of(program) {
        Ok(Some(Sanitizer::Thread)) => Some(
            "is built with ThreadSanitizer, which has to see the C library's locks; \
             run it without overlock, or build it without -fsanitize=thread",
        ),
        Ok(Some(Sanitizer::Address)) if !may_come_second() => Some(
            "is built with AddressSanitizer, whose library asks to be the first, \
             and has options of its own; set ASAN_OPTIONS=verify_asan_link_order=0",
        ),
        _ => None,
    }
}

fn may_come_second() -> bool {
    let options = env::var_os("ASAN_OPTIONS").unwrap_or_default();
    let options = options.as_bytes();
    let wanted = b"verify_asan_link_order=";
    options.windows(wanted.len()).any(|part| part == wanted)
}

/// A sanitizer that has something against our library.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sanitizer {
    /// ThreadSanitizer, in the program or in a library that it names.
    Thread,
    /// AddressSanitizer as a library, if the program's options replace those that ours asks for.
    Address,
}

impl Sanitizer {
    fn of(program: File) -> object::Result<Option<Sanitizer>> {
        const TSAN: &str = "__tsan_init";
        let cache = ReadCache::new(program);
        let program = object::File::parse(&cache)?;
        let mut defines_lock = false;
        let mut in_front = 0;
        let mut defines_options = false;
        let mut has_library = false;
        for symbol in program.dynamic_symbols() {
            match symbol.name() {
                Ok(TSAN) => return Ok(Some(Sanitizer::Thread)),
                Ok("_setjmp" | "pthread_spin_lock") if symbol.is_definition() => in_front += 1,
                Ok("pthread_mutex_lock") => defines_lock |= symbol.is_definition(),
                Ok("__asan_default_options") => defines_options |= symbol.is_definition(),
                Ok("__asan_init") => has_library |= symbol.is_undefined(),
                _ => {}
            }
        }
        if defines_options && has_library {
            return Ok(Some(Sanitizer::Address));
        }
        // A runtime that is linked in may be hidden, and stands in front of functions that no other
        // one has all of. (Go's detector of races has functions of the same names, and leaves
        // pthread's alone.)
        let mut all = program.symbols();
        let is_tsan =
            defines_lock && (in_front == 2 || all.any(|symbol| symbol.name() == Ok(TSAN)));
        Ok(is_tsan.then_some(Sanitizer::Thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrinds_tool_is_known_by_its_options() {
        let tool = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            by_valgrind(&words)
        };
        let refused = tool("/usr/bin/valgrind -q --tool=helgrind ./x").unwrap();
        assert!(refused.starts_with("helgrind has to see"), "{refused}");
        assert!(tool("valgrind --tool=drd ./x").is_some());
        for other in [
            "valgrind ./x --tool=drd",
            "valgrind --tool=drd --tool=none ./x",
            "./x --tool=drd",
            "valgrind",
        ] {
            assert_eq!(tool(other), None, "{other}");
        }
    }
}
