//! The document itself.

use std::io::{self, BufWriter, Write};

use crate::Profile;

/// Writes the document on one line, for [`Profile::read`] and for other programs. Its schema is
/// `schema/profile.schema.json` of the crate overlock-cli.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, profile)?;
    writeln!(out)?;
    out.flush()
}
