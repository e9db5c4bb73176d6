//! The build of this program, as `build.rs` finds it.

use overlock_bench::world::native::CHECKED;

/// The build that runs: its version, its commit, a checksum of the changes since that, its profile,
/// and whether its locks check for misuse. Another build may simulate other figures.
pub fn this() -> String {
    let (commit, changes) = (env!("OVERLOCK_COMMIT"), env!("OVERLOCK_CHANGES"));
    named(commit, changes, env!("OVERLOCK_PROFILE"), CHECKED)
}

fn named(commit: &str, changes: &str, profile: &str, is_checked: bool) -> String {
    let program = env!("CARGO_PKG_VERSION");
    let changes = match changes {
        "" => String::new(),
        sum => format!(" with changes {sum}"),
    };
    let checks = if is_checked {
        ", with checks for misuse"
    } else {
        ""
    };
    format!("overlock {program} (commit {commit}{changes}, profile {profile}{checks})")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where two builds with other figures have one name.
    #[test]
    fn each_part_of_a_build_is_in_its_name() {
        for (commit, changes, profile, is_checked, name) in [
            ("1a", "", "dev", false, "1a, profile dev"),
            ("unknown", "", "release", false, "unknown, profile release"),
            ("1a", "2b", "dev", false, "1a with changes 2b, profile dev"),
            (
                "1a",
                "",
                "dev",
                true,
                "1a, profile dev, with checks for misuse",
            ),
        ] {
            let named = named(commit, changes, profile, is_checked);
            let (_, parts) = named.split_once(" (commit ").unwrap();
            assert_eq!(parts, format!("{name})"));
        }
        assert!(this().starts_with(concat!("overlock ", env!("CARGO_PKG_VERSION"), " (commit ")));
    }
}
