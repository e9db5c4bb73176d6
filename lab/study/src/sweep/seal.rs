//! The checksum of a line: its last field.
//!
//! The checksum of a result also covers the build that simulated it. So a line that was copied from
//! a file of another build does not pass for a result of this one.

use super::build::Build;

const FIELD: &str = r#","crc32":""#;
const END: &str = r#""}"#;

/// Adds its checksum to a line, which is a JSON object.
pub(super) fn seal(object: &str, build: Option<&Build>) -> String {
    let open = object.strip_suffix('}').expect("it is an object");
    format!("{open}{FIELD}{:08x}{END}", checksum(object, build))
}

/// The line without its checksum.
///
/// # Errors
///
/// Why it is not as it was written.
pub(super) fn unseal(line: &str, build: Option<&Build>) -> Result<String, String> {
    let sealed = line
        .strip_suffix(END)
        .and_then(|line| line.rsplit_once(FIELD));
    let Some((open, digits)) = sealed else {
        return Err(match line.ends_with('\r') {
            true => "is damaged: something has given it the line ends of DOS".to_owned(),
            false => "is damaged: it has no checksum".to_owned(),
        });
    };
    let object = format!("{open}}}");
    let expected = format!("{:08x}", checksum(&object, build));
    if digits != expected {
        let other = build.map_or("", |_| ", or is of another build");
        return Err(format!(
            "was changed{other}: its checksum is {expected}, and it says {digits}"
        ));
    }
    Ok(object)
}

fn checksum(object: &str, build: Option<&Build>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    if let Some(build) = build {
        hasher.update(build.to_string().as_bytes());
    }
    hasher.update(object.as_bytes());
    hasher.finalize()
}
