//! Programs and libraries: what a file says of the addresses in it. Files are read when their names
//! are first asked for, and once for all processes.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use addr2line::Loader;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ReadCache};
use overlock_profile::{Frame, FrameKind};

use super::debug;
use super::symbols::{Module, plain, unnamed};
use super::wrappers::{Function, is_librarys, rules};

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

/// Whether a function of this name only passes calls on to a lock.
fn wraps(function: Option<&str>, file: Option<&str>, module: &str) -> bool {
    match function {
        Some(name) => rules().is_wrapper(Function {
            name,
            file,
            module: Some(module),
        }),
        None => is_librarys(module),
    }
}

/// Says that the file of a frame, which was read elsewhere, is this one to the process.
pub fn set_module(frame: &mut Frame, module: String) {
    let at = frame.offset.unwrap_or_default();
    let has_name = frame.function != unnamed(frame.module.as_deref(), at);
    if !has_name {
        frame.function = unnamed(Some(&module), at);
    }
    let function = Some(frame.function.as_str()).filter(|_| has_name);
    frame.is_wrapper = wraps(function, frame.file.as_deref(), &module);
    frame.module = Some(module);
}

/// Files are loaded at multiples of it, on x86-64 and on AArch64 at least.
const PAGE: u64 = 4096;

/// A program or a library.
pub struct Binary {
    path: PathBuf,
    segments: OnceCell<Vec<Segment>>,
    build_id: OnceCell<Option<String>>,
    is_go: OnceCell<bool>,
    /// The best first.
    loaders: OnceCell<Vec<Loader>>,
    /// The frames of addresses that were looked up.
    frames: RefCell<HashMap<u64, Rc<[Frame]>>>,
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Binary").field(&self.path).finish()
    }
}

impl Binary {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            segments: OnceCell::new(),
            build_id: OnceCell::new(),
            is_go: OnceCell::new(),
            loaders: OnceCell::new(),
            frames: RefCell::default(),
        }
    }

    fn segments(&self) -> &[Segment] {
        self.segments
            .get_or_init(|| match debug::is_file(&self.path) {
                true => segments(&self.path).unwrap_or_default(),
                false => Vec::new(),
            })
    }

    /// Whether it is one: other files may be mapped as code, too.
    pub fn is_code(&self) -> bool {
        !self.segments().is_empty()
    }

    fn loaders(&self) -> &[Loader] {
        self.loaders.get_or_init(|| match self.is_code() {
            true => debug::loaders(&self.path),
            false => Vec::new(),
        })
    }

    /// In hexadecimal digits.
    fn build_id(&self) -> Option<&str> {
        let read =
            || debug::with_object(&self.path, |object| Some(hex(object.build_id().ok()??)));
        self.build_id.get_or_init(read).as_deref()
    }

    /// By a section that Go's linker writes into each program.
    pub fn is_go(&self) -> bool {
        *self.is_go.get_or_init(|| {
            debug::with_object(&self.path, |object| {
                object.section_by_name(".go.buildinfo").map(|_| ())
            })
            .is_some()
        })
    }

    /// The difference between addresses in the file and in the process.
    pub fn bias(&self, module: &Module) -> Option<u64> {
        let length = module.end.wrapping_sub(module.start);
        let end = module.offset.wrapping_add(length);
        // A mapping is of whole pages, and so has parts of the segments beside its own, which are
        // no code.
        let is_its = |segment: &&Segment| {
            segment.is_code
                && module.offset < segment.offset.wrapping_add(segment.in_file)
                && segment.offset < end
        };
        let segment = self.segments().iter().find(is_its)?;
        let address = segment
            .address
            .wrapping_add(module.offset)
            .wrapping_sub(segment.offset);
        Some(module.start.wrapping_sub(address))
    }

    /// The function that makes the call which returns to an address of the file, and before it
    /// those that are inlined there, the innermost first. At least one.
    pub fn frames(&self, address: u64) -> Rc<[Frame]> {
        if let Some(known) = self.frames.borrow().get(&address) {
            return Rc::clone(known);
        }
        // The return address may be in the next line already, or in the next function.
        let found = self.named(address.saturating_sub(1), address);
        self.frames.borrow_mut().insert(address, Rc::clone(&found));
        found
    }

    fn named(&self, at: u64, offset: u64) -> Rc<[Frame]> {
        let module = plain(&self.path.display().to_string());
        let mut found = Vec::new();
        for loader in self.loaders() {
            let names = names(loader, at);
            if names.iter().any(|name| name.function.is_some()) {
                found = names;
                break;
            }
        }
        if found.is_empty() {
            found.push(Name::default());
        }
        let last = found.len() - 1;
        let frames = found.into_iter().enumerate().map(|(number, name)| {
            let is_wrapper = wraps(name.function.as_deref(), name.file.as_deref(), &module);
            Frame {
                function: (name.function).unwrap_or_else(|| unnamed(Some(&module), offset)),
                file: name.file,
                line: name.line,
                module: Some(module.clone()),
                build_id: self.build_id().map(str::to_owned),
                offset: Some(offset),
                kind: match number == last {
                    true => FrameKind::Native,
                    false => FrameKind::Inlined,
                },
                is_wrapper,
            }
        });
        frames.collect()
    }

    /// The variable at an address of the file, and the distance from its start.
    pub fn variable(&self, at: u64) -> Option<(String, u64)> {
        if !self.segments().iter().any(|segment| segment.contains(at)) {
            return None;
        }
        let symbol = (self.loaders().iter()).find_map(|loader| loader.find_symbol_info(at))?;
        Some((demangled(symbol.name()), at - symbol.address()))
    }

    /// Whether a variable may be at an address of the file.
    pub fn has_data(&self, at: u64) -> bool {
        let mut segments = self.segments().iter();
        segments.any(|segment| !segment.is_code && segment.contains(at))
    }

    /// The function or variable at that distance from the address that it is loaded at.
    pub fn at(&self, distance: u64) -> Option<Loaded> {
        let loaded = |segment: &Segment| segment.address;
        let first = self.segments().iter().map(loaded).min()? & !(PAGE - 1);
        let at = first.checked_add(distance)?;
        let segment = self
            .segments()
            .iter()
            .find(|segment| segment.contains(at))?;
        Some(match segment.is_code {
            true => Loaded::Code(self.named(at, at)),
            false => {
                let (name, within) = self.variable(at)?;
                Loaded::Variable(name, within)
            }
        })
    }
}

