//! Names for addresses in a process that may have ended.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ReadCache};
use serde::Serialize;

use super::debug;

/// A place in a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The address in the process.
    pub address: String,
    /// The function, if its name is known.
    pub function: Option<String>,
    /// The source file, where there is debug information.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// The functions that the function was inlined into, from the inside out.
    pub inlined_into: Vec<String>,
    /// The program or library.
    pub module: Option<String>,
    /// The address within it, as in the file.
    pub offset: Option<String>,
}

impl Place {
    /// An address of which no more is known.
    fn nowhere(address: u64) -> Self {
        Self {
            address: format!("{address:#x}"),
            function: None,
            file: None,
            line: None,
            inlined_into: Vec::new(),
            module: None,
            offset: None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        match (&self.function, &self.module, &self.offset) {
            (Some(function), module, _) => {
                f.write_str(function)?;
                match (&self.file, self.line, module) {
                    (Some(file), Some(line), _) => write!(f, " {}:{line}", base(file))?,
                    (_, _, Some(module)) => write!(f, " {}", base(module))?,
                    _ => {}
                }
                match self.inlined_into.last() {
                    Some(outermost) => write!(f, " in {outermost}"),
                    None => Ok(()),
                }
            }
            (None, Some(module), Some(offset)) => write!(f, "{}+{offset}", base(module)),
            _ => f.write_str(&self.address),
        }
    }
}

/// A mapping of code.
#[derive(Debug)]
pub struct Module {
    /// The first address.
    pub start: u64,
    /// The one behind the last.
    pub end: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// The file.
    pub path: PathBuf,
}

/// A part of a file as it is in memory.
#[derive(Debug)]
struct Segment {
    is_code: bool,
    offset: u64,
    in_file: u64,
    address: u64,
    in_memory: u64,
}

impl Segment {
    fn contains(&self, at: u64) -> bool {
        at.checked_sub(self.address)
            .is_some_and(|within| within < self.in_memory)
    }
}

/// Files are loaded at multiples of it, on x86-64 and on AArch64 at least.
const PAGE: u64 = 4096;

/// The symbols of a file.
struct Known {
    segments: Vec<Segment>,
    is_go: bool,
    /// The best first.
    loaders: Vec<Loader>,
}

/// The names of one process.
pub struct Symbols {
    modules: Vec<Module>,
    files: HashMap<PathBuf, Known>,
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbols")
            .field("modules", &self.modules)
            .finish_non_exhaustive()
    }
}

impl Symbols {
    /// Those of a process of which no mapping is known yet.
    pub fn new() -> Self {
        Self {
            modules: Vec::new(),
            files: HashMap::new(),
        }
    }

    /// How many mappings are known.
    pub fn modules(&self) -> usize {
        self.modules.len()
    }

