//! `overlock-lab model`

use overlock_model::program::check;

use crate::exit::Exit;

pub use overlock_model::program::Args;

/// Runs the checks that `args` describe.
pub fn run(args: &Args) -> Result<(), Exit> {
    match check(args) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Exit::Failed("a check failed".to_owned())),
        Err(message) => Err(Exit::usage(message)),
    }
}
