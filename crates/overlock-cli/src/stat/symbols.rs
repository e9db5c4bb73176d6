//! Names for addresses in a process that may have ended.

use std::cell::OnceCell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use overlock_profile::{Frame, FrameKind};
use serde::Serialize;

use super::binary::{Binaries, Binary, Loaded};
use super::debug;
use super::jitdump;
use super::perf_map::PerfMap;

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
    /// Whether it is the code of a script: the callers before it may be an interpreter's.
    #[serde(skip)]
    pub is_script: bool,
    /// Whether it only passes calls on to a lock.
    #[serde(skip)]
    pub is_wrapper: bool,
}

impl Place {
    /// Of functions that are inlined into each other it is the first that is no wrapper, as those
    /// are the same for all locks; or else the one that is there.
    pub fn of(address: u64, frames: &[Frame]) -> Self {
        let first = frames.iter().position(|frame| !frame.is_wrapper);
        let chosen = first.unwrap_or(frames.len().saturating_sub(1));
        let mut place = Self {
            address: format!("{address:#x}"),
            function: None,
            file: None,
            line: None,
            inlined_into: Vec::new(),
            module: None,
            offset: None,
            is_script: false,
            is_wrapper: false,
        };
        if let Some(frame) = frames.get(chosen) {
            place.function = is_named(frame, address).then(|| frame.function.clone());
            place.file = frame.file.clone();
            place.line = frame.line;
            place.module = frame.module.clone();
            place.offset = frame.offset.map(|offset| format!("{offset:#x}"));
            place.is_script = matches!(frame.kind, FrameKind::Jit | FrameKind::Python);
            place.is_wrapper = frame.is_wrapper;
        }
        let rest = frames.iter().skip(chosen + 1);
        place.inlined_into = rest.map(|frame| frame.function.clone()).collect();
        place
    }

    /// The function that has called this one, which is a wrapper, and is not known.
    pub fn caller(&self) -> Self {
        let name = match &self.function {
            Some(function) => function.clone(),
            None => self.to_string(),
        };
        Self {
            function: Some(caller_of(&name)),
            file: None,
            line: None,
            inlined_into: Vec::new(),
            module: None,
            offset: None,
            is_wrapper: false,
            ..self.clone()
        }
    }
}

