//! Finding the guest's image, and Xen.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::exit::Exit;

const NAME: &str = "overlock-guest";

/// The places beside this program's own: an installation's, and a build directory's.
const PLACES: [&str; 3] = [
    ".",
    "../lib/overlock",
    "../guest/x86_64-unknown-none/release",
];

/// The directory of `scripts/guest`, from the top of a checkout.
const BUILT: &str = "target/guest";

/// The image.
pub fn find(given: Option<&Path>) -> Result<PathBuf, Exit> {
    if let Some(path) = given {
        return match fs::File::open(path) {
            Ok(_) => Ok(path.to_owned()),
            Err(error) => Err(Exit::usage(format!("--image {}: {error}", path.display()))),
        };
    }
    let dir = own_dir();
    let built = Path::new(BUILT).join("x86_64-unknown-none/release");
    let places = PLACES.iter().map(|place| dir.join(place));
    let mut files = places.chain([built]).map(|place| place.join(NAME));
    files.find(|file| file.is_file()).ok_or_else(|| {
        Exit::usage(format!(
            "{NAME} is not in {0}, {0}/../lib/overlock or {BUILT}; build it by `scripts/guest --build`, or name it by --image",
            dir.display()
        ))
    })
}

/// Xen: as `scripts/guest` unpacks it, or as Debian installs it.
pub fn xen() -> Option<PathBuf> {
    let unpacked = [own_dir().join("../guest/xen"), Path::new(BUILT).join("xen")];
    let installed = fs::read_dir("/boot").into_iter().flatten().flatten();
    let installed = installed.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("xen-") && name.ends_with(".gz")
    });
    let mut all = unpacked.into_iter().chain(installed);
    all.find(|file| file.is_file())
}

/// The directory of this program.
fn own_dir() -> PathBuf {
    let own = env::current_exe().unwrap_or_default();
    own.parent().unwrap_or(Path::new(".")).to_owned()
}
