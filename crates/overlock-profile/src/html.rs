//! A page that works from a file, without a network: the pictures of a profile, drawn by a script.
//!
//! The sources are in `html/`. The profile is in the page as JSON in which no `<` is left, so that
//! nothing of it is markup.

mod model;

use std::io::{self, BufWriter, Write};

use model::Page;

use crate::{Profile, Shown};

const TEMPLATE: &str = include_str!("../html/page.html");
const STYLE: &str = include_str!("../html/page.css");

/// In this order: the later ones use the earlier ones.
const SCRIPTS: [&str; 9] = [
    include_str!("../html/helpers.js"),
    include_str!("../html/data.js"),
    include_str!("../html/table.js"),
    include_str!("../html/timeline.js"),
    include_str!("../html/flame.js"),
    include_str!("../html/pictures.js"),
    include_str!("../html/details.js"),
    include_str!("../html/tables.js"),
    include_str!("../html/page.js"),
];

/// Writes the page. The choice is the one that it opens with; it has switches for the others.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, profile: &Profile, shown: Shown) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let mut rest = TEMPLATE;
    for mark in ["{{css}}", "{{json}}", "{{js}}"] {
        let (before, after) = rest.split_once(mark).expect("the template has all marks");
        out.write_all(before.as_bytes())?;
        match mark {
            "{{css}}" => out.write_all(STYLE.as_bytes())?,
            "{{json}}" => serde_json::to_writer(Escaped(&mut out), &Page::of(profile, shown))?,
            _ => SCRIPTS
                .iter()
                .try_for_each(|script| out.write_all(script.as_bytes()))?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())?;
    out.flush()
}

/// JSON has `<` only within its strings, where another spelling means the same.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (at, part) in bytes.split(|&byte| byte == b'<').enumerate() {
            if at > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
