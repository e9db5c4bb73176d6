//! The build of this program, as `build.rs` finds it.

use overlock_bench::world::native::CHECKED;

/// The build that runs: its version, its commit, a checksum of the changes since that, its profile,
/// and whether its locks check for misuse. Another build may simulate other figures.
pub fn this() -> String {
    let (program, commit) = (env!("CARGO_PKG_VERSION"), env!("OVERLOCK_COMMIT"));
    let changes = match env!("OVERLOCK_CHANGES") {
        "" => String::new(),
        sum => format!(" with changes {sum}"),
    };
    let profile = env!("OVERLOCK_PROFILE");
    let checks = if CHECKED {
        ", with checks for misuse"
    } else {
        ""
    };
    format!("overlock {program} (commit {commit}{changes}, profile {profile}{checks})")
}
