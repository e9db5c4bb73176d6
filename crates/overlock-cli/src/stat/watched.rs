//! The tables of a process that runs.

use std::io;
use std::path::{Path, PathBuf};

use super::living;
use super::mapping::Mapping;
use super::process::Process;
use super::symbols::Symbols;
use crate::exit::Exit;

/// A process, and its tables.
#[derive(Debug)]
pub struct Watched {
    /// Its id.
    pub pid: u32,
    /// How many programs it has run in place of the first.
    pub replaced: u32,
    tables: Vec<(PathBuf, Mapping, Symbols)>,
}

impl Watched {
    /// Finds its tables, or those of the program that it runs, where it is `overlock run`.
    pub fn open(pid: u32) -> Result<Self, Exit> {
        let (pid, paths) = living::tables(pid)?;
        let mut watched = Self {
            pid,
            replaced: 0,
            tables: Vec::new(),
        };
        let results = paths.iter().map(|path| watched.add(path));
        let failed = results.filter_map(Result::err).last();
        match failed.filter(|_| watched.tables.is_empty()) {
            Some(error) => Err(Exit::usage(format!("{}: {error}", paths[0].display()))),
            None => Ok(watched),
        }
    }

    fn add(&mut self, path: &Path) -> io::Result<()> {
        let table = Mapping::open(path)?;
        let symbols = self.tables.first().map(|(_, _, symbols)| symbols.beside());
        let symbols = symbols.unwrap_or_default();
        self.tables.push((path.to_owned(), table, symbols));
        Ok(())
    }

    /// Reads what it has counted by now, in all its tables, of which some may be new.
    pub fn read(&mut self) -> io::Result<Process> {
        let paths = living::find(self.pid).unwrap_or_default();
        let known = self.tables.len();
        for path in &paths {
            if self.tables.iter().all(|(known, ..)| known != path) {
                // One that is not ready yet is there the next time.
                let _ = self.add(path);
            }
        }
        if self.tables.len() > known {
            // Another program runs in place of the one that had the tables before.
            let before = self.tables.len();
            self.tables.retain(|(path, ..)| paths.contains(path));
            self.replaced += u32::from(before - self.tables.len() == known);
        }
        let mut whole: Option<Process> = None;
        for (_, table, symbols) in &mut self.tables {
            table.update()?;
            let process = Process::read(table, symbols);
            match &mut whole {
                Some(whole) => whole.join(process),
                None => whole = Some(process),
            }
        }
        whole.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