    /// The file that is mapped lowest, which is the program's own.
    pub fn program(&self) -> String {
        let path = self.modules.first().map(|module| module.path.as_path());
        let name = path.and_then(Path::file_name).unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether the program is one in Go.
    pub fn is_go(&self) -> bool {
        let path = self.modules.first().map(|module| &module.path);
        path.is_some_and(|path| self.files[path].is_go)
    }

    /// One more mapping.
    pub fn add(&mut self, module: Module) {
        self.known(&module.path);
        self.modules.push(module);
    }

    fn known(&mut self, path: &Path) -> &Known {
        let known = self.files.entry(path.to_owned());
        known.or_insert_with(|| match debug::is_file(path) {
            true => Known {
                segments: segments(path).unwrap_or_default(),
                is_go: is_go(path),
                loaders: debug::loaders(path),
            },
            false => Known {
                segments: Vec::new(),
                is_go: false,
                loaders: Vec::new(),
            },
        })
    }

    /// The call that returns to an address.
    pub fn call(&self, address: u64) -> Place {
        // The return address may be in the next line already, or in the next function.
        let call = address.saturating_sub(1);
        let nowhere = Place::nowhere(address);
        // The latest: what was unmapped may have made room for another.
        let mut modules = self.modules.iter().rev();
        let Some(module) = modules.find(|module| (module.start..module.end).contains(&call)) else {
            return nowhere;
        };
        let known = &self.files[&module.path];
        let bias = bias(module, &known.segments);
        let mut place = Place {
            module: Some(plain(&module.path.display().to_string())),
            offset: bias.map(|bias| format!("{:#x}", address.wrapping_sub(bias))),
            ..nowhere
        };
        if let Some(bias) = bias {
            look_up(&known.loaders, call.wrapping_sub(bias), &mut place);
        }
        place
    }

    /// The symbol at that distance from a file's load address: the function that makes a call
    /// there, or the variable.
    pub fn at(&mut self, path: &Path, distance: u64) -> Option<String> {
        let known = self.known(path);
        let loaded = |segment: &Segment| segment.address;
        let first = known.segments.iter().map(loaded).min()? & !(PAGE - 1);
        let at = first.checked_add(distance)?;
        let segment = known.segments.iter().find(|segment| segment.contains(at))?;
        let loaders = &known.loaders;
        if !segment.is_code {
            return variable(loaders, at).map(|(name, within)| match within {
                0 => name,
                within => format!("{name}+{within:#x}"),
            });
        }
        let mut place = Place {
            module: Some(plain(&path.display().to_string())),
            ..Place::nowhere(at)
        };
        look_up(loaders, at, &mut place);
        place.function.is_some().then(|| place.to_string())
    }

    /// The address of which this is the lower half, if it is one of code.
    pub fn whole(&self, half: u32) -> Option<u64> {
        self.modules.iter().rev().find_map(|module| {
            let base = module.start & !u64::from(u32::MAX);
            let near = [base, base.wrapping_add(1 << 32)];
            let whole = near.map(|base| base | u64::from(half));
            // A return address may lie behind the last instruction.
            whole
                .into_iter()
                .find(|whole| (module.start..module.end).contains(&whole.wrapping_sub(1)))
        })
    }

    /// The variable at an address, and the distance from its start.
    pub fn variable(&self, address: u64) -> Option<(String, u64)> {
        self.modules.iter().rev().find_map(|module| {
            let known = &self.files[&module.path];
            let at = address.wrapping_sub(bias(module, &known.segments)?);
            if !known.segments.iter().any(|segment| segment.contains(at)) {
                return None;
            }
            variable(&known.loaders, at)
        })
    }
}

/// The variable at an address of a file, and the distance from its start.
fn variable(loaders: &[Loader], at: u64) -> Option<(String, u64)> {
    let symbol = (loaders.iter()).find_map(|loader| loader.find_symbol_info(at))?;
    Some((demangled(symbol.name()), at - symbol.address()))
}

/// A name without what a terminal would take for an order.
pub fn plain(name: &str) -> String {
    name.replace(char::is_control, "?")
}

/// A name as people write it. Those of C stay as they are: `m` is no type.
fn demangled(name: &str) -> String {
    // Of C++ and of Rust, also as some systems have them.
    let is_mangled = ["_Z", "__Z", "_R"]
        .iter()
        .any(|mark| name.starts_with(mark));
    plain(&match is_mangled {
        true => addr2line::demangle_auto(name.into(), None),
        false => name.into(),
    })
}

/// The function that makes the call at an address of a file, the line, and the functions that it
/// was inlined into. Of functions that were inlined into each other it is the first that is not a
/// library's: those are the same for all locks.
fn look_up(loaders: &[Loader], at: u64, place: &mut Place) {
    for loader in loaders {
        look_up_in(loader, at, place);
        if place.function.is_some() {
            return;
        }
    }
}

fn look_up_in(loader: &Loader, at: u64, place: &mut Place) {
    let mut all = Vec::new();
    if let Ok(mut frames) = loader.find_frames(at) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref();
            let location = frame.location;
            all.push((
                name.and_then(|name| Some(name.demangle().ok()?.into_owned())),
                location
                    .as_ref()
                    .and_then(|location| location.file.map(str::to_owned)),
                location.and_then(|location| location.line),
            ));
        }
    }
    let is_users = |file: &Option<String>| file.as_deref().is_some_and(|file| !is_librarys(file));
    let first = all.iter().position(|(_, file, _)| is_users(file));
    let mut rest = all.into_iter().skip(first.unwrap_or_default());
    // If all are of libraries, the one that is there.
    let chosen = match first {
        Some(_) => rest.next(),
        None => rest.by_ref().last(),
    };
    if let Some((function, file, line)) = chosen {
        (place.function, place.file, place.line) = (function, file, line);
    }
    place.inlined_into = rest.filter_map(|(function, ..)| function).collect();
    if place.function.is_none() {
        place.function = loader.find_symbol(at).map(demangled);
    }
}

