//! Profiles that were kept as files.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use overlock_profile::Profile;

use crate::exit::Exit;

/// Whether a file is a document, and no table.
pub fn is_profile(path: &Path) -> bool {
    let mut first = [0];
    path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok())
        && first == *b"{"
}

/// Reads one.
pub fn read(path: &Path) -> Result<Profile, Exit> {
    let refused = |error: &dyn std::fmt::Display| {
        Exit::usage(format!("cannot read {}: {error}", path.display()))
    };
    let file = File::open(path).map_err(|error| refused(&error))?;
    Profile::read(BufReader::new(file)).map_err(|error| refused(&error))
}
