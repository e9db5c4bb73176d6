//! The build of this program, as `build.rs` finds it.

use overlock_bench::world::native::CHECKED;
use overlock_study::sweep::Build;

/// The build that runs.
pub fn this() -> Build {
    let changes = env!("OVERLOCK_CHANGES");
    Build {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("OVERLOCK_COMMIT").to_owned(),
        changes: (!changes.is_empty()).then(|| changes.to_owned()),
        profile: env!("OVERLOCK_PROFILE").to_owned(),
        checks: CHECKED,
    }
}