/// Whether a source file is part of what compilers and package managers bring along.
pub fn is_librarys(file: &str) -> bool {
    const PLACES: [&str; 6] = [
        "/usr/include/",
        "/usr/lib/",
        "/usr/local/include/",
        "/rustc/",
        "/.cargo/registry/",
        "/.rustup/toolchains/",
    ];
    PLACES.iter().any(|place| file.contains(place))
}

/// The difference between addresses in the file and in the process.
fn bias(module: &Module, segments: &[Segment]) -> Option<u64> {
    let length = module.end.wrapping_sub(module.start);
    let end = module.offset.wrapping_add(length);
    // A mapping is of whole pages, and so has parts of the segments beside its own, which are no
    // code.
    let is_its = |segment: &&Segment| {
        segment.is_code
            && module.offset < segment.offset.wrapping_add(segment.in_file)
            && segment.offset < end
    };
    let segment = segments.iter().find(is_its)?;
    let address = segment
        .address
        .wrapping_add(module.offset)
        .wrapping_sub(segment.offset);
    Some(module.start.wrapping_sub(address))
}

/// By a section that Go's linker writes into each program.
fn is_go(path: &Path) -> bool {
    debug::with_object(path, |object| {
        object.section_by_name(".go.buildinfo").map(|_| ())
    })
    .is_some()
}

fn segments(path: &Path) -> Option<Vec<Segment>> {
    let file = ReadCache::new(File::open(path).ok()?);
    let header = object::elf::FileHeader64::<Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let headers = header.program_headers(endian, &file).ok()?;
    let loaded = headers
        .iter()
        .filter(|header| header.p_type(endian) == object::elf::PT_LOAD);
    let segment = |header: &object::elf::ProgramHeader64<Endianness>| Segment {
        is_code: header.p_flags(endian).0 & object::elf::PF_X.0 != 0,
        offset: header.p_offset(endian),
        in_file: header.p_filesz(endian),
        address: header.p_vaddr(endian),
        in_memory: header.p_memsz(endian),
    };
    Some(loaded.map(segment).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    static KNOWN_VARIABLE: [u64; 2] = [1, 2];

    fn own() -> Symbols {
        let mut symbols = Symbols::new();
        for line in fs::read_to_string("/proc/self/maps").unwrap().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
            let (start, end) = words[0].split_once('-').unwrap();
            if words[1].contains('x') && words.len() == 6 && words[5].starts_with('/') {
                symbols.add(Module {
                    start: number(start),
                    end: number(end),
                    offset: number(words[2]),
                    path: words[5].into(),
                });
            }
        }
        symbols
    }

    #[test]
    fn code_and_variables_of_a_process_have_names() {
        let symbols = own();
        let here = own as *const () as u64 + 1;
        let place = symbols.call(here);
        let function = place.function.unwrap();
        assert!(function.ends_with("symbols::tests::own"), "{function}");
        assert!(place.file.unwrap().ends_with("symbols.rs"));
        assert_eq!(symbols.whole(here as u32), Some(here));
        assert_eq!(symbols.whole(0), None);
        let variable = symbols.variable((&raw const KNOWN_VARIABLE[1]) as u64);
        let (variable, within) = variable.unwrap();
        assert!(variable.ends_with("KNOWN_VARIABLE"), "{variable}");
        assert_eq!(within, 8);
        let nowhere = symbols.call(0x10);
        assert_eq!(
            (nowhere.module.as_ref(), nowhere.to_string()),
            (None, "0x10".to_owned())
        );
    }
}