/// The name of an unknown function that has called this one.
pub fn caller_of(wrapper: &str) -> String {
    format!("a caller of {wrapper}")
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, &self.module, &self.offset) {
            (Some(function), module, _) => {
                f.write_str(function)?;
                match (&self.file, self.line, module) {
                    (Some(file), Some(line), _) => write!(f, " {}:{line}", base(file))?,
                    (Some(file), None, None) => write!(f, " {}", base(file))?,
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

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The text in place of a name that is not known.
pub fn unnamed(module: Option<&str>, at: u64) -> String {
    match module {
        Some(module) => format!("{}+{at:#x}", base(module)),
        None => format!("{at:#x}"),
    }
}

fn is_named(frame: &Frame, address: u64) -> bool {
    let at = frame.offset.unwrap_or(address);
    frame.function != unnamed(frame.module.as_deref(), at)
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

/// The names of one process.
#[derive(Debug, Default)]
pub struct Symbols {
    modules: Vec<(Module, Rc<Binary>)>,
    binaries: Rc<Binaries>,
    /// The process, and since when it is there.
    process: Option<(u32, u64)>,
    /// Code that was made at run time, read when first asked for.
    made: OnceCell<PerfMap>,
}

impl Symbols {
    /// Those of a process of which no mapping is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same of another process. Files that both have are read once.
    pub fn beside(&self) -> Self {
        Self {
            binaries: Rc::clone(&self.binaries),
            ..Self::default()
        }
    }

    /// Says which process it is, by whose id code that was made at run time is found, and since
    /// when it is there, in seconds since 1970. Its names are read anew.
    pub fn set_process(&mut self, pid: u32, since_s: u64) {
        self.process = Some((pid, since_s));
        self.made = OnceCell::new();
    }

    /// How many mappings are known.
    pub fn modules(&self) -> usize {
        self.modules.len()
    }

    /// The file that is mapped lowest, which is the program's own.
    pub fn program(&self) -> String {
        let path = (self.modules.first()).map(|(module, _)| module.path.as_path());
        let name = path.and_then(Path::file_name).unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether the program is one in Go.
    pub fn is_go(&self) -> bool {
        let program = self.modules.first();
        program.is_some_and(|(_, binary)| binary.is_go())
    }

    /// One more mapping.
    pub fn add(&mut self, module: Module) {
        let binary = self.binaries.get(&module.path);
        self.modules.push((module, binary));
    }

    /// The place of the call that returns to an address.
    pub fn call(&self, address: u64) -> Place {
        Place::of(address, &self.frames(address))
    }

    /// The function that makes the call which returns to an address, and before it those that are
    /// inlined there, the innermost first. At least one.
    pub fn frames(&self, address: u64) -> Rc<[Frame]> {
        let call = address.saturating_sub(1);
        // The latest: what was unmapped may have made room for another.
        let mut modules = self.modules.iter().rev();
        let module = modules.find(|(module, _)| (module.start..module.end).contains(&call));
        if let Some((module, binary)) = module
            && let Some(bias) = binary.bias(module)
        {
            return binary.frames(address.wrapping_sub(bias));
        }
        let mut frame = Frame {
            module: module.map(|(module, _)| plain(&module.path.display().to_string())),
            ..Frame::default()
        };
        match self.made().at(call) {
            Some(made) => {
                frame.function = made.name.clone();
                frame.file = made.file.clone();
                frame.line = made.line;
                frame.kind = made.kind;
                frame.is_wrapper = made.is_wrapper();
            }
            None => frame.function = unnamed(frame.module.as_deref(), address),
        }
        Rc::new([frame])
    }

    fn made(&self) -> &PerfMap {
        self.made.get_or_init(|| {
            let Some((pid, since_s)) = self.process else {
                return PerfMap::default();
            };
            let mut map = PerfMap::of(pid, since_s);
            for (module, _) in &self.modules {
                if jitdump::is_dump(&module.path)
                    && debug::is_file(&module.path)
                    && let Ok(bytes) = fs::read(&module.path)
                {
                    jitdump::read(&bytes, &mut map);
                }
            }
            map
        })
    }

    /// The symbol at that distance from a file's load address: the function that makes a call
    /// there, or the variable.
    pub fn at(&mut self, path: &Path, distance: u64) -> Option<String> {
        match self.binaries.get(path).at(distance)? {
            Loaded::Code(frames) => {
                let place = Place::of(distance, &frames);
                place.function.is_some().then(|| place.to_string())
            }
            Loaded::Variable(name, 0) => Some(name),
            Loaded::Variable(name, within) => Some(format!("{name}+{within:#x}")),
        }
    }

    /// The same as a place, if it is one of code.
    pub fn place_at(&mut self, path: &Path, distance: u64) -> Option<Place> {
        match self.binaries.get(path).at(distance)? {
            Loaded::Code(frames) => Some(Place::of(distance, &frames)),
            Loaded::Variable(..) => None,
        }
    }

    /// The address of which this is the lower half, if it is one of code.
    pub fn whole(&self, half: u32) -> Option<u64> {
        self.modules.iter().rev().find_map(|(module, _)| {
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
        self.modules.iter().rev().find_map(|(module, binary)| {
            let at = address.wrapping_sub(binary.bias(module)?);
            binary.variable(at)
        })
    }

    /// The file and the address in it of a variable that has no name, since the file has none.
    pub fn data(&self, address: u64) -> Option<String> {
        self.modules.iter().rev().find_map(|(module, binary)| {
            let at = address.wrapping_sub(binary.bias(module)?);
            let path = plain(&module.path.display().to_string());
            binary.has_data(at).then(|| unnamed(Some(&path), at))
        })
    }
}

/// A name without what a terminal would take for an order.
pub fn plain(name: &str) -> String {
    name.replace(char::is_control, "?")
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