/// The content of a file at an address.
#[derive(Debug)]
pub enum Loaded {
    /// With its frames.
    Code(Rc<[Frame]>),
    /// With the distance from its start.
    Variable(String, u64),
}

/// All files of which something was asked.
#[derive(Debug, Default)]
pub struct Binaries(RefCell<HashMap<PathBuf, Rc<Binary>>>);

impl Binaries {
    /// The file at a path.
    pub fn get(&self, path: &Path) -> Rc<Binary> {
        if let Some(known) = self.0.borrow().get(path) {
            return Rc::clone(known);
        }
        let binary = Rc::new(Binary::new(path));
        let known = Rc::clone(&binary);
        self.0.borrow_mut().insert(path.to_owned(), known);
        binary
    }
}

/// The words of debug information about a frame.
#[derive(Default)]
struct Name {
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

/// The functions at an address, the innermost first.
fn names(loader: &Loader, at: u64) -> Vec<Name> {
    let mut all = Vec::new();
    if let Ok(mut frames) = loader.find_frames(at) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref();
            let function = name.and_then(|name| Some(plain(&name.demangle().ok()?)));
            let location = frame.location;
            all.push(Name {
                function,
                file: location.as_ref().and_then(|at| Some(plain(at.file?))),
                line: location.and_then(|at| at.line),
            });
        }
    }
    if all.is_empty() {
        all.push(Name::default());
    }
    let outermost = all.last_mut().filter(|name| name.function.is_none());
    if let Some(name) = outermost {
        name.function = loader.find_symbol(at).map(demangled);
    }
    all
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
    use super::*;

    /// Fails where the names of a program are read for each process, or before one is asked for.
    #[test]
    fn a_file_is_read_once_and_when_a_name_is_asked_for() {
        let path = std::env::current_exe().unwrap();
        let binaries = Binaries::default();
        let (one, other) = (binaries.get(&path), binaries.get(&path));
        assert!(Rc::ptr_eq(&one, &other) && one.is_code());
        assert!(one.loaders.get().is_none());
        assert!(!one.frames(0x1000).is_empty());
        assert!(other.loaders.get().is_some());
        assert!(Rc::ptr_eq(&one.frames(0x1000), &other.frames(0x1000)));
    }
}
